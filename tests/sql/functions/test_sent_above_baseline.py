"""sent_above_baseline: what the brokers of a cluster without bytes by topic send above their median."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

Rows = dict[str, list[dict[str, Any]]]
BROKER = {"cluster": "c", "broker_id": 1, "endpoint": "b1", "instance_id": "i", "bytes_out_per_second": 10,
          "bytes_in_per_second": 3, "replication_bytes_in_per_second": 1}  # fmt: skip


def _at(ago: int) -> dict[str, Any]:
    return {"hour": HOUR - timedelta(hours=ago)}


def _given(*, now: float | None = 60) -> Rows:
    """Two brokers that sent 10 and 20 bytes/s in each of four hours; in the hour, the first one sends `now`."""
    second = BROKER | {"broker_id": 2, "endpoint": "b2", "instance_id": "j", "bytes_out_per_second": 20}
    past = [row | _at(ago) for row in (BROKER, second) for ago in (1, 2, 3, 4)]
    return {
        "metrics.broker_hourly": [
            *past, BROKER | {"bytes_out_per_second": now, "replication_bytes_in_per_second": None}, second,
            BROKER | {"cluster": "d", "bytes_out_per_second": 900},
        ],
        "inventory.instance_hourly": [
            {"account": "1", "region": "r", "instance_id": instance, "memory_bytes": memory, **at}
            for instance, memory, at in (("i", 100, {}), ("j", 40, {}), ("k", 5000, {}), ("i", 7000, _at(1)))
        ],
        "metrics.consumer_group_hourly": [
            {"cluster": "c", "group_id": group, "lag_seconds_max": lag, **at}
            for group, lag, at in (("a", 7, {}), ("b", 9, {}), ("unknown", None, {}), ("a", 800, _at(1)))
        ] + [{"cluster": "d", "group_id": "a", "lag_seconds_max": 900}],
    }  # fmt: skip


def _found(warehouse: sa.Engine, given: Rows, hours: int = 4) -> list[tuple[Any, ...]]:
    query = "select * from public.sent_above_baseline(:hour, array['c'], 7, :hours, 0.5)"
    return rows_for(warehouse, given, query, hours=hours)


def test_bytes_above_the_median_page_cache_and_the_longest_lag(module_warehouse: sa.Engine) -> None:
    # 80 bytes/s instead of 30; half of 140 bytes of memory hold what comes in at 3 + 3 + 1 bytes/s for 10 s.
    assert _found(module_warehouse, _given()) == [("c", 30, 50 * 3600, 10, True, 9, "b", False)]


@pytest.mark.parametrize(
    ("outside", "baseline"),
    [
        (7 * 24, 30),  # the baseline is of seven days
        (7 * 24 - 1, 500),
        (-1, 30),  # a later hour
    ],
)
def test_the_baseline_is_of_the_days_before(module_warehouse: sa.Engine, outside: int, baseline: float) -> None:
    given = _given()
    given["metrics.broker_hourly"] = [row for row in given["metrics.broker_hourly"] if "hour" not in row]
    given["metrics.broker_hourly"] += [BROKER | _at(1) | {"bytes_out_per_second": 30}]
    given["metrics.broker_hourly"] += [BROKER | _at(outside) | {"bytes_out_per_second": 970}]
    assert [row[1] for row in _found(module_warehouse, given, hours=1)] == [baseline]


def test_too_few_hours_or_a_broker_that_did_not_respond(module_warehouse: sa.Engine) -> None:
    assert _found(module_warehouse, _given(), hours=5) == []
    assert _found(module_warehouse, _given(now=None)) == []


def test_lag_by_msk_is_a_lag_and_without_any_it_is_unknown(module_warehouse: sa.Engine) -> None:
    given = _given()
    given["metrics.consumer_group_hourly"] = []
    assert [row[4:7] for row in _found(module_warehouse, given)] == [(False, None, None)]
    given["metrics.msk_consumer_lag_hourly"] = [
        {"cluster": "c", "group_id": "m", "topic": topic, "time_lag_seconds_max": lag, **at}
        for topic, lag, at in (("t", 5, {}), ("u", 8, {}), ("v", None, {}), ("t", 700, _at(1)))
    ]
    assert [row[4:7] for row in _found(module_warehouse, given)] == [(True, 8, "m")]


def test_bytes_from_tiered_storage_do_not_count(module_warehouse: sa.Engine) -> None:
    given = _given()
    given["metrics.broker_hourly"] = [
        row | {"remote_fetch_bytes_per_second": 5} for row in given["metrics.broker_hourly"]
    ]
    [row] = _found(module_warehouse, given)
    assert (row[1], row[2], row[-1]) == (20, 50 * 3600, True)
