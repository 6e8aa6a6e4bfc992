"""Schema versions of a log with values framed by a Schema Registry: one per schema id (magic byte 0, then the id).

Each schema is compared with the current one; the rows are like those of inferred schemas. A schema that cannot be
compared (an id that no registry knows, a schema that does not compile) is reported, and never counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spark_apps.models.avro_schema import AvroSchema
from spark_apps.models.json_schema import JsonSchema
from spark_apps.models.json_shapes import Path, leaves_at, render
from spark_apps.models.protobuf_schema import ProtobufSchema
from spark_apps.models.schema_changes import NotComparable, Schema, SchemaChange, changes
from spark_apps.models.schema_courses import PAUSE, Kind
from spark_apps.models.schema_report import Exemplar, masked, shown
from spark_apps.models.schema_versions import Profile

HEAD = 5
"""Bytes of the magic byte and the schema id."""
_MOST_TROUBLES = 3


@dataclass(frozen=True)
class Registered:
    """A schema of a registry."""

    schema_id: int
    type: str
    definition: str
    imports: Mapping[str, str]
    """Referenced schemas, including indirect references, by reference name."""
    versions: tuple[tuple[str, int], ...]
    """Subjects and versions that it is registered as."""

    @property
    def name(self) -> str:
        """The schema's id and subjects, for messages."""
        registrations = ", ".join(f"{subject} v{version}" for subject, version in self.versions)
        return f"schema {self.schema_id} ({registrations})" if registrations else f"schema {self.schema_id}"

    def of_values_like(self, raw: bytes) -> Schema:
        """The schema of values like this one: for Protobuf, of the message that it selects.

        Raises:
            NotComparable: its type is unknown, or it is not valid.
        """
        match self.type:
            case "AVRO":
                return AvroSchema(self.definition, self.imports)
            case "JSON":
                return JsonSchema(self.definition, self.imports)
            case "PROTOBUF":
                return ProtobufSchema(self.definition, self.imports, message_indexes(raw)[0])
        raise NotComparable(f"is of the unknown type {self.type}")


def registered_schemas(rows: list[Mapping[str, Any]]) -> dict[str, dict[int, Registered]]:
    """Schemas by cluster and id. Rows: cluster, subject, version, schema_id, schema_type, definition, references."""
    by_version = {(row["cluster"], row["subject"], row["version"]): row for row in rows}
    versions: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for row in rows:
        registrations = {(row["subject"], row["version"])} if row["subject"] is not None else set()
        versions.setdefault((row["cluster"], row["schema_id"]), set()).update(registrations)
    found: dict[str, dict[int, Registered]] = {}
    for row in rows:
        cluster, schema_id = row["cluster"], row["schema_id"]
        imports: dict[str, str] = {}
        for name, definition in _imports(row, by_version, frozenset()):
            imports.setdefault(name, definition)
            # In Avro the reference name is only a label.
            if row["schema_type"] == "AVRO" and imports[name] != definition:
                imports[f"{name} #{len(imports)}"] = definition
        found.setdefault(cluster, {})[schema_id] = Registered(
            schema_id, row["schema_type"], row["definition"], imports, tuple(sorted(versions[cluster, schema_id]))
        )
    return found


def _imports(
    row: Mapping[str, Any], by_version: Mapping[Any, Any], within: frozenset[Any]
) -> Iterator[tuple[str, str]]:
    """Referenced schemas by name. Unknown references are left out: a schema that needs one reports it."""
    for reference in row["references"] or ():
        key = (row["cluster"], reference["subject"], reference["version"])
        if key in by_version and key not in within:
            yield reference["name"], by_version[key]["definition"]
            yield from _imports(by_version[key], by_version, within | {key})


def message_indexes(raw: bytes) -> tuple[list[int], bytes]:
    """Message indexes of a Protobuf value, and the message: after the id, a zigzag varint with their number, then the
    indexes; 0 means [0]."""
    numbers: list[int] = []
    value = shift = 0
    for place, byte in enumerate(raw[HEAD:], HEAD + 1):
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append((value >> 1) ^ -(value & 1))
            value = shift = 0
            if len(numbers) > numbers[0]:
                return numbers[1:] or [0], raw[place:]
    return [0], b""


class RegisteredReport:
    """Rows for the warehouse: the schemas that frame a log's values, oldest first, and the changes since each."""

    def __init__(
        self,
        profile: Profile,
        exemplars: Mapping[int, Exemplar],
        known: Mapping[int, Registered],
        *,
        show_values: bool,
    ) -> None:
        self.show_values = show_values
        self.framed = profile.framed if profile.format == "framed" else {}
        self.exemplars = exemplars
        self.known = known
        self.exposure = sum((kind.counts for kind in self.framed.values()), np.zeros(1, dtype=np.int64))
        self.ids = sorted(self.framed, key=lambda schema_id: self.framed[schema_id].first)
        self._first_version = profile.newest_version
        self._schemas: dict[int, Schema] = {}
        self._troubles: dict[int, str] = {}
        for schema_id in self.ids:
            try:
                self._schemas[schema_id] = self._schema(schema_id)
            except NotComparable as trouble:
                self._troubles[schema_id] = f"{self._name(schema_id)} {trouble}"

    def _name(self, schema_id: int) -> str:
        return self.known[schema_id].name if schema_id in self.known else f"schema {schema_id}"

    def _schema(self, schema_id: int) -> Schema:
        if schema_id not in self.known:
            raise NotComparable("is not known to any registry that is read")
        exemplar = self.exemplars.get(self.framed[schema_id].last)
        return self.known[schema_id].of_values_like(exemplar.raw if exemplar and exemplar.raw else b"")

    @property
    def versions(self) -> int:
        """Number of schemas after the first."""
        return max(len(self.ids) - 1, 0)

    @property
    def uncompared(self) -> str | None:
        """Why some schemas were not compared; None if all were."""
        troubles = [*self._troubles.values(), *self._changes[1], *self._unread()]
        more = f"; and {len(troubles) - _MOST_TROUBLES} more" if len(troubles) > _MOST_TROUBLES else ""
        return "; ".join(troubles[:_MOST_TROUBLES]) + more if troubles else None

    def _unread(self) -> Iterator[str]:
        for schema_id, schema in self._schemas.items():
            for place in schema.places().values():
                if place.unread:
                    unread = " and ".join(place.unread)
                    yield f"{self._name(schema_id)} has at {render(place.path)} {unread}, which is not evaluated"

    @cached_property
    def _changes(self) -> tuple[dict[int, list[SchemaChange]], list[str]]:
        """Differences of each schema from the current one, by id, and the schemas that could not be compared with
        it."""
        found: dict[int, list[SchemaChange]] = {}
        troubles: list[str] = []
        if not self.ids or self.current not in self._schemas:
            return found, troubles
        for schema_id, schema in self._schemas.items():
            if schema_id == self.current or self._is_another_kind(schema_id):
                continue
            try:
                found[schema_id] = changes(schema, self._schemas[self.current])
            except NotComparable as trouble:
                troubles.append(f"{self._name(schema_id)} {trouble}")
            except Exception as error:  # a registry accepts any schema: the others are compared
                kind = type(error).__name__
                troubles.append(f"{self._name(schema_id)} cannot be compared with schema {self.current} ({kind})")
        return found, troubles

    @cached_property
    def current(self) -> int:
        """The schema that is written now: the newest of those that have not ended."""
        lasting = [schema_id for schema_id in self.ids if not self._has_ended(self.framed[schema_id])]
        return (lasting or self.ids)[-1]

    def _has_ended(self, kind: Kind) -> bool:
        """Whether so many values without it would be improbable if it were still written as often as before."""
        first, last = kind.span
        share = kind.total / int(self.exposure[first : last + 1].sum())
        return bool(share * self.exposure[last + 1 :].sum() >= PAUSE)

    def _is_another_kind(self, schema_id: int) -> bool:
        """Whether the topic holds values of two unrelated subjects: they are not versions of each other."""
        mine, current = ({subject for subject, _ in self.known[each].versions} for each in (schema_id, self.current))
        return bool(mine and current) and not mine & current and not self._has_ended(self.framed[schema_id])

    def schema_rows(self) -> list[dict[str, Any]]:
        """One entry per schema, as evidence."""
        return [
            {
                "schema_id": schema_id,
                "registered_as": self.known[schema_id].name if schema_id in self.known else None,
                "format": self.known[schema_id].type if schema_id in self.known else None,
                "values": self.framed[schema_id].total,
                "first_offset": self._place(self.framed[schema_id].first),
                "last_offset": self._place(self.framed[schema_id].last),
            }
            for schema_id in self.ids
        ]

    def path_rows(self) -> list[dict[str, Any]]:
        """One row per version and path."""
        return [
            {
                "version": self._version(schema_id),
                "path": render(place.path),
                "type": place.type,
                "count": self.framed[schema_id].total,
                "parents": self.framed[schema_id].total,
                "enum_values": None,
                "first_position": self.framed[schema_id].first,
                "last_position": self.framed[schema_id].last,
                "first_offset": self._place(self.framed[schema_id].first),
                "last_offset": self._place(self.framed[schema_id].last),
                "example": None,
            }
            for schema_id, schema in self._schemas.items()
            for place in schema.places().values()
        ]

    def change_rows(self) -> list[dict[str, Any]]:
        """One row per change between a schema of the log and the current one."""
        rows = {}
        for schema_id, found in self._changes[0].items():
            new, old, version = self.framed[self.current], self.framed[schema_id], self._version(schema_id)
            for change in found:
                rows[version, change.path, change.change] = {
                    "path": render(change.path),
                    "change": change.change,
                    "old_version": version,
                    "new_version": self._version(self.current),
                    "old_type": change.old_type,
                    "new_type": change.new_type,
                    "old_presence": None,
                    "new_presence": None,
                    "old_count": old.total,
                    "new_count": new.total,
                    "breaks_backward": change.breaks.backward,
                    "breaks_forward": change.breaks.forward,
                    "strict_only": change.breaks.strict_only,
                    "old_last_position": old.last,
                    "new_first_position": new.first,
                    "old_last_offset": self._place(old.last),
                    "new_first_offset": self._place(new.first),
                    "old_example": self._example(schema_id, change.path, old.last),
                    "new_example": self._example(self.current, change.path, new.first),
                    "old_schema_id": schema_id,
                    "new_schema_id": self.current,
                }
        return list(rows.values())

    def _example(self, schema_id: int, path: Path, position: int) -> str | None:
        """The part of a value at this path; None if there is none, or if the value does not match its frame."""
        exemplar = self.exemplars.get(position)
        raw = exemplar.raw if exemplar and exemplar.raw else b""
        payload = message_indexes(raw)[1] if self.known[schema_id].type == "PROTOBUF" else raw[HEAD:]
        try:
            found = leaves_at(self._schemas[schema_id].decoded(payload), path)
        except Exception:  # values may hold any bytes, and three libraries fail in different ways
            return None
        if not found:
            return None
        return shown(found[0]) if self.show_values else masked(found[0])

    def _version(self, schema_id: int) -> int:
        return self._first_version + self.ids.index(schema_id)

    def _place(self, position: int) -> str | None:
        exemplar = self.exemplars.get(position)
        return exemplar.place if exemplar else None
