"""Arbitrary bytes in a changelog: the app runs, and the other stores are evaluated."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from streamwarden.base.config import Config

from spark_apps.apps import state_stores
from spark_apps.models import value_shapes
from spark_apps.models.json_look_alikes import patterns
from spark_apps.models.json_shapes import paths_of, render
from spark_apps.models.schema_report import Exemplar, Report
from spark_apps.models.schema_versions import Profile, ShapeCount
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources.arrow_batches import moments
from spark_apps.sources.changelog_values import ChangelogValues

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
DEEP = 20_000
NAMED = [
    b"\x00\x80\x00\x00\x00 nine",  # an id of 2**31 and more
    b"\x00\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00", b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x07",  # truncated frames
    b"", b" ", b"\xef\xbb\xbf{}", b"\xff\xfe{\x00}\x00", b"\xc3\x28",
    b"NaN", b"[NaN, Infinity, -Infinity]", b'{"a": NaN}', b"1e999", b'{"a": 1e999}', b"9" * 5000,
    b'{"a": ' + b"9" * 5000 + b"}", b'{"a": 1, "a": "x"}', b'{"a": "\\ud800"}', b'{"\\ud800": 1}',
    b'{"\\u0000": "\\u0000"}',
    b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    b"[" * 900 + b"]" * 900, b'{"a":' * 900 + b"1" + b"}" * 900,
    b'{"' + b"k" * 100_000 + b'": 1}', json.dumps({f"key {i}": i for i in range(20_000)}).encode(),
    b'{"a": "' + b"x" * 3_000_000 + b'"}', b'{"": {"": 1}}', b'{"`": 1, "a`b: c": 2, "<>": 3, ", ": 4}',
    b"\x00{", b"\x01{", b"\x00[1]", b"\x01{}}", b"\x01\x00", b"\x01\x00\x00\x00\x00\x00",
]  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=4), v, max_size=4))
BYTES = (
    st.sampled_from(NAMED)
    | st.binary(max_size=40)
    | st.binary(min_size=8, max_size=8)
    | st.builds(lambda rest: b"\0" + rest, st.binary(min_size=4, max_size=12))
    | st.builds(lambda value: json.dumps(value).encode(), VALUES)
    | st.builds(lambda value, cut: json.dumps(value).encode()[: -cut or None], VALUES, st.integers(0, 5))
    | st.builds(lambda side, value: side + json.dumps(value).encode(), st.sampled_from([b"\0", b"\1"]), VALUES)
)


@given(st.lists(BYTES, max_size=20))
@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
def test_any_bytes_have_a_pattern(values: list[bytes]) -> None:
    way, pattern = patterns(pa.array(values, pa.binary()))
    assert len(way) == len(pattern) == len(values) and pattern.null_count == 0


@given(st.lists(st.text(), min_size=1, max_size=200))
def test_a_path_fits_an_index_and_can_be_stored(keys: list[str]) -> None:
    text = render(tuple(f".{key}" for key in keys))
    assert "\0" not in text and len(text.encode()) < 2600


def test_levels_below_the_depth_limit_are_omitted() -> None:
    deep = "OBJECT<a: " * 300 + "BIGINT" + ">" * 300
    assert max(len(path) for path, _ in paths_of(deep)) == 100
    exemplars = {0: Exemplar(0, 0, '{"a":' * DEEP + "1" + "}" * DEEP)}
    rows = Report(Profile([ShapeCount(0, deep, 50, 0, 0)]), exemplars, show_values=True).path_rows()
    assert len(rows) == 101


def test_an_invalid_timestamp_is_null() -> None:
    times = moments(np.array([-1, 0, 1_767_607_200_000, 2**63 - 1, -(2**63)], np.int64)).to_pylist()
    assert times == [None, datetime(1970, 1, 1, tzinfo=UTC), HOUR, None, None]


def changelogs(spark: SparkSession, topics: dict[str, list[bytes]]) -> DataFrame:
    rows: list[tuple[Any, ...]] = []
    for topic, values in topics.items():
        known = (f"shop/{topic}", None, "shop", topic, "app", topic, 0)
        rows.append((*known, 0, 0, len(values), None, None, None, None, None))
        rows += [(*known, None, None, None, i, HOUR, i, b"k", value) for i, value in enumerate(values)]
    return driver_rows(spark, rows, ChangelogValues({}).schema())


def drifted() -> list[bytes]:
    old = [json.dumps({"id": i}).encode() for i in range(100)]
    return old + [json.dumps({"id": str(i)}).encode() for i in range(100)]


@pytest.mark.slow
@given(poison=st.lists(BYTES, min_size=60, max_size=60))
@settings(deadline=None, max_examples=2, suppress_health_check=list(HealthCheck))
@pytest.mark.rare
def test_poison_costs_at_most_its_own_changelog(spark: SparkSession, poison: list[bytes]) -> None:
    mixed = [value for i, value in enumerate(drifted()) for value in (value, (NAMED + poison)[i % (len(NAMED) + 60)])]
    topics = {"drifted": drifted(), "poisoned": NAMED + poison, "mixed": mixed}
    frames = state_stores.transform({"changelog_values": changelogs(spark, topics)}, HOUR, Config())
    assert frames["gaps"].collect() == []
    stores = {row.topic: row for row in frames["metrics.state_store_hourly"].collect()}
    assert {topic: store.values_profiled for topic, store in stores.items()} == {t: len(v) for t, v in topics.items()}
    changed = {(row.topic, row.path) for row in frames["metrics.state_store_change_hourly"].collect()}
    assert ("drifted", "$.id") in changed
    text = "".join(str(row) for row in frames["metrics.state_store_path_hourly"].collect())
    assert "\0" not in text and text.encode()


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.parametrize("where", ["report_of", "look_alikes"])
def test_a_changelog_that_cannot_be_profiled_is_a_gap_and_the_others_are_evaluated(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """In the report of one topic, or where Spark runs one job for all."""
    module = state_stores if where == "report_of" else value_shapes
    real = getattr(module, where)
    if where == "report_of":

        def broken(shapes: Any, *given: Any, **more: Any) -> Any:
            if shapes["resource"].iloc[0].endswith("/odd"):
                raise ValueError("what a value")
            return real(shapes, *given, **more)

    else:

        def broken(edges: Any, *given: Any, **more: Any) -> Any:
            if "shop/odd" in edges:
                raise ValueError("what a value")
            return real(edges, *given, **more)

    monkeypatch.setattr(module, where, broken)
    topics = {name: drifted() for name in ("odd", "one", "two")}
    frames = state_stores.transform({"changelog_values": changelogs(spark, topics)}, HOUR, Config())
    [gap] = frames["gaps"].collect()
    assert gap.resource == "shop/odd" and gap.gap.endswith("ValueError: what a value")
    stores = {row.topic: row.records for row in frames["metrics.state_store_hourly"].collect()}
    assert stores == {"odd": None, "one": 200, "two": 200}
    assert {row.topic for row in frames["metrics.state_store_change_hourly"].collect()} == {"one", "two"}


def of_side(side: int, value: Any) -> bytes:
    return bytes([side]) + json.dumps(value).encode()


@pytest.mark.rare
@pytest.mark.slow
def test_both_sides_of_an_outer_join_store_are_evaluated_separately(spark: SparkSession) -> None:
    """The byte before the value is the side: 1 left, 0 right."""
    same = [of_side(i % 2, {"id": i} if i % 2 else {"sum": i, "note": "x"}) for i in range(400)]
    new = [of_side(i % 2, {"id": str(i)} if i % 2 else {"sum": i, "note": "x"}) for i in range(400)]
    framed = [bytes([i % 2]) + b"\0" + struct.pack(">i", 7) + b"payload" for i in range(100)]
    registered = driver_rows(
        spark, [("shop", "orders-value", 1, 7, "AVRO", '"string"', None)], state_stores._REGISTERED
    )
    topics = {"steady": same, "drifted": same + new, "framed": framed}
    sources = {"changelog_values": changelogs(spark, topics), "known_schemas": registered}
    frames = state_stores.transform(sources, HOUR, Config())
    stores = {row.topic: (row.format, row.uncompared) for row in frames["metrics.state_store_hourly"].collect()}
    assert stores == {"steady": ("json", None), "drifted": ("json", None), "framed": ("framed", None)}
    changes = [(row.topic, row.path, row.change) for row in frames["metrics.state_store_change_hourly"].collect()]
    assert changes == [("drifted", "$.left.id", "type_changed")]
