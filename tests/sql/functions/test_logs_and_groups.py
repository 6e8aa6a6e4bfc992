"""deleted_records, longer_retention, log_dir_growth, groups_replaying, topic_waits, stream_processes, restore_rates."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

TOPIC = {"cluster": "c", "topic": "t"}
PLACE = TOPIC | {"partition": 0}


def _at(ago: int) -> dict[str, Any]:
    return {"hour": HOUR - timedelta(hours=ago)}


def test_when_deleted_records_were_written(module_warehouse: sa.Engine) -> None:
    ends = {5: (0, 100), 4: (100, 200), 3: (200, 300), 2: (300, 400), 1: (400, 500), 0: (500, 600)}
    rows = [
        PLACE | _at(ago) | {"log_end_offset_first": first, "log_end_offset_last": last,
                            "log_start_offset": 350 if ago == 0 else 150 if ago == 1 else 0,
                            "offsets_at": HOUR - timedelta(hours=ago) + timedelta(minutes=30)}
        for ago, (first, last) in ends.items()
    ]  # fmt: skip
    rows += [{**row, "topic": "other", "log_end_offset_first": 0, "log_end_offset_last": 900} for row in rows]
    found = rows_for(
        module_warehouse, {"metrics.partition_hourly": rows},
        "select * from public.deleted_records(:hour, 1, 'c', 't', 0, 120, 350)",
    )  # fmt: skip
    # Offsets 120 to 350 were written 4 to 2 hours ago; their deletion was first seen in the middle of the hour before.
    assert found == [(HOUR - timedelta(hours=4), HOUR - timedelta(hours=1), 3.5 * 3600)]


@pytest.mark.parametrize(
    ("current_ms", "current_bytes", "expected"),
    [
        (3_600_000, None, (False, 3_600_000 + 36_000_000, None, 2 * 36_000)),
        (None, 1000, (True, None, 1000 + 36_000, 2 * 36_000)),
        (3_600_000_000, 1000, (True, None, 37_000, 2 * 36_000)),  # long enough by time
        (3_600_000, 5000, (False, 39_600_000, 37_000 + 4000, 2 * 36_000)),
        (3_600_000, 500_000, (False, 39_600_000, None, 2 * 36_000)),  # large enough by size
    ],
)
def test_a_longer_retention(
    module_warehouse: sa.Engine, current_ms: int | None, current_bytes: int | None, expected: tuple[Any, ...]
) -> None:
    replicas = [
        TOPIC | {"broker_id": broker, "log_dir": "d", "size_bytes": 2000, "partition_bytes": {"0": 2000}}
        for broker in (1, 2)
    ]
    found = rows_for(
        module_warehouse,
        {"metrics.replica_sample": replicas,
         "metrics.log_dir_hourly": [{"cluster": "c", "broker_id": 1, "log_dir": "d", "usable_bytes": 7}],
         "metrics.topic_hourly": [TOPIC | {"bytes_in": 3600, "covered_seconds": 3600}],
         "inventory.topic_hourly": [TOPIC | {"partitions": 1, "replication_factor": 2}]},
        "select is_by_size, retention_ms, retention_bytes, extra_bytes, brokers from public.longer_retention("
        ":hour, 'c', 't', 0, cast(:ms as bigint), cast(:bytes as bigint), 2000, 1, 7200, 10)",
        ms=current_ms, bytes=current_bytes,
    )  # fmt: skip
    assert [row[:4] for row in found] == [expected]
    assert found[0][4] == [
        {"broker_id": 1, "extra_bytes": 36_000, "free_bytes": 7},
        {"broker_id": 2, "extra_bytes": 36_000, "free_bytes": None},
    ]


def test_topics_that_have_grown_in_a_log_directory(module_warehouse: sa.Engine) -> None:
    now = {"a": 10, "b": 70, "c": 30, "d": 40, "e": 50, "f": 60, "shrinks": 5, "same": 8}
    before = {"a": 9, "b": 10, "shrinks": 9, "same": 8}
    rows = [
        {"cluster": "c", "broker_id": 1, "log_dir": path, "topic": topic, "size_bytes": size, **_at(ago)}
        for ago, sizes, path in ((0, now, "d"), (24, before, "d"), (0, now, "new"), (23, before, "new"))
        for topic, size in sizes.items()
    ]
    query = "select * from public.log_dir_growth(:hour, 'c', 1, :path)"
    given = {"metrics.replica_sample": rows}
    assert rows_for(module_warehouse, given, query, path="d") == [
        (1, "b", 70, 60), (2, "f", 60, 60), (3, "e", 50, 50), (4, "d", 40, 40), (5, "c", 30, 30)
    ]  # fmt: skip
    assert rows_for(module_warehouse, given, query, path="new") == []


def test_groups_that_read_old_records(module_warehouse: sa.Engine) -> None:
    groups = {"first": [(9, "ok"), (0, "ok")], "rewound": [(9, "ok"), (5, "rewind"), (3, "rewind"), (0, "ok")],
              "created": [(6, "ok"), (0, "ok")], "too long ago": [(10, "rewind"), (9, "ok")]}  # fmt: skip
    rows = [
        {"cluster": "c", "group_id": group, "status": status, **_at(ago)}
        for group, hours in groups.items()
        for ago, status in hours
    ]
    found = rows_for(
        module_warehouse, {"metrics.consumer_group_hourly": rows},
        "select group_id, since, is_new from public.groups_replaying(:hour, 10) order by group_id",
    )  # fmt: skip
    assert found == [
        ("created", HOUR - timedelta(hours=6), True), ("rewound", HOUR - timedelta(hours=3), False)
    ]  # fmt: skip


def test_how_long_records_wait_in_the_log(module_warehouse: sa.Engine) -> None:
    lags: list[tuple[int, float | None, float | None]] = [(0, None, None), (600, 10, 20), (900, 10, 100), (50, None, 5)]
    rows = [
        PLACE | {"group_id": "g", "partition": n, "lag_records": lag, "arriving_per_second": rate,
                 "commit_gap_p95_seconds": gap}
        for n, (lag, rate, gap) in enumerate([*lags, (700, 10, None)])
    ]  # fmt: skip
    rows.append({**rows[2], "group_id": "other"})
    found = rows_for(
        module_warehouse, {"metrics.consumer_partition_hourly": rows},
        "select * from public.topic_waits('c', 'g', :hour)",
    )  # fmt: skip
    assert found == [("t", (0 + 40 + 0) / 3, (0 + 60 + 90) / 3, 40)]


def test_processes_of_streams_applications(module_warehouse: sa.Engine) -> None:
    def process(endpoint: str, ago: int, samples: int | None, application: str | None) -> dict[str, Any]:
        return {"cluster": "c", "app": "a", "endpoint": endpoint, "samples": samples, "application_id": application,
                **_at(ago)}  # fmt: skip

    rows = [
        process("responds", 0, 4, "orders"), process("does not respond", 0, None, None),
        process("does not respond", 3, 4, "orders"), process("plain", 0, 4, None), process("plain", 3, 4, "orders"),
        process("never responded", 0, None, None), process("stopped", 1, 4, "orders"),
    ]  # fmt: skip
    found = rows_for(
        module_warehouse, {"metrics.jvm_app_hourly": rows},
        "select endpoint, application_id, samples from public.stream_processes(:hour) order by endpoint",
    )  # fmt: skip
    assert found == [("does not respond", "orders", None), ("responds", "orders", 4)]


def test_how_fast_state_was_restored(module_warehouse: sa.Engine) -> None:
    rates = {(0, "e1"): 100, (0, "e2"): 300, (47, "e1"): 200, (48, "e1"): 9000, (1, "e1"): None}
    rows = [
        {"cluster": "c", "app": "a", "endpoint": endpoint, "application_id": "orders",
         "restored_records_per_second": rate, **_at(ago)}
        for (ago, endpoint), rate in rates.items()
    ]  # fmt: skip
    found = rows_for(module_warehouse, {"metrics.jvm_app_hourly": rows}, "select * from public.restore_rates(:hour, 2)")
    assert found == [("c", "orders", 200, 2)]
