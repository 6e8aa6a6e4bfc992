"""Changelogs whose values are framed by a Schema Registry: Avro and Protobuf schemas that a release changes.

What breaks is the text of the formats. Avro 1.11, "Schema Resolution": a reader's field without a default must be in
the data; int is promoted to long, not back; a symbol unknown to the reader is an error without a default. Protocol
Buffers, "Updating A Message Type": a number keeps its wire type; fields are added, removed, and renamed freely. A
restore reads every value of the log: the fault ends with the last one of the old schema.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from streamwarden.base.hours import HOUR, start_of_hour

from tests.simulator.scenario import START, Fault

if TYPE_CHECKING:
    from tests.simulator.schemas import _Builder

_NAMES = ("order_id", "customer", "city", "amount", "created", "note", "channel", "weight", "state")
_AVRO = ("string", "int", "long", "double", "boolean", ["null", "string"])
_PROTOBUF = ("string", "int32", "int64", "double", "bool", "bytes")
_BOTH, _RESTORE, _ROLLBACK = ("critical: restore and rollback",), ("critical: restore",), ("warning: rollback",)
VERDICTS = {
    "Avro: field added without default": _RESTORE,
    "Avro: field without default removed": _ROLLBACK,
    "Avro: type changed": _BOTH,
    "Avro: int became long": _ROLLBACK,
    "Avro: symbol added": _ROLLBACK,
    "Avro: symbol removed": _RESTORE,
    "Protobuf: type of a number changed": _BOTH,
}


class Registered(NamedTuple):
    """A schema of a registry."""

    schema_id: int
    schema_type: str
    definition: str

    def frame(self, chance: random.Random) -> bytes:
        """A value: magic byte, schema id, and a payload, before which Protobuf has the index of its message."""
        payload = chance.randbytes(chance.randint(8, 60))
        return b"\x00" + self.schema_id.to_bytes(4, "big") + b"\x00" * (self.schema_type == "PROTOBUF") + payload


Field = dict[str, Any]


def _record(builder: _Builder) -> list[Field]:
    """Fields of an Avro record: an enum, an int, and some others."""
    chance = builder.chance
    fields: list[Field] = [{"name": n, "type": chance.choice(_AVRO)} for n in chance.sample(_NAMES, 4)]
    status = {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]}
    return [*fields, {"name": "status", "type": status}, {"name": "quantity", "type": "int"}]


def _avro(fields: list[Field]) -> str:
    return json.dumps({"type": "record", "name": "Order", "namespace": "com.acme", "fields": fields})


def _with_type(fields: list[Field], name: str, new_type: Any) -> list[Field]:
    return [field | {"type": new_type} if field["name"] == name else field for field in fields]


def _symbols(*names: str) -> Field:
    return {"type": "enum", "name": "Status", "symbols": [*names]}


def avro_field_added(builder: _Builder) -> None:
    fields = _record(builder)
    _fault(builder, "Avro: field added without default", "AVRO", _avro(fields),
           _avro([*fields, {"name": "tax", "type": "double"}]))  # fmt: skip


def avro_field_removed(builder: _Builder) -> None:
    fields = _record(builder)
    new = [field for field in fields if field["name"] != "quantity"]
    _fault(builder, "Avro: field without default removed", "AVRO", _avro(fields), _avro(new))


def avro_type_changed(builder: _Builder) -> None:
    fields = _record(builder)
    new = _with_type(fields, "quantity", builder.chance.choice(["string", "boolean"]))
    _fault(builder, "Avro: type changed", "AVRO", _avro(fields), _avro(new))


def avro_int_became_long(builder: _Builder) -> None:
    fields = _record(builder)
    _fault(builder, "Avro: int became long", "AVRO", _avro(fields), _avro(_with_type(fields, "quantity", "long")))


def avro_symbol_added(builder: _Builder) -> None:
    fields = _record(builder)
    new = _with_type(fields, "status", _symbols("NEW", "PAID", "SENT", "LOST"))
    _fault(builder, "Avro: symbol added", "AVRO", _avro(fields), _avro(new))


def avro_symbol_removed(builder: _Builder) -> None:
    fields = _record(builder)
    new = _with_type(fields, "status", _symbols("NEW", "SENT"))
    _fault(builder, "Avro: symbol removed", "AVRO", _avro(fields), _avro(new))


def protobuf_type_changed(builder: _Builder) -> None:
    """A number gets another wire type: neither release reads the other's values."""
    fields = _message(builder)
    changed = [*fields[:-1], ("string", "quantity", 9)]
    _fault(builder, "Protobuf: type of a number changed", "PROTOBUF", _protobuf(fields), _protobuf(changed))


# Decoys


def avro_compatible(builder: _Builder) -> None:
    """A change that both releases read: a field with a default, another doc, order, or enum default."""
    fields = _record(builder)
    changes: list[list[Field]] = [
        [*fields, {"name": "tax", "type": ["null", "double"], "default": None}],
        [*fields, {"name": "tax", "type": "int", "default": 0}],
        [fields[0] | {"doc": "Assigned by the shop."}, *fields[1:]],
        fields[::-1],
        [],
    ]
    _decoy(builder, "Avro: compatible", "AVRO", _avro(fields), _avro(builder.chance.choice(changes) or fields))


def protobuf_compatible(builder: _Builder) -> None:
    """A change that both releases read: a field added, removed, or renamed, or a wider integer."""
    fields = _message(builder)
    changes = [
        [*fields, ("double", "tax", 11)],
        fields[1:],
        [(fields[0][0], "renamed", fields[0][2]), *fields[1:]],
        [*fields[:-1], ("int64", "quantity", 9)],
    ]
    _decoy(builder, "Protobuf: compatible", "PROTOBUF", _protobuf(fields), _protobuf(builder.chance.choice(changes)))


def _message(builder: _Builder) -> list[tuple[str, str, int]]:
    """Type, name, and number of a message's fields."""
    chance = builder.chance
    some = [(chance.choice(_PROTOBUF), name, n + 1) for n, name in enumerate(chance.sample(_NAMES, 4))]
    return [*some, ("int32", "quantity", 9)]


def _protobuf(fields: list[tuple[str, str, int]]) -> str:
    lines = "".join(f"  {kind} {name} = {number};\n" for kind, name, number in fields)
    return f'syntax = "proto3";\npackage com.acme;\nmessage Order {{\n{lines}}}\n'


def _store(builder: _Builder, kind: str, schema_type: str, old: str, new: str) -> tuple[Any, Any]:
    """A store with two releases, and the time of the second one."""
    from tests.simulator.schemas import Node

    start, empty = builder.at(), Node("", "object")
    store = builder.store([(START, timedelta(0), empty), (start, builder.lasting(), empty)])
    first = 1000 + 10 * len(builder.fleet.stores)
    store.schemas = tuple(Registered(first + n, schema_type, text) for n, text in enumerate((old, new)))
    builder.fleet.truth.decoys[store.topic] = kind
    return store, start


def _fault(builder: _Builder, kind: str, schema_type: str, old: str, new: str) -> None:
    store, start = _store(builder, kind, schema_type, old, new)
    due, ends = builder._course(store, start, rolled_back=False)
    if due is None:
        builder.fleet.truth.unclear.append((store.topic, start, ends))
        return
    builder.fleet.truth.faults.append(Fault(store.topic, kind, start, due, ends, verdicts=VERDICTS[kind]))
    builder.near(store.topic, start, int((due - start_of_hour(start)) / HOUR) + 4)


def _decoy(builder: _Builder, kind: str, schema_type: str, old: str, new: str) -> None:
    store, start = _store(builder, kind, schema_type, old, new)
    builder.near(store.topic, start, 5)
    builder.fleet.hours[store.topic].add(start_of_hour(start) + 12 * HOUR)


Make = Callable[["_Builder"], None]
FAULTS: tuple[Make, ...] = (
    avro_field_added,
    avro_field_removed,
    avro_type_changed,
    avro_int_became_long,
    avro_symbol_added,
    avro_symbol_removed,
    protobuf_type_changed,
)
DECOYS: tuple[Make, ...] = (avro_compatible, protobuf_compatible)
