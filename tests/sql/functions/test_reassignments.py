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
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
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
    brokers(connection, 0, {1: None})
    brokers(connection, 0, {1: 1}, cluster="d")
    found = called(connection, "reassignment_hours(array['c'], :hour - interval '2 hours', :hour) order by hour")
    assert [tuple(row.values()) for row in found] == [
        (HOUR - timedelta(hours=1), "c", True, True, True), (HOUR, "c", False, False, False),
    ]  # fmt: skip
