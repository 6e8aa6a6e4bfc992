"""Versions of a log by the registered schemas of its framed values: the current one, comparisons, and examples."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest

from spark_apps.models.registered_schemas import RegisteredReport, message_indexes, registered_schemas
from spark_apps.models.schema_courses import BUCKETS
from spark_apps.models.schema_report import Exemplar
from spark_apps.models.schema_versions import Profile, ShapeCount


def row(schema_id: int, kind: str, definition: Any, subject: str = "orders-value", **more: Any) -> dict[str, Any]:
    text = definition if isinstance(definition, str) else json.dumps(definition)
    known = {"cluster": "shop", "subject": subject, "version": schema_id, "references": None}
    return known | {"schema_id": schema_id, "schema_type": kind, "definition": text} | more


def order(*fields: tuple[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


def framed(schema_id: int, payload: bytes = b"") -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


def report(values: Iterable[bytes], rows: Iterable[dict[str, Any]], *, show_values: bool = True) -> RegisteredReport:
    """The report on framed values in write order."""
    written = list(values)
    shapes: dict[tuple[int, str], list[int]] = {}
    for i, value in enumerate(written):
        shape = f"FRAMED {int.from_bytes(value[1:5], 'big')}"
        shapes.setdefault((i * BUCKETS // len(written), shape), []).append(i)
    profile = Profile([ShapeCount(b, shape, len(at), at[0], at[-1]) for (b, shape), at in shapes.items()])
    exemplars = {i: Exemplar(0, i, None, value) for i, value in enumerate(written)}
    return RegisteredReport(profile, exemplars, registered_schemas(list(rows)).get("shop", {}), show_values=show_values)


ONE, TWO = row(1, "AVRO", order(("id", "int"))), row(2, "AVRO", order(("id", "int"), ("tier", "string")))


def test_each_schema_of_the_log_is_compared_with_the_current_one() -> None:
    three = row(3, "AVRO", order(("id", "string"), ("tier", "string")))
    found = report([framed(1)] * 100 + [framed(2)] * 100 + [framed(3)] * 100, [ONE, TWO, three])
    assert (found.current, found.versions, found.uncompared) == (3, 2, None)
    assert [(c["old_schema_id"], c["path"], c["change"], c["old_version"]) for c in found.change_rows()] == [
        (1, "$.id", "type_changed", 1),
        (1, "$.tier", "field_added", 1),
        (2, "$.id", "type_changed", 2),
    ]
    assert [each["registered_as"] for each in found.schema_rows()] == [
        f"schema {n} (orders-value v{n})" for n in (1, 2, 3)
    ]


def test_the_current_schema_is_the_last_one_that_remained_in_use() -> None:
    assert report([framed(1)] * 300 + [framed(2)] * 5, [ONE, TWO]).current == 2
    assert report([framed(1)] * 100 + [framed(2)] * 100 + [framed(1)] * 200, [ONE, TWO]).current == 1
    assert report([framed(1)] * 200 + [framed(2)] + [framed(1)] * 2000, [ONE, TWO]).current == 1
    assert report([framed(1), framed(2)] * 300, [ONE, TWO]).current == 2  # a rolling deploy


def test_values_of_two_subjects_side_by_side_are_no_versions_of_each_other() -> None:
    bill = row(2, "AVRO", order(("sum", "long"), name="Bill"), "bills-value")
    assert report([framed(1), framed(2)] * 200, [ONE, bill]).change_rows() == []
    assert report([framed(1)] * 200 + [framed(2)] * 200, [ONE, bill]).change_rows() != []


def test_schemas_that_cannot_be_compared_are_named() -> None:
    text = {"type": "record", "name": "Order", "fields": [{"name": "line", "type": "shop.Line"}]}
    found = report([framed(1)] * 50 + [framed(9)] * 50 + [framed(4)] * 50, [ONE, row(4, "AVRO", text)])
    assert found.uncompared == (
        "schema 9 is not known to any registry that is read;"
        " schema 4 (orders-value v4) refers to the unknown type shop.Line"
    )
    assert found.change_rows() == []


def cart(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", **more.pop("a", {})}, "n": more}}


@pytest.mark.parametrize("pattern", [r"^(?P<k>x)_", "(?i)^x", "^(", r"\Ax", "a++", 7])
def test_a_pattern_that_is_not_evaluated_omits_its_path_only(pattern: Any) -> None:
    old = row(1, "JSON", cart(type="integer", a={"pattern": pattern, "enum": ["x_1"]}), "carts-value")
    new = row(2, "JSON", cart(type="string", a={"pattern": pattern, "enum": ["x_1"]}), "carts-value")
    found = report([framed(1)] * 100 + [framed(2)] * 100, [old, new])
    assert [(change["path"], change["change"]) for change in found.change_rows()] == [("$.n", "type_changed")]
    assert found.uncompared == "; ".join(
        f"schema {n} (carts-value v{n}) has at $.a the pattern {str(pattern)!r}, which is not evaluated" for n in (1, 2)
    )


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", "^(?<k>x)_", "(?<=x+)_"])
def test_pattern_properties_with_ecma_only_syntax(pattern: str) -> None:
    old = {"type": "object", "patternProperties": {pattern: {"type": "integer"}}, "additionalProperties": False}
    new = old | {"patternProperties": {pattern: {"type": "string"}}}
    found = report([framed(1)] * 100 + [framed(2)] * 100, [row(1, "JSON", old), row(2, "JSON", new)])
    assert found.uncompared is None
    assert [(change["path"], change["change"]) for change in found.change_rows()] == [("$.*", "type_changed")]


def test_a_schema_that_cannot_be_compared_does_not_affect_others() -> None:
    rows = [
        row(1, "JSON", cart(type="integer")),
        row(2, "JSON", cart(type="string", minLength="three")),
        row(3, "JSON", cart(type="string")),
    ]
    found = report([framed(1)] * 100 + [framed(2)] * 100 + [framed(3)] * 100, rows)
    assert {change["old_schema_id"] for change in found.change_rows()} >= {1}
    assert "schema 2 (orders-value v2) cannot be compared with schema 3 (TypeError)" in str(found.uncompared)


def test_references_are_followed() -> None:
    line = row(5, "AVRO", order(("sku", "string"), name="shop.Line"), "line")
    refers = [{"name": "shop.Line", "subject": "line", "version": 5}]
    found = report([framed(6)] * 50, [line, row(6, "AVRO", order(("line", "shop.Line")), references=refers)])
    assert found.uncompared is None
    assert [each["path"] for each in found.path_rows()] == ["$", "$.line", "$.line.sku"]


def test_examples_of_avro_are_decoded_and_masked() -> None:
    kinds = [
        ("id", "long"), ("at", "double"), ("ok", "boolean"), ("s", ["null", "string"]), ("f", "float"),
        ("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}), ("x", {"type": "fixed", "name": "X", "size": 2}),
        ("l", {"type": "array", "items": "int"}), ("m", {"type": "map", "values": "int"}), ("z", "string"),
    ]  # fmt: skip
    payload = b"\x96\x01" + struct.pack("<d", 1.5) + b"\1" + b"\2\6abc" + struct.pack("<f", 0.5)
    payload += b"\2" + b"xy" + b"\4\2\4\0" + b"\1\6\2k\x0a\0" + b"\6K\xc3\xa4"
    old, new = row(1, "AVRO", order(*kinds)), row(2, "AVRO", order(*(kinds[:-1])))
    values = [framed(1, payload)] * 50 + [framed(2, payload)] * 50
    [removed] = report(values, [old, new]).change_rows()
    assert (removed["path"], removed["old_example"], removed["new_example"]) == ("$.z", '"Kä"', None)
    [hidden] = report(values, [old, new], show_values=False).change_rows()
    assert hidden["old_example"] == '"xx"'
    [broken] = report([framed(1, b"\2")] * 50 + [framed(2)] * 50, [old, new]).change_rows()
    assert broken["old_example"] is None


def test_examples_of_avro_logical_types_are_shown_as_their_logical_values() -> None:
    day = {"type": "int", "logicalType": "date"}
    price = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
    old, new = row(1, "AVRO", order(("day", day), ("price", price), ("raw", "bytes"))), row(2, "AVRO", order())
    value = {"day": date(2026, 1, 2), "price": Decimal("12.50"), "raw": b"a"}
    values = [framed(1, avro_bytes(json.loads(old["definition"]), value))] * 50 + [framed(2)] * 50
    shown, hidden = (
        {row["path"]: row["old_example"] for row in report(values, [old, new], show_values=show).change_rows()}
        for show in (True, False)
    )
    assert shown == {"$.day": '"2026-01-02"', "$.price": '"12.50"', "$.raw": '"a"'}
    assert hidden == {"$.day": '"9999-99-99"', "$.price": '"99.99"', "$.raw": '"x"'}


def avro_bytes(schema: Any, value: Any) -> bytes:
    written = BytesIO()
    fastavro.schemaless_writer(written, schema, value)
    return written.getvalue()


def test_examples_of_protobuf_and_json_schema_are_decoded() -> None:
    text = 'syntax = "proto3"; message Bill { map<string, int32> by = 1; repeated Line lines = 2; }'
    text += " message Line { %s sku = 1; }"
    payload = b"\0" + b"\x0a\x05\x0a\x01k\x10\x07" + b"\x12\x02\x08\x2a"
    old, new = row(1, "PROTOBUF", text % "int32"), row(2, "PROTOBUF", text % "string")
    [sku] = report([framed(1, payload)] * 50 + [framed(2, b"\0\x12\x03\x0a\x01x")] * 50, [old, new]).change_rows()
    assert (sku["path"], sku["old_example"], sku["new_example"]) == ("$.lines[].sku", "42", '"x"')
    old, new = (
        row(n, "JSON", {"type": "object", "properties": {"a": {"type": kind}}})
        for n, kind in enumerate(("string", "number"), 1)
    )
    [a] = report([framed(1, b'{"a": "x"}')] * 50 + [framed(2, b'{"a": 5}')] * 50, [old, new]).change_rows()
    assert (a["old_example"], a["new_example"]) == ('"x"', "5")


def test_the_message_type_of_a_protobuf_value() -> None:
    assert message_indexes(framed(1, b"\0\x08\x01")) == ([0], b"\x08\x01")
    assert message_indexes(framed(1, b"\x04\x02\x80\x01rest")) == ([1, 64], b"rest")
    assert message_indexes(framed(1)) == ([0], b"")
