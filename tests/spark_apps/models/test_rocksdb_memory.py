"""RocksDB's memory: own and shared caches, segments, write buffers inside and outside the cache."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_apps.models.rocksdb_memory import by_process, by_store, store_instances
from spark_apps.runtime.driver_rows import driver_rows

pytestmark = pytest.mark.slow
MIB = 2**20
BUFFERS = 48 * MIB
START = datetime(2026, 1, 5, 10, tzinfo=UTC)


def bean(
    store: str,
    task: str,
    usage: float | None,
    capacity: float | None = 50 * MIB,
    *,
    kind: str = "key_value",
    **more: float,
) -> dict[str, Any]:
    """The RocksDB metrics of one store and task."""
    figures = {
        "block_cache_usage_bytes": usage,
        "block_cache_capacity_bytes": capacity,
        "block_cache_pinned_bytes": 88,
        "memtable_bytes": 2 * MIB,
        "memtable_unflushed_bytes": MIB,
        "table_readers_bytes": 1000,
        "sst_bytes": 7 * MIB,
        "keys": 10,
        **more,
    }
    return {"store": store, "task": task, "kind": kind, "figures": figures}


# name: (samples: lists of beans), expected (instances, measured, expected, shared)
PROCESSES: dict[str, tuple[list[list[dict[str, Any]]], tuple[Any, ...]]] = {
    "default stores, caches in use": (
        [[bean("s", "0_0", 20 * MIB), bean("s", "0_1", 21 * MIB)]],
        (2, 4 * MIB + 41 * MIB + 2000, 2 * (50 * MIB + BUFFERS), False),
    ),
    "default stores, caches all full": (
        [[bean("s", f"0_{n}", 50 * MIB - 100 - n) for n in range(4)]],
        (4, 8 * MIB + 4 * 50 * MIB - 406 + 4000, 4 * (50 * MIB + BUFFERS), False),
    ),
    "default stores, still empty": (
        [[bean("s", "0_0", 88), bean("s", "0_1", 88)]],
        (2, 4 * MIB + 176 + 2000, 2 * (50 * MIB + BUFFERS), False),
    ),
    "a windowed store of which two segments are open": (
        [[bean("w", "0_0", 5 * MIB, 100 * MIB, kind="window")]],
        (1, 7 * MIB + 1000, 3 * (50 * MIB + BUFFERS), False),
    ),
    "own caches of another size, windowed beside key-value": (
        [[bean("s", "0_0", 5 * MIB, 8 * MIB), bean("w", "0_0", 6 * MIB, 16 * MIB, kind="window")]],
        (2, 15 * MIB + 2000, (8 * MIB + BUFFERS) + 3 * (8 * MIB + BUFFERS), False),
    ),
    "one shared cache, write buffers outside": (
        [[bean("s", "0_0", 20 * MIB, 64 * MIB), bean("w", "0_0", 20 * MIB, 64 * MIB, kind="window")]],
        (2, 4 * MIB + 20 * MIB + 2000, 64 * MIB + BUFFERS + 3 * BUFFERS, True),
    ),
    "one shared cache that holds the write buffers": (
        [[bean(s, "0_0", 20 * MIB, 64 * MIB, block_cache_pinned_bytes=9 * MIB) for s in "abc"]],
        (3, 20 * MIB + 3000, 64 * MIB, True),
    ),
    "a shared cache that moves while it is read, still in the second sample": (
        [
            [bean("s", "0_0", 20 * MIB, 64 * MIB), bean("s", "0_1", 23 * MIB, 64 * MIB)],
            [bean("s", "0_0", 24 * MIB, 64 * MIB), bean("s", "0_1", 24 * MIB + 100, 64 * MIB)],
        ],
        (2, 4 * MIB + 24 * MIB + 100 + 2000, 64 * MIB + 2 * BUFFERS, True),
    ),
    "caches of a configured size, still empty: sharing unknown": (
        [[bean("s", "0_0", 88, 64 * MIB), bean("s", "0_1", 88, 64 * MIB)]],
        (2, 4 * MIB + 176 + 2000, None, None),
    ),
    "figures that JMX doesn't give": (
        [[bean("s", "0_0", None, None)]],
        (1, None, None, False),
    ),
}


def test_by_process_and_by_store(spark: Any) -> None:
    """All processes in one query, to pay Spark's start-up once."""
    samples = [
        ("c", "app", name, metric, _labels(one), START + timedelta(seconds=n), None if value is None else float(value))
        for name, (moments, _) in PROCESSES.items()
        for n, moment in enumerate(moments)
        for one in moment
        for metric, value in one["figures"].items()
    ]
    key = "cluster string, app string, endpoint string"
    buffers = [("c", "app", name, float(BUFFERS)) for name in PROCESSES]
    instances = store_instances(
        driver_rows(spark, samples, f"{key}, metric string, labels string, at timestamp, value double"),
        driver_rows(spark, buffers, f"{key}, write_buffers_bytes double"),
    ).persist()
    got = {row["endpoint"]: row for row in by_process(instances).collect()}
    for name, (_, expected) in PROCESSES.items():
        row = got[name]
        columns = ("store_instances", "rocksdb_measured_bytes", "rocksdb_expected_bytes", "rocksdb_shared_cache")
        assert tuple(row[c] for c in columns) == expected, name
        if row["rocksdb_expected_bytes"] is not None:
            assert row["rocksdb_expected_max_bytes"] == row["rocksdb_expected_bytes"], name
    empty = got["caches of a configured size, still empty: sharing unknown"]
    assert (empty["rocksdb_expected_max_bytes"], empty["rocksdb_shared_bytes"]) == (2 * (64 * MIB + BUFFERS), 0)
    assert got["one shared cache, write buffers outside"]["rocksdb_shared_bytes"] == 64 * MIB
    stores = {(row["endpoint"], row["store"]): row for row in by_store(instances).collect()}
    assert len(stores) == sum(len({b["store"] for b in moments[0]}) for moments, _ in PROCESSES.values())
    windowed = stores["a windowed store of which two segments are open", "w"]
    assert (windowed["tasks"], windowed["segments"], windowed["block_cache_capacity_bytes"]) == (1, 3, 50 * MIB)
    assert windowed["expected_bytes"] == 3 * (50 * MIB + BUFFERS)
    assert stores["one shared cache that holds the write buffers", "a"]["expected_bytes"] == 0
    assert stores["default stores, caches in use", "s"]["sst_bytes"] == 14 * MIB
    assert stores["caches of a configured size, still empty: sharing unknown", "s"]["expected_bytes"] is None


def _labels(one: dict[str, Any]) -> str:
    return json.dumps({key: one[key] for key in ("kind", "store", "task")}, sort_keys=True)
