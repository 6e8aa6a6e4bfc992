"""Patterns of values: values counted together have exactly one type, and none is lost."""

from __future__ import annotations

import json
import random
from collections import Counter

import pyarrow as pa
import pytest

from spark_apps.runtime.driver_rows import driver_rows

pytestmark = pytest.mark.slow  # Spark types the values

_TRICKY = [
    b'{"a":1}', b'{"a":12}', b'{"a":-3}', b'{"a":1.5}', b'{"a":1.0}', b'{"a":10.500}', b'{"a":1e5}', b'{"a":1.5e-3}',
    b'{"a":"1"}', b'{"a":""}', b'{"a":null}', b'{"a":true}', b'{"a" : 7}', b'{"a":"x\\"y"}', b'{"a":"\\\\"}',
    b'{"a":[]}', b'{"a":[1]}', b'{"a":[1,2]}', b'{"a":["1"]}', b'{"a":[1.5,2]}', b'{"a":[ ]}', b'{"a":[-1]}',
    b'{"a1":1}', b'{"a2":1}', b'{"a":{"b":1}}', b'{"a":{}}', b'{}', b'[]', b'[1]', b'["x"]', b'[{"a":1},{"b":"x"}]',
    b'{"a":12345678901234567890}', b'{"a":123456789012345678}', b'{"a":1234567890123456789012345678901234567890}',
    b'{"a":"\xc3\xa9"}', b'{"a":"\xff"}', b'{"a:1":2}', b'{"a,1":2}', b'{"a":":,"}', b'12', b'"x"', b'x', b'',
    b'\x00\x00\x00\x00\x07abc', b'\x00\x00\x00\x00\x07ab', b'\x00\x00\x00\x00\x08abcd', b'\x00\x00\x00\x00\x07',
    b'\x00\x00\x00\x00\x00\x00\x00\x01', b'\x00\xff',
    # Not JSON, although the pattern without their contents looks like JSON:
    b'{"a":}', b'{"a":[,]}', b'{"a":[1,]}', b'{"a":[-]}', b'{"a":-}', b'{"a":01}', b'{"a":1.}', b'{"a":.5}',
    b'{"a":1e}', b'{"a":1.5e}', b'{"a":true5}', b'{"a":+1}', b'{"a":"\\q"}', b'{"a":"\x01"}', b'{"a":1', b'{"a":"x',
    b'{"a":1 2}', b'{"a" 1}', b'{a:1}', b"{'a':1}",
]  # fmt: skip


def test_values_of_one_pattern_have_one_type(spark) -> None:  # type: ignore[no-untyped-def]
    from pyspark.sql import functions as f

    from spark_apps.models.value_shapes import _shape, shapes_of

    chance = random.Random(7)  # noqa: S311 no secret
    of_sides = [side + value for value in _TRICKY for side in (b"\0", b"\1")]  # of an outer join
    values = [*_TRICKY, *of_sides, *(json.dumps(_anything(chance, 3)).encode() for _ in range(3000))]
    rows = [("demo/topic", position, value) for position, value in enumerate(values)]
    frame = driver_rows(spark, rows, "resource string, position bigint, value binary").repartition(3).persist()

    nobody = f.lit(None).cast("bigint")
    typed = frame.withColumn("is_deep", f.lit(False)).select(_shape(nobody, nobody).alias("shape"))
    exactly = Counter(row.shape for row in typed.collect())
    counted: Counter[str] = Counter()
    for row in shapes_of(frame).collect():
        counted[row.shape] += row["count"]
    assert counted == exactly


def test_patterns_are_few_where_values_repeat_one() -> None:
    from spark_apps.models.json_look_alikes import look_alikes

    values = [json.dumps({"id": f"o-{i}", "total": i / 7 + 0.01, "lines": [{"n": i}]}).encode() for i in range(1000)]
    batch = pa.table({"resource": ["t"] * 1000, "position": list(range(1000)), "value": values}).to_batches()
    (counted,) = look_alikes({"t": []})(batch)
    assert counted.num_rows <= 3  # `.0`, exponents
    assert sum(counted["count"].to_pylist()) == 1000
    assert (min(counted["first"].to_pylist()), max(counted["last"].to_pylist())) == (0, 999)


def test_large_values_are_processed_in_small_batches() -> None:
    from spark_apps.models.json_look_alikes import look_alikes

    values = [json.dumps({"a": "x" * 100_000, "b": i}).encode() for i in range(100)]
    batches = pa.table({"resource": ["t"] * 100, "position": list(range(100)), "value": values}).to_batches()
    counted = list(look_alikes({"t": [49]})(batches))
    assert len(counted) > 1
    found = Counter[int]()
    for batch in counted:
        found.update(dict(zip(batch["bucket"].to_pylist(), batch["count"].to_pylist(), strict=True)))
    assert found == {0: 50, 1: 50}  # the position of an edge lies before it


def _anything(chance: random.Random, depth: int) -> object:
    match chance.randrange(9 if depth else 7):
        case 0:
            return chance.randrange(-1000, 10 ** chance.randrange(1, 25))
        case 1:
            return round(chance.uniform(-50, 50), chance.randrange(3))
        case 2:
            return chance.uniform(0, 1) * 10.0 ** chance.randrange(-12, 25)
        case 3:
            return chance.choice(["", "plain", 'q"uote', "back\\slash", "12", "{,}", "é", "\n", "a:1,"])
        case 4:
            return chance.choice([True, False])
        case 5 | 6:
            return None
        case 7:
            return [_anything(chance, depth - 1) for _ in range(chance.randrange(4))]
        case _:
            return {chance.choice(["a", "b1", "b2", 'k"', "x:3", " "]): _anything(chance, depth - 1) for _ in range(3)}
