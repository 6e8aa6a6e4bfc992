"""What a group can process and how its topic is partitioned: thread_capacity, hot_partition, copartitioned_topics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

GROUP = {"cluster": "c", "group_id": "app", "members": 2, "partitions": 4, "records_consumed": 0}
PROCESS = {"cluster": "c", "app": "a", "endpoint": "e", "application_id": "app", "stream_threads_alive": 3,
           "records_processed": 1000, "record_latency_ms": 10}  # fmt: skip
READ = {"cluster": "c", "group_id": "app", "topic": "t", "partition": 0}
TOPIC = {"cluster": "c", "topic": "t", "kind": "plain", "partitions": 6}


def _at(ago: int) -> dict[str, Any]:
    return {"hour": HOUR - timedelta(hours=ago)}


@pytest.mark.parametrize(
    ("groups", "processes", "expected"),
    [
        pytest.param([GROUP], [PROCESS], (2, 1000, 10, 0, 100, True), id="latency"),
        pytest.param([GROUP | {"members": 0}], [PROCESS, PROCESS | {"endpoint": "f", "record_latency_ms": 30}],
                     (6, 2000, 20, None, 50, True), id="threads of all processes, where the group has no members"),
        pytest.param([GROUP | {"members": None}], [PROCESS | {"stream_threads_alive": 0}],
                     (None, 1000, 10, 0, 100, True), id="neither members nor threads"),
        pytest.param([GROUP], [PROCESS, PROCESS | {"endpoint": "f", "record_latency_ms": None}],
                     (2, 2000, 10, 0, 100, True), id="latency of the records that have one"),
        pytest.param([GROUP], [PROCESS | {"records_processed": 999}], (2, 999, 10, 0, None, False),
                     id="too few records"),
        pytest.param([GROUP], [PROCESS | {"record_latency_ms": 0}], (2, 1000, 0, 0, None, False), id="latency of 0 ms"),
        pytest.param([GROUP, GROUP | _at(1) | {"records_consumed": 720_000}], [PROCESS | {"cluster": "d"}], None,
                     id="neither latency nor catch-up"),
        pytest.param([GROUP, GROUP | _at(23) | {"records_consumed": 2 * 3600 * 110}], [PROCESS],
                     (2, 1000, 10, 110, 110, True), id="seen within the spread"),
        pytest.param([GROUP, GROUP | _at(23) | {"records_consumed": 2 * 3600 * 111}], [PROCESS],
                     (2, 1000, 10, 111, 100, True), id="seen above the spread"),
        pytest.param([GROUP, GROUP | _at(24) | {"records_consumed": 2 * 3600 * 111}], [PROCESS],
                     (2, 1000, 10, 0, 100, True), id="seen before the history"),
        pytest.param([GROUP, GROUP | _at(1) | {"members": 9, "records_consumed": 4 * 3600 * 50}], [PROCESS],
                     (2, 1000, 10, 50, 100, True), id="more members than partitions"),
    ],
)  # fmt: skip
def test_capacity_from_latency(
    module_warehouse: sa.Engine, groups: list[dict[str, Any]], processes: list[dict[str, Any]],
    expected: tuple[Any, ...] | None,
) -> None:  # fmt: skip
    assert _capacity(module_warehouse, groups, processes) == ([] if expected is None else [("c", "app", *expected)])


@pytest.mark.parametrize(
    ("busy", "before", "expected"),
    [
        pytest.param({"lag_seconds_max": 100}, {"lag_seconds_max": 1000}, (120, False), id="caught up"),
        pytest.param({"lag_seconds_max": 101}, {"lag_seconds_max": 1000}, (100, True), id="hardly caught up"),
        pytest.param({"lag_seconds_max": None}, {"lag_seconds_max": 1000}, (100, True), id="lag unknown"),
        pytest.param({"lag_seconds_max": 100, "busy_member_per_second": 80}, {"lag_seconds_max": 1000}, (100, True),
                     id="slower than the latency's"),
        pytest.param({"lag_seconds_max": 100, "busy_member_per_second": 100}, {"lag_seconds_max": 1000}, (100, False),
                     id="as fast as the latency's"),
        pytest.param({"lag_seconds_max": 100} | _at(24), {"lag_seconds_max": 1000} | _at(25), (100, True),
                     id="before the history"),
        pytest.param({"lag_seconds_max": 100} | _at(23), {"lag_seconds_max": 1000} | _at(24), (120, False),
                     id="in the first hour of the history"),
        pytest.param({"lag_seconds_max": 100}, {"lag_seconds_max": 1000} | _at(7), (100, True),
                     id="not the hour before"),
        pytest.param({"lag_seconds_max": 100}, {"lag_seconds_max": 1000, "group_id": "other"}, (100, True),
                     id="another group's lag"),
        pytest.param({"lag_seconds_max": 100}, {"lag_seconds_max": 1000, "cluster": "d"}, (100, True),
                     id="another cluster's lag"),
    ],
)  # fmt: skip
def test_capacity_from_a_catch_up_phase(
    module_warehouse: sa.Engine, busy: dict[str, Any], before: dict[str, Any], expected: tuple[float, bool]
) -> None:
    groups = [GROUP, GROUP | _at(5) | {"busy_member_per_second": 120} | busy, GROUP | _at(6) | before]
    assert [row[6:] for row in _capacity(module_warehouse, groups, [PROCESS])] == [expected]


def test_a_catch_up_phase_alone_is_a_capacity(module_warehouse: sa.Engine) -> None:
    groups = [GROUP, GROUP | _at(5) | {"busy_member_per_second": 120, "lag_seconds_max": 0},
              GROUP | _at(6) | {"lag_seconds_max": 900}]  # fmt: skip
    groups += [row | {"group_id": "idle", "busy_member_per_second": 0} for row in groups]
    assert _capacity(module_warehouse, groups, []) == [("c", "app", 2, None, None, 0, 120, False)]


def _capacity(
    warehouse: sa.Engine, groups: list[dict[str, Any]], processes: list[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    given = {"metrics.consumer_group_hourly": groups, "metrics.jvm_app_hourly": processes}
    return rows_for(warehouse, given, "select * from public.thread_capacity(:hour, 1, 1000, 900, 0.1)")


def test_the_hot_partition_and_its_own_peak(module_warehouse: sa.Engine) -> None:
    rows = [READ | {"partition": partition, "arriving_per_second": rate}
            for partition, rate in ((0, 10), (1, 30), (2, 30), (3, None))]  # fmt: skip
    rows += [READ | {"partition": 1, "arriving_per_second": 20 + ago, **_at(ago)} for ago in range(1, 12)]
    others = [READ | {"arriving_per_second": 99, "partition": 3, **other}
              for other in ({"cluster": "d"}, {"group_id": "g"}, {"topic": "u"}, _at(1))]  # fmt: skip
    older = [READ | {"partition": 1, "arriving_per_second": 900, **_at(24)}]
    call = "select * from public.hot_partition(:hour, 'c', 't', 'app', 1)"
    given = {"metrics.consumer_partition_hourly": [*rows, *others, *older]}
    assert rows_for(module_warehouse, given, call) == [(1, 12, 31)]
    given["metrics.consumer_partition_hourly"].remove(rows[-1])
    assert rows_for(module_warehouse, given, call) == [(1, None, None)]  # 11 of 24 hours
    assert rows_for(module_warehouse, {}, call) == []


def test_copartitioned_topics_and_their_owners(module_warehouse: sa.Engine) -> None:
    changelog = TOPIC | {"kind": "changelog", "application_id": "app"}
    topics = [
        TOPIC, TOPIC | {"topic": "read"}, TOPIC | {"topic": "app-x-repartition", "kind": "repartition"},
        TOPIC | {"topic": "wide", "partitions": 12}, TOPIC | {"topic": "left"}, TOPIC | {"topic": "unread"},
        TOPIC | {"topic": "past", **_at(1)}, TOPIC | {"topic": "other cluster", "cluster": "d"},
        changelog | {"topic": "log"}, changelog | {"topic": "log of another", "application_id": "other"},
        changelog | {"topic": "wide log", "partitions": 12}, TOPIC | {"topic": "internal", "kind": "internal"},
    ]  # fmt: skip
    read = ("t", "read", "app-x-repartition", "wide", "other cluster", "internal", "past")
    reads = [READ | {"topic": topic} for topic in read]
    reads += [READ | {"topic": "left", "is_assigned": False}]
    reads += [READ | {"topic": "unread", **other} for other in ({"group_id": "g"}, {"cluster": "d"}, _at(1))]
    owners = [{"position": 1, "key_pattern": "^topic:c/(read|log)$", "owner": "crm"},
              {"position": 2, "key_pattern": "unread|wide", "owner": "ops"}]  # fmt: skip
    given = {"inventory.topic_hourly": topics, "metrics.consumer_partition_hourly": reads, "detect.owner": owners}
    call = "select * from public.copartitioned_topics(:hour, 'c', '{}', 'app')"
    assert rows_for(module_warehouse, given, call.format("t")) == [("app-x-repartition, log, read", "crm")]
    assert rows_for(module_warehouse, given, call.format("absent")) == [(None, None)]
