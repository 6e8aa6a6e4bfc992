"""unfilled_caches: the part of block caches and write buffers that the stores of a process cannot fill."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

PROCESS = {"cluster": "c", "app": "a", "endpoint": "e", "rocksdb_shared_cache": False}
STORE = {"cluster": "c", "app": "a", "endpoint": "e", "store": "s", "tasks": 2, "segments": 3, "sst_bytes": 1000,
         "memtable_bytes": 20, "block_cache_capacity_bytes": 1000, "expected_bytes": 6600}  # fmt: skip
"""Caches of 6,000 bytes and write buffers of 600, of which two tasks fill twice 20 bytes."""
DAYS = {"over": {"hours": 48}}
FOUND = (
    "select cluster, endpoint, unfilled_bytes from metrics.unfilled_caches(:hour, 7, 1, 14, 2, :endpoints) order by 1"
)


def _unfilled(
    warehouse: sa.Engine, stores: list[dict[str, Any]], processes: list[dict[str, Any]] | None = None
) -> list[tuple[Any, ...]]:
    given = {"metrics.jvm_app_hourly": processes or [PROCESS], "metrics.state_store_memory_hourly": stores}
    return rows_for(warehouse, given, FOUND, endpoints=["e"])


def _grown(hourly: float, **more: Any) -> dict[str, Any]:
    return STORE | {"over": {"hours": 48, "rise": {"sst_bytes": hourly}}} | more


@pytest.mark.parametrize(
    ("stores", "unfilled"),
    [
        ([STORE | DAYS], 4000 + 560),  # blocks are twice as large in the cache
        ([_grown(1)], 6000 - 2 * (1000 + 14 * 24) + 600 - 40 - 14 * 24),
        ([_grown(-5)], 4000 + 560),  # stores that shrink may grow again
        ([_grown(100)], 0),
        ([STORE | DAYS | {"expected_bytes": 5000}], 4000),
        ([STORE | DAYS | {"memtable_bytes": None}], 4000),
        ([STORE | {"over": {"hours": 47, "until": -1}}, STORE | {"memtable_bytes": 200}], 4000 + 200),
        ([STORE | {"over": {"hours": 25}}], 4000 + 560),
        ([STORE | {"over": {"hours": 24}}], 0),  # growth is known for less than a day
        ([STORE | {"over": {"hours": 48, "until": -168}}, STORE], 0),  # older than data_days
        ([STORE | DAYS | {"sst_bytes": None}], 0),
        ([STORE | DAYS | {"tasks": 1}], 1000 + 3560),
        # Hours in which a process of the application did not report do not count.
        ([STORE | {"over": {"hours": 18, "until": -12}}, STORE, STORE | {"endpoint": "f", "sst_bytes": None}], 0),
    ],
    ids=["steady", "grows", "shrinks", "outgrows the cache", "no write buffers", "write buffers not reported",
         "highest write buffers", "a day", "less than a day", "older", "size not reported", "one task",
         "another process did not report"],
)  # fmt: skip
def test_what_the_data_and_its_growth_leave_unfilled(
    module_warehouse: sa.Engine, stores: list[dict[str, Any]], unfilled: float
) -> None:
    assert _unfilled(module_warehouse, stores) == [("c", "e", unfilled)]


@pytest.mark.parametrize(
    ("stores", "unfilled"),
    [
        ([STORE | DAYS], 7000),
        ([STORE | DAYS, STORE | DAYS | {"store": "t", "expected_bytes": 1}], 5000),
        ([STORE | DAYS, STORE | DAYS | {"store": "t", "sst_bytes": 9000}], 0),
        ([STORE | DAYS, STORE | {"store": "t"}], None),
        ([STORE | DAYS, STORE | DAYS | {"store": "t", "expected_bytes": 0}], None),
    ],
    ids=["one store", "two stores", "full", "growth of one unknown", "write buffers in the cache"],
)
def test_a_shared_cache_is_filled_by_all_stores(
    module_warehouse: sa.Engine, stores: list[dict[str, Any]], unfilled: float | None
) -> None:
    process = PROCESS | {"rocksdb_shared_cache": True, "rocksdb_shared_bytes": 9000}
    assert _unfilled(module_warehouse, stores, [process]) == [("c", "e", unfilled)]


def test_a_cache_that_is_not_known_to_be_shared_is_the_stores_own(module_warehouse: sa.Engine) -> None:
    process = PROCESS | {"rocksdb_shared_cache": None}
    assert _unfilled(module_warehouse, [STORE | DAYS], [process]) == [("c", "e", 4560)]


def test_growth_is_the_mean_of_an_applications_tasks(module_warehouse: sa.Engine) -> None:
    other = _grown(6, endpoint="f", tasks=4, memtable_bytes=340)
    found = _unfilled(module_warehouse, [STORE | DAYS, other], [PROCESS, PROCESS | {"endpoint": "f"}])
    assert found == [("c", "e", 6000 - 2 * (1000 + 2 * 14 * 24) + 0)]


def test_clusters_applications_and_stores_are_kept_apart(module_warehouse: sa.Engine) -> None:
    others: list[dict[str, Any]] = [{"cluster": "d"}, {"app": "b"}]
    stores = [STORE | DAYS, STORE | DAYS | {"store": "t"}, *(STORE | DAYS | {"sst_bytes": 9} | one for one in others)]
    earlier = {"hour": HOUR - timedelta(hours=1)}
    processes = [PROCESS, PROCESS | {"endpoint": "g"}, PROCESS | earlier, *(PROCESS | one for one in others)]
    assert sorted(_unfilled(module_warehouse, stores, processes)) == [
        ("c", "e", 6542), ("c", "e", 2 * 4560), ("d", "e", 6542),
    ]  # fmt: skip


def test_the_memory_of_a_process_does_not_include_what_its_stores_cannot_fill(module_warehouse: sa.Engine) -> None:
    configured = {"store_instances": 6, "rocksdb_expected_bytes": 6600, "rocksdb_expected_max_bytes": 7000}
    sizes = {("c", "e"): 1000, ("c", "f"): 2000, ("d", "e"): 3000}
    places = {key: {"cluster": key[0], "endpoint": key[1]} for key in sizes}
    given = {
        "metrics.jvm_app_hourly": [PROCESS | configured | place for place in places.values()],
        "metrics.state_store_memory_hourly": [
            STORE | DAYS | {"sst_bytes": size} | places[key] for key, size in sizes.items()
        ],
    }
    call = "metrics.process_memory(:hour, 2, 1.05, 7, 1, 14, 2)"
    assert rows_for(module_warehouse, given, f"select cluster, endpoint, off_heap_bytes from {call} order by 1, 2") == [
        ("c", "e", 6600 - 4000 - 560), ("c", "f", 6600 - 2000 - 560), ("d", "e", 6600 - 560),
    ]  # fmt: skip
