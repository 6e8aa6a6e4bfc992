"""The functions that tell what brokers' disks read and who reads it, each on a few rows; `d` is another cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

Rows = dict[str, list[dict[str, Any]]]
PLACE = {"account": "1", "region": "r"}
T10 = HOUR + timedelta(minutes=10)
TOPIC = {"cluster": "c", "topic": "t", "covered_seconds": 100, "bytes_in": 1000, "bytes_out": 5000, "messages_in": 10,
         "counted_from": T10, "counted_to": T10 + timedelta(seconds=100)}  # fmt: skip
LOG = {"cluster": "c", "topic": "t", "log_start_offset": 0, "log_end_offset": 100, "log_end_offset_first": 90,
       "log_end_offset_last": 100}  # fmt: skip
READ = {"cluster": "c", "group_id": "g", "topic": "t", "records_consumed": 10, "consumed_seconds": 100, "commits": 5,
        "rewinds": 0, "lag_records": 0, "lag_seconds": 0}  # fmt: skip
BROKERS: Rows = {
    "metrics.broker_hourly": [{"cluster": "c", "endpoint": "e", "broker_id": 1, "instance_id": "i"},
                              {"cluster": "c", "endpoint": "f", "broker_id": 2, "instance_id": "i", "samples": 1},
                              {"cluster": "d", "endpoint": "e", "instance_id": None}],
    "inventory.instance_hourly": [PLACE | {"instance_id": "i", "memory_bytes": 8000}],
    "inventory.volume_hourly": [PLACE | {"volume_id": v, "instance_id": "i"} for v in ("v", "unknown")],
    "metrics.volume_hourly": [PLACE | {"volume_id": "v", "read_baseline_bytes_per_second": 10,
                                       "read_baseline_mad_bytes_per_second": 2}],
    "metrics.volume_sample": [
        PLACE | {"volume_id": "v", "at": HOUR + timedelta(minutes=m), "period_seconds": 60, "read_bytes": r * 60}
        for m, r in ((-1, 900), (10, 110), (11, 90), (12, 20), (60, 900))
    ],
}  # fmt: skip
SENT: Rows = {
    **BROKERS,
    "metrics.topic_hourly": [TOPIC, TOPIC | {"cluster": "d", "bytes_out": 7}],
    "metrics.partition_hourly": [LOG, LOG | {"cluster": "d", "log_end_offset": 9000}],
    "metrics.consumer_partition_hourly": [READ, READ | {"cluster": "d", "records_consumed": 9}],
}


def _days(**figures: list[float]) -> Rows:
    """Hours of a topic before the judged one, newest first."""
    return {"metrics.topic_hourly": [TOPIC | {"hour": HOUR - timedelta(hours=n + 1), "bytes_out": sent}
                                     for n, sent in enumerate(figures["sent"])]}  # fmt: skip


CALLS: list[Any] = [
    pytest.param(
        BROKERS, "select volume_id, broker_id, at, read_bytes_per_second from broker_disk_minutes(:hour) order by 1, 3",
        [("unknown", 1, None, None), ("v", 1, T10, 110.0), ("v", 1, T10 + timedelta(minutes=1), 90.0),
         ("v", 1, T10 + timedelta(minutes=2), 20.0)], id="minutes of the hour, of a volume on two brokers once",
    ),
    pytest.param(
        BROKERS, "select minutes_above, above_bytes_per_second, loud_from, loud_minutes, counted_bytes_per_second"
        " from broker_disk_reads(:hour, 6, 50, 2) where volume_id = 'v'", [(2.0, 100.0, T10, 2.0, 100.0)],
        id="loud minutes; nobody counted, so they stand for it",
    ),
    pytest.param(
        SENT, "select counted_bytes_per_second, counted_excess_bytes_per_second"
        " from broker_disk_reads(:hour, 6, 50, 2) where volume_id = 'v'",
        [(pytest.approx(102), pytest.approx(92))], id="60 s of the first minute were counted and 40 of the second",
    ),
    pytest.param(
        BROKERS, "select minutes_above, loud_minutes from broker_disk_reads(:hour, 6, 50, 3) where volume_id = 'v'",
        [(0.0, None)], id="not sustained",
    ),
    pytest.param(
        BROKERS, "select minutes_above from broker_disk_reads(:hour, 6, 90, 1) where volume_id = 'v'", [(1.0,)],
        id="above the floor",
    ),
    pytest.param(
        BROKERS, "select minutes_above from broker_disk_reads(:hour, 45, 0, 1) where volume_id = 'v'", [(1.0,)],
        id="above 45 deviations of 2",
    ),
    pytest.param(
        BROKERS, "select minutes_known, minutes_above from broker_disk_reads(:hour, 6, 0, 1) where volume_id <> 'v'",
        [(0, 0.0)], id="a volume of which nothing is known",
    ),
    pytest.param(
        SENT | {"inventory.topic_hourly": [{"cluster": "c", "topic": "t", "replication_factor": 2}]},
        "select cluster, bytes, seconds from page_cache(:hour, 0.5) order by 1",
        [("c", 4000.0, 200.0), ("d", None, None)], id="what is written counts with all replicas, a machine once",
    ),
    pytest.param(SENT, "select group_id, fresh_bytes, cold_bytes, accounted_bytes, is_cold"
                 " from group_reads('c', :hour, 1)",
                 [("g", 1000.0, 0.0, 1000.0, False)], id="new records come from memory"),
    pytest.param(
        SENT | {"metrics.consumer_partition_hourly": [READ | {"records_consumed": 60, "lag_seconds": 801}]},
        "select fresh_bytes, cold_bytes, accounted_bytes from group_reads('c', :hour, 1)", [(1000.0, 6000.0, 7500.0)],
        id="a group beyond the page cache reads all from disk, and one step of four more than its commits tell",
    ),
    pytest.param(
        SENT | {"metrics.consumer_partition_hourly": [READ | {"records_consumed": 100, "rewinds": 1}]},
        "select cold_bytes, accounted_bytes from group_reads('c', :hour, 0.5)", [(5000.0, 10000.0)],
        id="of a backlog the part that is older than 400 s of 10 bytes",
    ),
    pytest.param(_days(sent=[2000, 3000, 9000, 9000, 9000]),
                 "select topic, sent_per_byte from usual_readers('c', :hour, 7, 5)", [("t", 3.0)],
                 id="the least quarter"),
    pytest.param(_days(sent=[2000] * 4), "select * from usual_readers('c', :hour, 7, 5)", [], id="too few hours"),
    pytest.param(_days(sent=[2000] * 30), "select * from usual_readers('c', :hour, 1, 25)", [], id="older"),
    *(
        pytest.param({"metrics.consumer_group_hourly": [{"cluster": "c", "group_id": "a", "rebalances": r,
                                                         "hour": HOUR - timedelta(hours=n)} for n,
                    r in enumerate(rebalances)],
                      "metrics.jvm_app_hourly": [{"cluster": cluster, "application_id": "a",
                                                  "process_started_at": HOUR - timedelta(minutes=30)}]},
                     "select * from settled_applications('c', :hour, 2)", settled, id=f"settled: {why}")
        for why, rebalances, cluster, settled in (
            ("two hours", [0, 0, 7], "d", [("a",)]), ("a rebalance", [0, 1], "d", []), ("unknown", [0, None], "d", []),
            ("one hour", [0], "d", []), ("just started", [0, 0], "c", []))
    ),
    pytest.param(SENT, "select topic, sent_bytes, accounted_bytes, unaccounted_bytes, may_be_restored, group_ids"
                 " from topic_unaccounted('c', :hour, 1, 7, 24, 6)", [("t", 5000.0, 1000.0, 4000.0, False, ["g"])],
                 id="sent beyond what the group read"),
    pytest.param(
        SENT | {"metrics.topic_hourly": [TOPIC, *_days(sent=[3000] * 5)["metrics.topic_hourly"]]},
        "select unaccounted_bytes from topic_unaccounted('c', :hour, 1, 7, 5, 6)", [(2000.0,)],
        id="three readers are usual, one of them the group",
    ),
    pytest.param(
        SENT | {"inventory.topic_hourly": [{"cluster": "c", "topic": "t", "kind": "changelog", "application_id": "a"}]},
        "select may_be_restored from topic_unaccounted('c', :hour, 1, 7, 24, 6)", [(True,)], id="a changelog",
    ),
    pytest.param(
        {"metrics.broker_sample": [{"cluster": cluster, "endpoint": e, "metric": "client_fetch_bytes_per_second",
                                    "labels": f'{{"client": "{client}", "user": ""}}', "value": 5}
                                   for cluster, e, client in (("c", "e", "x"), ("c", "f", "x"), ("c", "e", "y"),
                                                              ("d", "e", "x"))],
         "inventory.consumer_member_hourly": [{"cluster": "c", "group_id": "g", "member_id": "m", "client_id": "x"},
                                              {"cluster": "c", "group_id": "h", "member_id": "m", "client_id": "y"},
                                              {"cluster": "d", "group_id": "g", "member_id": "m", "client_id": "y"}],
         "metrics.consumer_partition_hourly": [READ, READ | {"cluster": "d"}]},
        "select client_id, user_name, bytes_per_second, group_ids from client_fetches('c', :hour) order by 1",
        [("x", None, 10.0, ["g"]), ("y", None, 5.0, None)], id="a client of all brokers, and its groups that commit",
    ),
    pytest.param(
        {"inventory.consumer_member_hourly": [{"cluster": "c", "group_id": "g", "member_id": "m", "client_id": "x",
                                               "host": "h", "assignment": {"t": [0], "u": [0]}}],
         "metrics.consumer_partition_hourly": [READ, READ | {"cluster": "d", "topic": "u"}]},
        "select topic, client_id, host, group_id from members_without_commits('c', :hour)", [("u", "x", "h", "g")],
        id="a member of a group that commits one topic of two",
    ),
    pytest.param(
        SENT, "select cluster, brokers, brokers_unplaced, brokers_silent from cluster_brokers"
        " where hour = :hour order by 1",
        [("c", 2, 0, 1), ("d", 1, 1, 1)], id="brokers",
    ),
    pytest.param(
        {"metrics.topic_hourly": [TOPIC, TOPIC | {"topic": "u", "covered_seconds": 150, "counted_from": HOUR},
                                  TOPIC | {"topic": "v", "bytes_out": None, "covered_seconds": 900}]},
        "select counted_from, counted_to, seconds from topic_counted where hour = :hour",
        [(HOUR, T10 + timedelta(seconds=100), 150.0)], id="the time that was counted",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "query", "expected"), CALLS)
def test_cold_reads(module_warehouse: sa.Engine, given: Rows, query: str, expected: list[Any]) -> None:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        for day in (HOUR - timedelta(days=1), HOUR):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day.date()})
        for table, rows in given.items():
            for row in rows:
                insert_row(connection, table, {"hour": HOUR, **row})
        got = [tuple(row) for row in connection.execute(sa.text(query), {"hour": HOUR})]
        transaction.rollback()
    assert got == expected
