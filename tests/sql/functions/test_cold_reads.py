"""Functions about disk reads of brokers and the readers that cause them, each on a few rows; `d` is another cluster.

The view topic_readers calls topic_readers_of for each hour.
"""

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
TOPIC_KEY = {"cluster": "c", "topic": "t"}
FETCHES = {"cluster": "c", "endpoint": "e", "metric": "client_fetch_bytes_per_second", "at": HOUR,
           "labels": '{"client": "x"}'}  # fmt: skip
EARLIER, LATER = {"hour": HOUR - timedelta(hours=1)}, {"hour": HOUR + timedelta(hours=1)}
BEFORE = READ | EARLIER | {"committed_offset": 100}
INSTANCE = PLACE | {"instance_id": "i", "memory_bytes": 8000}
BROKER = {"cluster": "c", "endpoint": "e", "instance_id": "i", "samples": 3, "partitions": 4, "bytes_out_per_second": 1,
          "process_started_at": HOUR - timedelta(days=9), "under_replicated_partitions_max": 0}  # fmt: skip
VOLUME = PLACE | {"volume_id": "v", "instance_id": "i"}
BASELINE = PLACE | {"volume_id": "v", "read_baseline_bytes_per_second": 10, "read_baseline_mad_bytes_per_second": 2}


def _strays(row: dict[str, Any], **other: Any) -> list[dict[str, Any]]:
    """Rows that differ from the given one in one column each."""
    return [row | {column: value} for column, value in other.items()]


def _minute(minute: int, read: int) -> dict[str, Any]:
    at = HOUR + timedelta(minutes=minute)
    return PLACE | {"volume_id": "v", "at": at, "period_seconds": 60, "read_bytes": read * 60}


def _fetched(hours_ago: int, value: int) -> dict[str, Any]:
    hour = HOUR - timedelta(hours=hours_ago)
    return FETCHES | {"hour": hour, "at": hour + timedelta(minutes=62), "value": value}


BROKERS: Rows = {
    "metrics.broker_hourly": [{"cluster": "c", "endpoint": "e", "broker_id": 1, "instance_id": "i"},
                              {"cluster": "c", "endpoint": "f", "broker_id": 2, "instance_id": "i", "samples": 1},
                              {"cluster": "d", "endpoint": "e", "instance_id": None}],
    "inventory.instance_hourly": [INSTANCE],
    "inventory.volume_hourly": [VOLUME, VOLUME | {"volume_id": "unknown"}],
    "metrics.volume_hourly": [BASELINE],
    "metrics.volume_sample": [_minute(m, r) for m, r in ((-1, 900), (10, 110), (11, 90), (12, 20), (60, 900))],
}  # fmt: skip
FOUR_VOLUMES: Rows = {
    "metrics.broker_hourly": [{"cluster": "c", "endpoint": "e", "broker_id": 1, "instance_id": "i"},
                              {"cluster": "d", "endpoint": "e", "broker_id": 1, "instance_id": "j"}],
    "inventory.volume_hourly": [VOLUME, VOLUME | {"volume_id": "w"}, VOLUME | {"volume_id": "x", "instance_id": "j"},
                                VOLUME | {"volume_id": "y", "instance_id": "j"}],
    "metrics.volume_hourly": [BASELINE, BASELINE | {"volume_id": "x"}, BASELINE | {"volume_id": "y"},
                              PLACE | {"volume_id": "w", "read_baseline_bytes_per_second": 100,
                                       "read_baseline_mad_bytes_per_second": 0}],
    "metrics.volume_sample": [
        *(_minute(m, r) for m, r in ((10, 110), (11, 90), (12, 23))),
        *(_minute(m, r) | {"volume_id": "w"} for m, r in ((11, 160), (12, 100))),
        _minute(10, 5) | {"volume_id": "w", "period_seconds": 30},
        _minute(12, 900) | {"volume_id": "x"}, _minute(14, 10) | {"volume_id": "y"}],
    # Of the two minutes of d, one ends when the measured time begins, the other begins when it ends.
    "metrics.topic_hourly": [
        TOPIC | {"counted_from": T10 + timedelta(seconds=30), "counted_to": T10 + timedelta(seconds=150)},
        TOPIC | EARLIER | {"counted_from": HOUR, "counted_to": HOUR + timedelta(hours=1)},
        TOPIC | {"cluster": "d", "counted_from": T10 + timedelta(minutes=3), "counted_to": T10 + timedelta(minutes=4)}],
}  # fmt: skip
SENT: Rows = {
    **BROKERS,
    "metrics.topic_hourly": [TOPIC, TOPIC | {"cluster": "d", "bytes_out": 7}],
    "metrics.partition_hourly": [LOG, LOG | {"cluster": "d", "log_end_offset": 9000}],
    "metrics.consumer_partition_hourly": [READ, READ | {"cluster": "d", "records_consumed": 9}],
}


def _days(**metrics: list[float]) -> Rows:
    """Hours of a topic before the evaluated one, newest first."""
    return {"metrics.topic_hourly": [TOPIC | {"hour": HOUR - timedelta(hours=n + 1), "bytes_out": sent}
                                     for n, sent in enumerate(metrics["sent"])]}  # fmt: skip


CALLS: list[Any] = [
    pytest.param(
        BROKERS, "select volume_id, broker_id, at, read_bytes_per_second from broker_disk_minutes(:hour) order by 1, 3",
        [("unknown", 1, None, None), ("v", 1, T10, 110.0), ("v", 1, T10 + timedelta(minutes=1), 90.0),
         ("v", 1, T10 + timedelta(minutes=2), 20.0)], id="minutes of the hour; a volume of two brokers counts once",
    ),
    pytest.param(
        BROKERS | {
            "inventory.volume_hourly": [VOLUME, VOLUME | EARLIER],
            "metrics.volume_hourly": [
                BASELINE, *_strays(BASELINE, hour=EARLIER["hour"], account="2", region="s", volume_id="w")],
            "metrics.volume_sample": [_minute(0, 70), *_strays(_minute(1, 9), account="2", region="s", volume_id="w"),
                                      _minute(2, 9) | {"read_bytes": None}]},
        "select volume_id, at, baseline_bytes_per_second, read_bytes_per_second from broker_disk_minutes(:hour)",
        [("v", HOUR, 10.0, 70.0)], id="first minute; other hours, accounts, regions, and volumes do not count",
    ),
    pytest.param(
        BROKERS, "select minutes_above, above_bytes_per_second, loud_from, loud_minutes, counted_bytes_per_second"
        " from broker_disk_reads(:hour, 6, 50, 2) where volume_id = 'v'", [(2.0, 100.0, T10, 2.0, 100.0)],
        id="minutes above the baseline; without counters their mean is used",
    ),
    pytest.param(
        BROKERS, "select since, loud_from, loud_until, highest_bytes_per_second, counted_excess_bytes_per_second"
        " from broker_disk_reads(:hour, 6, 50, 9, 10800) where volume_id = 'v'",
        [(T10, T10, T10 + timedelta(minutes=2), 110.0, 90.0)], id="few minutes with exactly heavy_bytes",
    ),
    pytest.param(
        BROKERS, "select minutes_above from broker_disk_reads(:hour, 6, 100, 1) where volume_id = 'v'", [(0.0,)],
        id="exactly the floor is not above it",
    ),
    pytest.param(
        FOUR_VOLUMES, "select volume_id, minutes_known, minutes_above, above_bytes_per_second,"
        " counted_bytes_per_second, counted_excess_bytes_per_second, loud_until - :hour, loud_minutes"
        " from broker_disk_reads(:hour, 6, 50, 1) order by 1",
        [("v", 3, 2.0, 100.0, 78.25, 68.25, timedelta(minutes=12), 2.0),
         ("w", 3, 0.0, None, 140.0, 0.0, timedelta(minutes=12), 2.0),
         ("x", 1, 1.0, 900.0, 900.0, 890.0, timedelta(minutes=13), 1.0),
         ("y", 1, 0.0, None, None, None, timedelta(minutes=13), 1.0)],
        id="one volume above its baseline, one at rest; exactly the deviations; reads in the measured time",
    ),
    pytest.param(
        SENT, "select counted_bytes_per_second, counted_excess_bytes_per_second"
        " from broker_disk_reads(:hour, 6, 50, 2) where volume_id = 'v'",
        [(pytest.approx(102), pytest.approx(92))], id="60 s of the first minute and 40 s of the second were measured",
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
        [(0, 0.0)], id="a volume without metrics",
    ),
    pytest.param(
        SENT | {"inventory.topic_hourly": [{"cluster": "c", "topic": "t", "replication_factor": 2}]},
        "select cluster, bytes, seconds from page_cache(:hour, :hour, 0.5) order by 1",
        [("c", 4000.0, 200.0), ("d", None, None)], id="bytes in count for all replicas, an instance once",
    ),
    pytest.param(
        BROKERS | {"inventory.instance_hourly": [INSTANCE, INSTANCE | EARLIER],
                   "metrics.topic_hourly": [TOPIC | {"bytes_in": 0}, TOPIC | {"topic": "u", "covered_seconds": 0}]},
        "select cluster, bytes, seconds from page_cache(:hour, :hour, 0.5)", [("c", 4000.0, None)],
        id="no bytes in",
    ),
    pytest.param(
        BROKERS | {"metrics.topic_hourly": [TOPIC | {"bytes_in": 1, "covered_seconds": 1}]},
        "select seconds from page_cache(:hour, :hour, 0.5)", [(4000.0,)], id="one byte in one second",
    ),
    *(
        pytest.param(
            {"metrics.broker_hourly": [
                BROKER | {"hour": HOUR - timedelta(hours=n), "bytes_in_per_second": come, "instance_id": "i"}
                for n, come in hours.items()],
             "inventory.instance_hourly": [INSTANCE | {"memory_bytes": 2 * 3600 * held}],
             "inventory.topic_hourly": [TOPIC_KEY | {"replication_factor": 2}],
             "metrics.topic_hourly": [TOPIC | {"bytes_in": now * 100}]},
            "select seconds from page_cache(:hour, :hour, 0.5)", [(pytest.approx(seconds, abs=1e-3),)],
            id=f"page cache: {why}",
        )
        for why, held, now, hours, seconds in (
            # One byte per second fills the memory of two per second, as each record has a replica.
            ("part of the hour", 1, 1, {0: 1, 1: 9}, 1800), ("exactly the hour", 2, 1, {0: 1, 1: 9}, 3600),
            ("a quiet hour after a busy one", 11, 1, {0: 1, 1: 9}, 3600 + 1800),
            ("a busy hour after a quiet one", 19, 9, {0: 9, 1: 1}, 3600 + 1800),
            ("an hour without bytes in", 8, 2, {0: 2, 1: 0, 2: 4}, 7200 + 1800),
            ("no bytes in now", 4, 0, {0: 0, 1: 4}, 3600 + 1800),
            ("an unknown hour counts as the mean of the others", 10, 2, {0: 2, 1: None, 2: 4}, 3600 + 3600),
            ("brokers that do not report bytes in", 6, 2, {0: None, 1: None}, 3600 + 1800),
            ("a week and half a day", 2 * (7 * 24 + 12), 1, dict.fromkeys(range(200), 1), 3600 * (7 * 24 + 12)),
            ("bytes in before that week do not count", 2 * (7 * 24 + 12), 1,
             {n: 1 if n < 7 * 24 else 9 for n in range(200)}, 3600 * (7 * 24 + 12)),
            ("half of the busy first hour of that week", 2 * (167 + 4.5), 1,
             {n: 1 if n < 167 else 9 for n in range(168)}, 3600 * 167.5),
            ("no bytes in at all", 2, 0, {0: 0, 1: 0}, None),
            ("no memory, and no bytes in now", 0, 0, {0: 0, 1: 4}, 0),
        )
    ),
    pytest.param(
        {"metrics.broker_hourly": [
            *(BROKER | {"hour": HOUR - timedelta(hours=n), "bytes_in_per_second": come} for n, come in
              enumerate([1, 4, 2])),
            *(BROKER | {"hour": HOUR - timedelta(hours=n), "bytes_in_per_second": 6, "endpoint": "f",
                        "active_controllers": 0} for n in (1, 2)),
            BROKER | {"endpoint": "controller", "active_controllers": 1, "partitions": None, "instance_id": None},
            BROKER | {"hour": HOUR + timedelta(hours=1), "bytes_in_per_second": 90}],
         "inventory.instance_hourly": [INSTANCE | {"memory_bytes": 2 * 3600 * 5}, INSTANCE | EARLIER],
         "metrics.topic_hourly": [TOPIC | {"bytes_in": 100}, TOPIC | EARLIER]},
        "select :hour - hour, seconds from page_cache(:hour - interval '2 hours', :hour, 0.5) order by 1",
        [(timedelta(0), pytest.approx(3600 + 1440)), (timedelta(hours=1), pytest.approx(1800)),
         (timedelta(hours=2), pytest.approx(2250))],
        id="page cache: hour by hour over all brokers, with the memory of the last hour",
    ),
    pytest.param(
        {"metrics.broker_hourly": [BROKER | {"bytes_in_per_second": 1}],
         "inventory.instance_hourly": [INSTANCE | {"memory_bytes": 2 * 3600}],
         "metrics.topic_hourly": [TOPIC | {"bytes_in": 100}],
         "metrics.consumer_group_hourly": [
            {"cluster": cluster, "group_id": group, "hour": HOUR - timedelta(hours=n), "lag_seconds_max": lag,
             "status": status}
            for cluster, group, n, lag, status in (
                ("c", "lags", 0, 3601, "ok"), ("c", "lags", 1, 3600, "ok"), ("c", "lags", 23, 9999, "ok"),
                ("c", "lags", 24, 9999, "ok"), ("c", "lags", -1, 9999, "ok"), ("c", "rewinds", 2, 0, "rewind"),
                ("d", "lags", 0, 9999, "ok"))]},
        "select :hour - hour, group_id, page_cache_seconds from cold_hours(:hour, 1, 0.5) order by 1",
        [(timedelta(0), "lags", 3600), (timedelta(hours=2), "rewinds", 3600), (timedelta(hours=23), "lags", 3600)],
        id="hours of the day in which a group lags more than the page cache holds, or rewinds",
    ),
    pytest.param(SENT, "select group_id, fresh_bytes, cold_bytes, accounted_bytes, is_cold"
                 " from group_reads('c', :hour, 1, 3600)",
                 [("g", 1000.0, 0.0, 1000.0, False)], id="new records are read from the page cache"),
    pytest.param(
        SENT | {"metrics.consumer_partition_hourly": [READ | {"records_consumed": 60, "lag_seconds": 801}]},
        "select fresh_bytes, cold_bytes, accounted_bytes from group_reads('c', :hour, 1, 3600)",
        [(1000.0, 6000.0, 7500.0)],
        id="a group beyond the page cache reads all from disk, and a quarter more than its commits show",
    ),
    pytest.param(
        SENT | {"metrics.consumer_partition_hourly": [READ | {"records_consumed": 100, "rewinds": 1}]},
        "select cold_bytes, accounted_bytes from group_reads('c', :hour, 0.5, 3600)", [(5000.0, 10000.0)],
        id="the part of a backlog older than 400 s at 10 bytes/s",
    ),
    pytest.param(
        SENT | {"inventory.topic_hourly": [TOPIC_KEY | {"replication_factor": 1}],
                "metrics.topic_hourly": [TOPIC | {"log_bytes": 1000}, TOPIC | {"cluster": "d"}],
                "metrics.consumer_partition_hourly": [
                    READ | {"group_id": group, "records_consumed": 10, **own} for group, own in {
                        "aged": {"lag_seconds": 800}, "large": {"lag_records": 800}, "older": {"lag_seconds": 801},
                        "larger": {"lag_records": 801}, "back": {"lag_seconds": 801, "rewinds": 1},
                        "often back": {"lag_seconds": 801, "rewinds": 9},
                        "once": {"lag_seconds": 801, "commits": 1}, "twice": {"lag_seconds": 801, "commits": 2},
                        "unread": {"lag_seconds": 801, "commits": None},
                    }.items()]},
        "select group_id, accounted_bytes, is_cold from group_reads('c', :hour, 1, 3600) order by 1",
        [("aged", 1000.0, False), ("back", 1500.0, True), ("large", 1000.0, False), ("larger", 1250.0, True),
         ("often back", 2000.0, True), ("older", 1250.0, True), ("once", 2000.0, True),
         ("twice", 2000.0, True), ("unread", 1000.0, True)],
        id="all is cold beyond 800 s or 8000 bytes; bytes between commits depend on the number of commits",
    ),
    pytest.param(
        SENT | {"metrics.consumer_partition_hourly": [READ | {"cluster": "d", "records_consumed": 15}]},
        "select fresh_bytes, cold_bytes, is_cold from group_reads('d', :hour, 1, 3600)", [(1000.0, 500.0, False)],
        id="with unknown memory a backlog is read from disk",
    ),
    pytest.param(_days(sent=[2000, 3000, 9000, 9000, 9000]),
                 "select topic, sent_per_byte from baseline_readers('c', :hour, 7, 5)", [("t", 3.0)],
                 id="lowest quartile"),
    pytest.param(_days(sent=[2000] * 4), "select * from baseline_readers('c', :hour, 7, 5)", [], id="too few hours"),
    pytest.param(_days(sent=[3000] * 5),
                 "select 't', count(*) from baseline_readers('c', :hour, 7, 5, array['t', 'x'])"
                 " union all select 'u', count(*) from baseline_readers('c', :hour, 7, 5, array['u'])",
                 [("t", 1), ("u", 0)], id="requested columns only"),
    pytest.param(
        {"metrics.topic_hourly": [
            TOPIC | EARLIER | {"bytes_in": 1, "bytes_out": 2},
            TOPIC | {"hour": HOUR - timedelta(days=1), "bytes_in": 1, "bytes_out": 2},
            TOPIC | {"hour": HOUR - timedelta(hours=2), "bytes_in": 0}, TOPIC | {"bytes_out": 0},
            TOPIC | {"topic": "u", "hour": HOUR - timedelta(hours=2), "bytes_in": 0}]},
        "select topic, sent_per_byte from baseline_readers('c', :hour, 1, 2)", [("t", 2.0)],
        id="the hour a day ago counts; this hour and hours without bytes in do not",
    ),
    pytest.param(_days(sent=[2000] * 30), "select * from baseline_readers('c', :hour, 1, 25)", [], id="older hours"),
    *(
        pytest.param({"metrics.consumer_group_hourly": [{"cluster": "c", "group_id": "a", "rebalances": r,
                                                         "hour": HOUR - timedelta(hours=n)} for n,
                    r in enumerate(rebalances)],
                      "metrics.jvm_app_hourly": [{"cluster": cluster, "application_id": "a",
                                                  "process_started_at": HOUR - timedelta(minutes=minutes)}]},
                     "select * from settled_applications('c', :hour, 2)", settled, id=f"settled: {why}")
        for why, rebalances, cluster, minutes, settled in (
            ("two hours", [0, 0, 7], "d", 30, [("a",)]), ("a rebalance", [0, 1], "d", 30, []),
            ("unknown", [0, None], "d", 30, []), ("one hour", [0], "d", 30, []), ("just started", [0, 0], "c", 119, []),
            ("started two hours ago", [0, 0], "c", 120, [("a",)]))
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
        [("x", None, 10.0, ["g"]), ("y", None, 5.0, None)], id="a client on all brokers, and its groups with commits",
    ),
    pytest.param(
        {"metrics.broker_sample": [
            FETCHES | EARLIER | {"value": 9}, FETCHES | {"at": T10, "value": 3},
            *(row | {"value": 900} for row in _strays(
                FETCHES, hour=HOUR - timedelta(hours=2), at=HOUR - timedelta(seconds=1), cluster="d", metric="other")),
            FETCHES | LATER | {"value": 900}, FETCHES | {"at": T10 + timedelta(minutes=1), "value": 5}],
         "inventory.consumer_member_hourly": [{"cluster": "c", "group_id": "g", "member_id": "m", "client_id": "x"}],
         "metrics.consumer_partition_hourly": [READ | {"cluster": "d"}]},
        "select client_id, bytes_per_second, group_ids from client_fetches('c', :hour) order by 1", [("x", 9.0, None)],
        id="the highest reading since the hour began, also by the previous run",
    ),
    pytest.param(
        {"metrics.broker_sample": [
            FETCHES | {"at": T10, "value": 7}, FETCHES | {"at": T10, "value": 1, "labels": '{"client": "new"}'},
            *(_fetched(n, value) for n, value in enumerate([3, 4, 5, 3, 4, 5, 50, 50, 50, 50, 4], start=2)),
            _fetched(14, 9) | {"labels": '{"client": "gone"}'}, _fetched(25, 900),
            *(_fetched(n, 900) | {"cluster": "d"} for n in range(13, 25))]},
        "select client_id, bytes_per_second, baseline_bytes_per_second from client_fetches('c', :hour) order by 1",
        [("new", 1.0, 0.0), ("x", 7.0, 4.5)],
        id="the baseline is the median of the day before; 0 in readings that list only other clients",
    ),
    pytest.param(
        {"metrics.broker_sample": [FETCHES | {"value": 7}, *(_fetched(n, 5) for n in range(2, 13))]},
        "select baseline_bytes_per_second from client_fetches('c', :hour)", [(None,)],
        id="eleven hours are too few for a baseline",
    ),
    pytest.param(
        {"inventory.consumer_member_hourly": [{"cluster": "c", "group_id": "g", "member_id": "m", "client_id": "x",
                                               "host": "h", "assignment": {"t": [0], "u": [0]}}],
         "metrics.consumer_partition_hourly": [READ, READ | {"cluster": "d", "topic": "u"}]},
        "select topic, client_id, host, group_id from members_without_commits('c', :hour)", [("u", "x", "h", "g")],
        id="a member whose group commits one of two topics",
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
        [(HOUR, T10 + timedelta(seconds=100), 150.0)], id="measured time",
    ),
    pytest.param(
        {"metrics.topic_hourly": [TOPIC, TOPIC | {"topic": "u", "covered_seconds": 1, "counted_to": HOUR},
                                  TOPIC | {"topic": "v", "covered_seconds": 0, "counted_from": HOUR}]},
        "select counted_from, counted_to, seconds from topic_counted where hour = :hour",
        [(HOUR + timedelta(minutes=10), T10 + timedelta(seconds=100), 100.0)], id="measured time of 0 s does not count",
    ),
    pytest.param(
        {"metrics.topic_hourly": [TOPIC | {"topic": "u", "covered_seconds": 1}]},
        "select seconds from topic_counted where hour = :hour", [(1.0,)], id="one second was measured",
    ),
    pytest.param(
        {"metrics.broker_hourly": [
            *({"cluster": "c", "endpoint": endpoint, "under_replicated_partitions_max": n,
               "replication_bytes_out_per_second": n} for endpoint, n in (("e", 3), ("f", 7))),
            {"cluster": "c", "endpoint": "f"} | EARLIER, {"cluster": "c", "endpoint": "g"} | LATER],
         "inventory.topic_hourly": [{"cluster": "t", "topic": "t"}]},
        "select cluster, brokers, replicated_bytes_per_second, under_replicated_partitions from cluster_brokers"
        " where hour = :hour order by 1",
        [("c", 2, 10.0, 7), ("t", 0, None, None)], id="replication bytes out, and a cluster without brokers",
    ),
    pytest.param(
        {"inventory.topic_hourly": [
            row | {"replication_factor": 2, "kind": "repartition", "application_id": "a"}
            for row in (TOPIC_KEY, *_strays(TOPIC_KEY, hour=EARLIER["hour"], cluster="d", topic="u"))],
         "metrics.topic_hourly": [TOPIC | {"log_bytes": 1600}],
         "metrics.partition_hourly": [LOG | {"log_start_offset": 20}, LOG | {"partition": 1, "log_start_offset": 80},
                                      *_strays(LOG, hour=EARLIER["hour"], cluster="d", topic="u")]},
        "select kind, application_id, replication_factor, covered_seconds, bytes_in, bytes_out, records_in,"
        " new_bytes_per_record, old_bytes_per_record from topic_bytes",
        [("repartition", "a", 2, 100.0, 1000, 5000, 20, 100.0, 8.0)],
        id="bytes per record as received and as stored",
    ),
    pytest.param(
        {"inventory.topic_hourly": [TOPIC_KEY | {"replication_factor": 1, "kind": "plain"}],
         "metrics.topic_hourly": [TOPIC | {"messages_in": 0, "log_bytes": 500},
                                  TOPIC | {"messages_in": 0, "log_bytes": 500, "topic": "u"},
                                  TOPIC | {"topic": "__t", "log_bytes": 5},
                                  TOPIC | {"topic": "_t", "messages_in": None}],
         "metrics.partition_hourly": [LOG, LOG | {"topic": "u"}, LOG | {"topic": "__t", "log_start_offset": 100}]},
        "select topic, kind, application_id, replication_factor, records_in, new_bytes_per_record, old_bytes_per_record"
        " from topic_bytes order by topic",
        [("__t", "internal", None, 1, 10, 100.0, 100.0), ("_t", "plain", None, 1, None, None, None),
         ("t", "plain", None, 1, 10, 5.0, 5.0), ("u", "plain", None, 1, 10, None, None)],
        id="no records in, none stored, metrics missing, replication factor missing",
    ),
    pytest.param(
        {"inventory.topic_hourly": [TOPIC_KEY | {"replication_factor": 1}],
         "metrics.topic_hourly": [TOPIC | {"log_bytes": 400}, TOPIC | {"log_bytes": 400, "topic": "u"}],
         "metrics.partition_hourly": [LOG, LOG | {"topic": "u"}],
         "metrics.consumer_partition_hourly": [
             READ | {"committed_offset": 130, "consumed_seconds": 200, "rewinds": 1, "lag_records": 3,
                     "lag_seconds": 7},
             READ | {"partition": 1, "records_consumed": 20, "committed_offset": 105, "lag_records": 4, "commits": 3},
             BEFORE, BEFORE | {"partition": 1},
             *_strays(BEFORE | {"committed_offset": 0}, hour=HOUR - timedelta(hours=2), cluster="d", group_id="h",
                      topic="u", partition=2)]},
        "select records, fresh_bytes, backlog_bytes, bytes_in_per_second, lag_seconds, lag_bytes, rewinds,"
        " commits_per_partition, seconds_between_commits, is_unknown, is_silent from topic_readers"
        " where hour = :hour and cluster = 'c' and group_id = 'g' and topic = 't'",
        [(50, 500.0, 80.0, 10.0, 7.0, 28.0, 1, 4.0, 50.0, False, False)],
        id="records by commits or since the offset an hour before; half of the time measured over JMX",
    ),
    pytest.param(
        {"metrics.topic_hourly": [TOPIC | {"covered_seconds": 0}, TOPIC | {"topic": "u", "log_bytes": 400}],
         "metrics.partition_hourly": [LOG | {"topic": "u"}],
         "metrics.consumer_partition_hourly": [
             READ | {"consumed_seconds": 50}, READ | {"group_id": "brief", "topic": "u", "consumed_seconds": 0},
             READ | {"group_id": "unread", "records_consumed": None, "consumed_seconds": None},
             READ | {"group_id": "unread", "partition": 1},
             READ | {"group_id": "unknown", "topic": "u", "records_consumed": None, "consumed_seconds": None},
             READ | {"group_id": "silent", "commits": 0, "client_id": "x"},
             READ | {"group_id": "silent", "commits": 0, "partition": 1},
             READ | {"group_id": "some commits", "commits": 1, "client_id": "x"},
             READ | {"group_id": "no member", "commits": 0}]},
        "select group_id, fresh_bytes, backlog_bytes, bytes_in_per_second, seconds_between_commits, is_unknown,"
        " is_silent from topic_readers where hour = :hour order by 1",
        [("brief", 1000.0, 0.0, 10.0, 0.0, False, False), ("g", 0.0, 0.0, None, 10.0, False, False),
         ("no member", 0.0, 0.0, None, None, False, False), ("silent", 0.0, 0.0, None, None, False, True),
         ("some commits", 0.0, 0.0, None, 100.0, False, False), ("unknown", 1000.0, 0.0, 10.0, None, True, False),
         ("unread", 0.0, 0.0, None, 20.0, True, False)],
        id="nothing measured; log end offsets unknown; groups without commits, with members and without",
    ),
    pytest.param(
        {"inventory.topic_hourly": [{"cluster": "c", "topic": "t", "replication_factor": 1}],
         "metrics.topic_hourly": [TOPIC],
         "metrics.consumer_partition_hourly": [READ | {"records_consumed": 7}]},
        "select fresh_bytes, backlog_bytes from topic_readers", [(700.0, 0.0)],
        id="with unknown log offsets all records count once, as new",
    ),
    pytest.param(
        {"metrics.broker_hourly": [
            BROKER, BROKER | EARLIER, BROKER | LATER, BROKER | {"hour": HOUR - timedelta(hours=2)},
            BROKER | {"endpoint": "g", "instance_id": "none", "partitions": None, "active_controllers": 1},
            BROKER | {"cluster": "d", "partitions": None, "process_started_at": HOUR},
            BROKER | {"cluster": "d", "endpoint": "f", "instance_id": "none", "bytes_out_per_second": None}],
         "inventory.volume_hourly": [VOLUME, VOLUME | EARLIER],
         "metrics.volume_hourly": [BASELINE | {"read_bytes": 7}, BASELINE | EARLIER | {"read_bytes": 5},
                                   *_strays(BASELINE | {"read_bytes": 900}, account="2", region="s")]},
        "select hour, cluster, read_bytes, sent_bytes, is_upset from broker_reads_hourly(:hour, 1)"
        " where hour > :hour - interval '2 hours' order by 1, 2",
        [(EARLIER["hour"], "c", 5.0, 3600.0, False), (HOUR, "c", 7.0, 3600.0, False), (HOUR, "d", None, None, False)],
        id="reads and bytes out of brokers without controllers; null if one broker did not report",
    ),
    pytest.param(
        {"metrics.broker_hourly": [BROKER | {"bytes_out_per_second": 3, "remote_fetch_bytes_per_second": 2}]},
        "select sent_bytes from broker_reads_hourly(:hour, 1)", [(3600.0,)],
        id="bytes out from tiered storage are not sent from disk or page cache",
    ),
    *(
        pytest.param(
            SENT | {"inventory.topic_hourly": [
                        TOPIC_KEY | {"replication_factor": 1, "partitions": 1,
                                     "configs": '{"remote.storage.enable": {"value": "true"}, "local.retention.ms":'
                                                f' {{"value": "{local_ms}"}}}}'}],
                    "metrics.consumer_partition_hourly": [READ | {"records_consumed": 60, "lag_seconds": 801}]},
            "select r.cold_bytes, g.cold_bytes, is_remote from group_cold_reads('c', 'g', :hour, 800) as r,"
            " group_reads('c', :hour, 1, 3600) as g",
            [expected], id=f"a lag of 801 s with a local retention of {local_ms} ms",
        )
        for local_ms, expected in ((801000, (6000.0, 6000.0, False)), (800999, (0.0, 0.0, True)))
    ),
    pytest.param(
        {"metrics.broker_hourly": [BROKER | {"hour": HOUR - timedelta(days=1)}]},
        "select count(*) from broker_reads_hourly(:hour, 1)", [(0,)], id="the hour a day ago is before the window",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "query", "expected"), CALLS)
def test_cold_reads(module_warehouse: sa.Engine, given: Rows, query: str, expected: list[Any]) -> None:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        for table, rows in given.items():
            for row in rows:
                insert_row(connection, table, {"hour": HOUR, **row})
        got = [tuple(row) for row in connection.execute(sa.text(query), {"hour": HOUR})]
        transaction.rollback()
    assert got == expected
