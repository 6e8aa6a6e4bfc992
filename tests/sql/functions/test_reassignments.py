"""Functions on partition reassignments: what is running, who takes part, and which throttles are set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_rows

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"


def rate(value: int, source: str = "dynamic_broker_config") -> dict[str, str]:
    return {"value": str(value), "source": source}


@pytest.fixture
def connection(module_warehouse: sa.Engine) -> Iterator[sa.Connection]:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def given(connection: sa.Connection, table: str, *rows: dict[str, Any]) -> None:
    insert_rows(connection, table, ({"hour": HOUR, "cluster": "c"} | row for row in rows))


def brokers(connection: sa.Connection, hours_ago: int, adding: dict[int, int | None], **columns: Any) -> None:
    """The brokers of cluster c in an hour, with how many replicas each receives."""
    hour = HOUR - timedelta(hours=hours_ago)
    given(
        connection, "inventory.broker_hourly",
        *({"hour": hour, "broker_id": broker, "is_listed": True, "adding_replicas": n, "throttles": {}} | columns
          for broker, n in adding.items()),
    )  # fmt: skip


def moving(connection: sa.Connection, **columns: Any) -> None:
    given(connection, "inventory.reassignment_hourly", {
        "topic": "t", "partition": 0, "replicas": [1, 2, 3], "adding": [3], "removing": [1], "partition_bytes": 100,
        "copied_bytes": 40, "left_bytes": 60,
    } | columns)  # fmt: skip


def called(connection: sa.Connection, call: str) -> list[dict[str, Any]]:
    found = connection.execute(sa.text(f"select * from public.{call}"), {"hour": HOUR}).mappings()
    return [dict(row) for row in found]


def reassignment(connection: sa.Connection, cluster: str = "c") -> dict[str, Any]:
    [row] = [row for row in called(connection, "reassignments(:hour)") if row["cluster"] == cluster]
    return row


def test_a_reassignment_is_summed_up_over_its_partitions(connection: sa.Connection) -> None:
    brokers(connection, 0, {1: 0, 3: 2})
    moving(connection)
    moving(connection, partition=1, adding=[3, 4], left_bytes=150)
    moving(connection, partition=2, left_bytes=None)
    moving(connection, partition=3, adding=[])  # only removes replicas
    found = reassignment(connection)
    assert (found["is_reported"], found["is_running"]) == (True, True)
    assert (found["moving_partitions"], found["moving_bytes"], found["left_bytes"]) == (3, 400.0, 210.0)


def test_a_reassignment_runs_since_the_hour_after_the_last_without_one(connection: sa.Connection) -> None:
    for ago, adding in ((6, 1), (5, 0), (4, 1), (3, None), (2, 1), (0, 1)):
        brokers(connection, ago, {3: adding})
    assert reassignment(connection)["running_since"] == HOUR - timedelta(hours=4)


def test_a_reassignment_that_ended_runs_no_more(connection: sa.Connection) -> None:
    brokers(connection, 1, {3: 1})
    brokers(connection, 0, {3: 0})
    found = reassignment(connection)
    assert (found["is_running"], found["running_since"], found["moving_partitions"]) == (False, None, None)


def test_a_cluster_that_lists_no_reassignments_is_not_reported(connection: sa.Connection) -> None:
    brokers(connection, 0, {1: None})
    brokers(connection, 0, {1: 0}, cluster="d")
    assert [(row["cluster"], row["is_reported"]) for row in called(connection, "reassignments(:hour)")] == [
        ("c", False), ("d", True),
    ]  # fmt: skip


def test_copied_bytes_are_unknown_if_one_broker_does_not_report_them(connection: sa.Connection) -> None:
    brokers(connection, 0, {1: 0, 3: 1, 4: 1})
    moving(connection, adding=[3, 4])
    copied = [{"broker_id": n, "endpoint": f"b{n}", "reassignment_bytes_in_per_second": 10.0 * n} for n in (3, 4, 5)]
    given(connection, "metrics.broker_hourly", *copied)
    assert reassignment(connection)["copied_bytes_per_second"] == 70.0
    connection.execute(
        sa.text("update metrics.broker_hourly set reassignment_bytes_in_per_second = null where broker_id = 4")
    )
    assert reassignment(connection)["copied_bytes_per_second"] is None
    connection.execute(sa.text("update inventory.broker_hourly set is_listed = false where broker_id = 4"))
    assert reassignment(connection)["copied_bytes_per_second"] == 30.0


def test_written_bytes_are_those_of_the_broker_that_receives_most(connection: sa.Connection) -> None:
    brokers(connection, 0, {3: 2, 4: 1})
    moving(connection)
    moving(connection, partition=1)
    moving(connection, topic="u", adding=[4])
    for topic, partitions, bytes_in in (("t", 4, 3600 * 400), ("u", 1, 3600 * 150)):
        given(connection, "inventory.topic_hourly", {"topic": topic, "partitions": partitions})
        given(connection, "metrics.topic_hourly", {"topic": topic, "covered_seconds": 3600, "bytes_in": bytes_in})
    assert reassignment(connection)["written_bytes_per_second"] == 200.0


@pytest.mark.parametrize(("names_replicas", "expected"), [(True, 500.0), (False, None)])
def test_a_throttle_is_in_force_if_a_topic_names_replicas(
    connection: sa.Connection, names_replicas: bool, expected: float | None
) -> None:
    brokers(connection, 0, {3: 1}, throttles={FOLLOWER_RATE: rate(900), LEADER_RATE: rate(500)})
    brokers(connection, 0, {4: 0}, throttles={FOLLOWER_RATE: rate(10)})  # takes no part
    moving(connection)
    replicas = "0:3" if names_replicas else None
    given(connection, "inventory.topic_hourly", {"topic": "t", "follower_throttled_replicas": replicas})
    assert reassignment(connection)["throttle_bytes_per_second"] == expected


def test_leaders_and_receiving_brokers_take_part(connection: sa.Connection) -> None:
    moving(connection)
    moving(connection, partition=1, adding=[3, 4])
    moving(connection, partition=2, adding=[])
    moving(connection, cluster="d", adding=[7])
    leaders = [{"topic": "t", "partition": n, "leader": leader} for n, leader in enumerate((1, 4, 5))]
    given(connection, "metrics.partition_hourly", *leaders)
    found = called(connection, "reassignment_brokers(:hour)")
    assert sorted((row["cluster"], row["broker_id"]) for row in found) == [("c", 1), ("c", 3), ("c", 4), ("d", 7)]


def test_each_setting_of_a_broker_is_a_rate(connection: sa.Connection) -> None:
    brokers(connection, 0, {1: 0}, throttles={LEADER_RATE: rate(5)})
    brokers(connection, 0, {2: 0}, throttles={FOLLOWER_RATE: rate(7, "dynamic_default_broker_config")})
    brokers(connection, 0, {3: 0}, throttles=None)
    brokers(connection, 1, {1: 0}, throttles={FOLLOWER_RATE: rate(1)})
    found = called(connection, "throttle_rates(:hour) order by broker_id")
    assert [tuple(row.values()) for row in found] == [
        ("c", 1, LEADER_RATE, 5.0, False), ("c", 2, FOLLOWER_RATE, 7.0, True),
    ]  # fmt: skip


def test_hours_of_other_clusters_and_before_are_left_out(connection: sa.Connection) -> None:
    brokers(connection, 2, {1: 1})
    brokers(connection, 1, {1: 1, 2: None}, throttles={LEADER_RATE: rate(5)})
    brokers(connection, 0, {1: None}, throttles=None)
    brokers(connection, 0, {1: 1}, cluster="d")
    found = called(connection, "reassignment_hours(array['c'], :hour - interval '2 hours', :hour) order by hour")
    assert [tuple(row.values()) for row in found] == [
        (HOUR - timedelta(hours=1), "c", True, True, True), (HOUR, "c", False, False, False),
    ]  # fmt: skip


def running(connection: sa.Connection, since: int = 3) -> None:
    """A reassignment of t-0 from broker 1 to 3, that many hours ago; broker 2 takes no part."""
    brokers(connection, since + 1, {1: 0, 2: 0, 3: 0})
    for ago in range(since + 1):
        brokers(connection, ago, {1: 0, 2: 0, 3: 1})
    moving(connection)


def partition(connection: sa.Connection, topic: str, number: int, hours_ago: int = 0, **columns: Any) -> None:
    row = {"topic": topic, "partition": number, "replicas": 3, "isr": 2, "hour": HOUR - timedelta(hours=hours_ago)}
    given(connection, "metrics.partition_hourly", row | columns)


@pytest.mark.parametrize(
    ("broker", "replicas"),
    [
        ({}, 1),
        ({"process_started_at": HOUR - timedelta(minutes=1)}, 1),
        ({"process_started_at": HOUR}, None),  # restarted in the hour
    ],
)
def test_replicas_out_of_sync_are_counted_now_and_before(
    connection: sa.Connection, broker: dict[str, Any], replicas: int | None
) -> None:
    running(connection)
    given(connection, "metrics.broker_hourly", {"broker_id": 2, "endpoint": "b2"} | broker)
    partition(connection, "t", 0, leader=1, missing_brokers=[2, 3])  # 3 is being added
    partition(connection, "u", 0, leader=2, missing_brokers=[2])  # neither takes part
    partition(connection, "t", 1, isr=0, missing_brokers=[1, 2])  # offline
    partition(connection, "u", 0, hours_ago=4, leader=2, missing_brokers=[1, 3])
    partition(connection, "u", 0, hours_ago=2, leader=2, missing_brokers=[1, 3])
    [found] = called(connection, "reassignment_out_of_sync(:hour)")
    expected = (replicas or 0, 2, ["2"] if replicas else None)
    assert (found["replicas"], found["replicas_before"], found["broker_ids"]) == expected


def test_replicas_of_a_broker_that_is_not_listed_or_in_sync_again_do_not_count(connection: sa.Connection) -> None:
    running(connection)
    partition(connection, "t", 0, leader=1, missing_brokers=[2])
    connection.execute(sa.text("update inventory.broker_hourly set is_listed = false where broker_id = 2"))
    assert called(connection, "reassignment_out_of_sync(:hour)") == []
    connection.execute(sa.text("update inventory.broker_hourly set is_listed = true"))
    assert len(called(connection, "reassignment_out_of_sync(:hour)")) == 1
    given(
        connection, "metrics.broker_hourly", {"broker_id": 1, "endpoint": "b1", "under_replicated_partitions": 0}
    )  # fmt: skip
    assert called(connection, "reassignment_out_of_sync(:hour)") == []


def test_flush_latency_is_compared_with_the_hours_before_the_reassignment(connection: sa.Connection) -> None:
    running(connection)
    traffic = {"bytes_in_per_second": 60.0, "bytes_out_per_second": 20.0, "replication_bytes_in_per_second": 20.0}
    broker = {"endpoint": "b3", "broker_id": 3, "samples": 3, "log_flushes_per_second": 1.0} | traffic
    now = {"reassignment_bytes_in_per_second": 20.0, "reassignment_bytes_out_per_second": 5.0, "log_flush_p95_ms": 30.0}
    hours = {ago: {"log_flush_p95_ms": 50.0 if ago <= 3 else 9.0} for ago in range(1, 16)} | {0: now}
    rows = ({"hour": HOUR - timedelta(hours=ago)} | broker | columns for ago, columns in hours.items())
    given(connection, "metrics.broker_hourly", *rows)
    found = {row["broker_id"]: row for row in called(connection, "reassignment_flushes(:hour, 12)")}
    assert found.keys() == {3}  # the leader is unknown
    assert (found[3]["log_flush_p95_ms"], found[3]["baseline_ms"]) == (30.0, 9.0)
    assert (found[3]["copied_bytes_per_second"], found[3]["copied_ratio"]) == (20.0, 0.25)
    assert called(connection, "reassignment_flushes(:hour, 13)")[0]["baseline_ms"] is None


@pytest.mark.parametrize(
    ("traffic", "ratio"),
    [
        ({"bytes_in_per_second": 30.0, "bytes_out_per_second": 20.0}, 0.5),
        ({"bytes_in_per_second": 30.0, "bytes_out_per_second": 0.0, "replication_bytes_out_per_second": 20.0}, 0.5),
        ({"bytes_in_per_second": 0.0, "bytes_out_per_second": 0.0}, None),
        ({}, None),
    ],
)
def test_copied_bytes_are_a_ratio_of_the_reported_traffic(
    connection: sa.Connection, traffic: dict[str, float], ratio: float | None
) -> None:
    running(connection)
    copied = {"reassignment_bytes_in_per_second": 20.0, "reassignment_bytes_out_per_second": 5.0}
    given(connection, "metrics.broker_hourly", {"endpoint": "b3", "broker_id": 3, "samples": 3} | copied | traffic)
    assert called(connection, "reassignment_flushes(:hour, 1)")[0]["copied_ratio"] == ratio


def test_a_broker_without_a_response_has_no_flush_latency(connection: sa.Connection) -> None:
    running(connection)
    [found] = called(connection, "reassignment_flushes(:hour, 1)")
    assert (found["broker_id"], found["samples"], found["baseline_ms"]) == (3, None, None)
    connection.execute(sa.text("update inventory.broker_hourly set is_listed = false where broker_id = 3"))
    assert called(connection, "reassignment_flushes(:hour, 1)") == []


def group(connection: sa.Connection, group_id: str, lag: float, before: float | None, **late: float) -> None:
    """A group with its lag now and on the day before the reassignment; `t_0=700` is the lag of a partition."""
    at = {HOUR: lag} | ({HOUR - timedelta(hours=5): before} if before is not None else {})
    lags = ({"hour": hour, "group_id": group_id, "lag_seconds_max": seconds} for hour, seconds in at.items())
    given(connection, "metrics.consumer_group_hourly", *lags)
    places = (
        {"group_id": group_id, "topic": name[0], "partition": int(name[2:]), "lag_seconds": seconds}
        for name, seconds in late.items()
    )
    given(connection, "metrics.consumer_partition_hourly", *places)


def test_groups_on_these_brokers_are_listed_with_their_late_partitions(connection: sa.Connection) -> None:
    running(connection)
    for number in (0, 1, 2):
        partition(connection, "t", number, leader=1)
    partition(connection, "u", 0, leader=2)
    group(connection, "risen", 700, 350, t_0=650, t_1=700, t_2=599, u_0=600)
    group(connection, "as_before", 700, 351, t_0=700)
    group(connection, "new", 700, None, t_0=700)
    group(connection, "elsewhere", 900, 0, u_0=900)
    found = {row["group_id"]: row for row in called(connection, "reassignment_groups(:hour, 600, 2)")}
    assert {name: row["has_risen"] for name, row in found.items()} == {"risen": True, "as_before": False, "new": False}
    risen = found["risen"]
    assert (risen["lag_seconds"], risen["late_partitions"], risen["led_late_partitions"]) == (700.0, 3, 2)
    assert risen["affected"] == [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    assert called(connection, "reassignment_groups(:hour, 950, 2)") == []  # no lag has risen


@pytest.mark.parametrize(
    ("running_for", "hours_ago", "is_compared"),
    [
        (3, 4, True), (3, 27, True), (3, 28, False),  # the day before the reassignment
        (3, 28 * 24, True), (3, 29 * 24, False),  # this hour of four weeks
        (24, 24, False), (25, 24, False), (24, 48, True),  # not since it began
    ],
)  # fmt: skip
def test_lag_is_compared_with_the_day_and_the_four_weeks_before(
    connection: sa.Connection, running_for: int, hours_ago: int, is_compared: bool
) -> None:
    running(connection, running_for)
    partition(connection, "t", 0, leader=1)
    group(connection, "other", 700, None, t_0=700)  # has risen, so that the groups of the cluster are listed
    group(connection, "g", 700, None, t_0=700)
    at = {hours_ago: 400.0, running_for + 10: 0.0}
    lags = [{"hour": HOUR - timedelta(hours=ago), "group_id": "g", "lag_seconds_max": lag} for ago, lag in at.items()]
    given(connection, "metrics.consumer_group_hourly", *lags, lags[-1] | {"group_id": "other"})
    found = {row["group_id"]: row["has_risen"] for row in called(connection, "reassignment_groups(:hour, 600, 2)")}
    assert found["g"] is not is_compared
