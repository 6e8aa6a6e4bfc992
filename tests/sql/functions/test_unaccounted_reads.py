"""Disk reads of a cluster and bytes out without a known reader: cluster_disk_reads, unaccounted_topics."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

Row = dict[str, Any]
PLACE = {"account": "1", "region": "r"}
TOPIC = {"cluster": "c", "topic": "t", "covered_seconds": 100, "bytes_in": 1000, "bytes_out": 5000, "messages_in": 10,
         "log_bytes": 1000}  # fmt: skip
KEY = {"cluster": "c", "topic": "t", "kind": "plain", "replication_factor": 1}
LOG = {"cluster": "c", "topic": "t", "partition": 0, "log_start_offset": 0, "log_end_offset": 100,
       "log_end_offset_first": 90, "log_end_offset_last": 100}  # fmt: skip
READ = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0, "records_consumed": 10, "consumed_seconds": 100,
        "commits": 5, "rewinds": 0, "lag_records": 0, "lag_seconds": 0}  # fmt: skip
COLD = READ | {"lag_seconds": 9000, "client_id": "x"}
BROKER = {"cluster": "c", "endpoint": "e", "broker_id": 1, "instance_id": "i"}
TOPICS = """
    select topic, covered_seconds, sent_bytes, accounted_bytes, restored_bytes, unaccounted_bytes, group_ids,
      remote_unknown_bytes
    from public.unaccounted_topics('c', :hour, :loud_seconds, 1, 7, 3, 2) order by topic"""


def _topics(
    warehouse: sa.Engine, sent: Row, read: list[Row], key: Row, more: dict[str, list[Row]], loud_seconds: float = 600
) -> list[tuple[Any, ...]]:
    given = {
        "metrics.broker_hourly": [BROKER],
        "inventory.instance_hourly": [PLACE | {"instance_id": "i", "memory_bytes": 4000}],
        "metrics.partition_hourly": [LOG],
        "metrics.topic_hourly": [TOPIC | sent, *more.pop("earlier", [])],
        "inventory.topic_hourly": [KEY | key],
        "metrics.consumer_partition_hourly": read,
    }
    others = [TOPIC | {"cluster": "d"}, TOPIC | {"hour": HOUR - timedelta(hours=1), "topic": "past", "bytes_in": 0}]
    given["metrics.topic_hourly"] += others
    given["metrics.consumer_partition_hourly"] += [READ | {"cluster": "d", "group_id": "other"}]
    return rows_for(warehouse, given | more, TOPICS, loud_seconds=loud_seconds)


def _earlier(sent_per_byte: float) -> list[Row]:
    return [
        TOPIC | {"hour": HOUR - timedelta(hours=n), "bytes_out": 1000 * sent_per_byte, "covered_seconds": 3600}
        for n in (1, 2, 3)
    ]


APPLICATION = {"cluster": "c", "group_id": "a", "rebalances": 0}
SETTLED = {"metrics.consumer_group_hourly": [APPLICATION, APPLICATION | {"hour": HOUR - timedelta(hours=1)}]}
CHANGELOG = {"kind": "changelog", "application_id": "a"}


@pytest.mark.parametrize(
    ("sent", "read", "key", "more", "expected"),
    [
        pytest.param({}, [], {}, {}, (100, 5000, 0, 0, 5000, None), id="no group"),
        pytest.param({}, [READ, READ | {"group_id": "f"}], {}, {}, (100, 5000, 2000, 0, 3000, ["f", "g"]),
                     id="two groups"),
        pytest.param({"bytes_out": 900}, [READ], {}, {}, (100, 900, 1000, 0, 0, ["g"]), id="less than accounted"),
        pytest.param({"covered_seconds": 0}, [], {}, {}, (None, 5000, 0, 0, 5000, None), id="no time covered"),
        pytest.param({}, [READ], {}, {"earlier": _earlier(3)}, (100, 5000, 1000, 0, 2000, ["g"]), id="baseline"),
        pytest.param({}, [READ], {}, {"earlier": _earlier(0.5)}, (100, 5000, 1000, 0, 4000, ["g"]),
                     id="the group reads all of the baseline"),
        pytest.param({}, [], {}, {"earlier": _earlier(5)}, (100, 5000, 0, 0, 0, None), id="as usual"),
        pytest.param({}, [COLD | {"commits": 0}], {}, {}, (100, 5000, 2000, 3000, 0, ["g"]), id="late, no commit"),
        pytest.param({}, [COLD], {}, {}, (100, 5000, 1250, 0, 3750, ["g"]), id="late, commits"),
        pytest.param({}, [READ | {"commits": 0, "client_id": "x"}], {}, {}, (100, 5000, 1000, 0, 4000, ["g"]),
                     id="on time, no commit"),
        pytest.param({}, [COLD | {"rewinds": 1, "commits": 1, "consumed_seconds": 300}], {}, {},
                     (100, 5000, pytest.approx(2000 / 3), pytest.approx(13000 / 3), 0, ["g"]),
                     id="offset reset, too little time to commit again"),
        pytest.param({}, [COLD | {"rewinds": 1, "commits": 1, "consumed_seconds": 299}], {}, {},
                     (100, 5000, pytest.approx(200000 / 299), 0, pytest.approx(5000 - 200000 / 299), ["g"]),
                     id="offset reset, time to commit again"),
        pytest.param({}, [], CHANGELOG, {"earlier": _earlier(1)}, (100, 5000, 0, 4000, 0, None),
                     id="changelog of an application that may restore"),
        pytest.param({}, [], CHANGELOG, SETTLED, (100, 5000, 0, 5000, 0, None), id="changelog without a baseline"),
        pytest.param({}, [], CHANGELOG, SETTLED | {"earlier": _earlier(1)}, (100, 5000, 0, 0, 4000, None),
                     id="changelog of a settled application"),
        pytest.param({}, [], CHANGELOG | {"kind": "repartition"}, {}, (100, 5000, 0, 0, 5000, None), id="repartition"),
        pytest.param({}, [], {"kind": "internal"}, {}, None, id="internal topic"),
        pytest.param({"bytes_out": None}, [], {}, {}, None, id="bytes out unknown"),
    ],
)  # fmt: skip
def test_unaccounted_topics(
    module_warehouse: sa.Engine, sent: Row, read: list[Row], key: Row, more: dict[str, list[Row]],
    expected: tuple[Any, ...] | None,
) -> None:  # fmt: skip
    found = _topics(module_warehouse, sent, [*read], key, dict(more))
    assert found == ([] if expected is None else [("t", *expected, 0)])


TIERED = {
    "partitions": 1,
    "retention_ms": 604800000,
    "configs": '{"remote.storage.enable": {"value": "true"}, "local.retention.ms": {"value": "8999000"}}',
}


@pytest.mark.parametrize(
    ("sent", "read", "key", "unaccounted", "unknown"),
    [
        ({"remote_fetch_bytes": 4000}, [], TIERED, 1000, 0),
        ({"remote_fetch_bytes": 6000}, [READ], TIERED, 0, 0),
        ({"remote_fetch_bytes": 4000}, [COLD], TIERED, 1000, 0),
        ({"remote_fetch_bytes": 1000}, [COLD], TIERED, 3750, 0),
        ({"remote_fetch_bytes": 1000}, [COLD], {}, 2750, 0),
        ({"remote_fetch_bytes": None}, [READ], TIERED, 0, 4000),
        ({"remote_fetch_bytes": None}, [READ], {}, 4000, 0),
    ],
    ids=["no group", "more than is left", "beyond the group's", "the group reads it",
         "not tiered any more: the group's lag says nothing", "not exposed", "no tiered storage"],
)  # fmt: skip
def test_reads_from_tiered_storage_are_no_disk_reads(
    module_warehouse: sa.Engine, sent: Row, read: list[Row], key: Row, unaccounted: float, unknown: float
) -> None:
    [found] = _topics(module_warehouse, sent, [*read], key, {})
    assert (found[5], found[-1]) == (unaccounted, unknown)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({}, []),
        ({"remote.storage.enable": "false", "local.retention.ms": "5000"}, []),
        ({"remote.storage.enable": "true"}, [(9.0, None)]),
        ({"remote.storage.enable": "true", "local.retention.ms": "-2", "local.retention.bytes": "-2"}, [(9.0, None)]),
        ({"remote.storage.enable": "true", "local.retention.ms": "5000"}, [(5.0, None)]),
        ({"remote.storage.enable": "true", "local.retention.ms": "-1", "local.retention.bytes": "70"}, [(None, 70.0)]),
        ({"remote.storage.enable": "true", "retention.bytes": "90", "local.retention.bytes": "-2"}, [(9.0, 90.0)]),
        ({"remote.storage.enable": "true", "retention.bytes": "-1"}, [(9.0, None)]),
    ],
)
def test_local_retention(
    module_warehouse: sa.Engine, configs: dict[str, str], expected: list[tuple[float | None, ...]]
) -> None:
    given = json.dumps({name: {"value": value} for name, value in configs.items()})
    query = sa.text("select * from public.local_retention(cast(:configs as jsonb), 9000)")
    with module_warehouse.connect() as connection:
        assert [tuple(row) for row in connection.execute(query, {"configs": given})] == expected


@pytest.mark.parametrize(
    ("lag_seconds", "lag_bytes", "remotely"),
    [(5.0, 140.0, False), (5.1, None, True), (None, 141.0, True), (None, None, False)],
)
def test_a_group_reads_remotely_beyond_the_local_retention(
    module_warehouse: sa.Engine, lag_seconds: float | None, lag_bytes: float | None, remotely: bool
) -> None:
    configs = {"remote.storage.enable": "true", "local.retention.ms": "5000", "local.retention.bytes": "70"}
    key = KEY | {"partitions": 2, "configs": json.dumps({name: {"value": value} for name, value in configs.items()})}
    given = {"inventory.topic_hourly": [key, key | {"cluster": "d", "configs": "{}"}]}
    query = (
        "select public.reads_remotely(cluster, topic, :hour, cast(:lag_seconds as double precision),"
        " cast(:lag_bytes as double precision)) from inventory.topic_hourly order by cluster"
    )
    assert rows_for(module_warehouse, given, query, lag_seconds=lag_seconds, lag_bytes=lag_bytes) == [
        (remotely,), (False,),
    ]  # fmt: skip


def _disk(
    cluster: str, volume: str, reads: dict[int, float], baseline: float | None, kind: str
) -> dict[str, list[Row]]:
    key = PLACE | {"volume_id": volume}
    return {
        "metrics.broker_hourly": [BROKER | {"cluster": cluster, "endpoint": volume, "instance_id": f"i-{volume}"}],
        "inventory.volume_hourly": [key | {"instance_id": f"i-{volume}"}],
        "metrics.volume_hourly": [key | {"read_baseline_bytes_per_second": baseline, "read_baseline_kind": kind,
                                         "read_baseline_mad_bytes_per_second": 0, "read_baseline_hours": 9}],
        "metrics.volume_sample": [key | {"at": HOUR + timedelta(minutes=minute), "period_seconds": 60,
                                         "read_bytes": 60 * read} for minute, read in reads.items()],
    }  # fmt: skip


def test_disk_reads_of_a_cluster(module_warehouse: sa.Engine) -> None:
    given: dict[str, list[Row]] = {}
    for volume in (
        _disk("c", "large", {10: 1010, 11: 1010, 12: 10}, 10, "all_hours"),
        _disk("c", "fifth", {10: 210, 11: 210}, 10, "hour_of_week"),
        _disk("c", "small", {10: 150, 11: 150}, 10, "hour_of_week"),
        _disk("c", "at rest", {10: 10, 11: 10}, 10, "all_hours"),
        _disk("c", "no baseline", {10: 9000}, None, "all_hours"), _disk("c", "no reads", {}, 10, "all_hours"),
        _disk("d", "quiet", {10: 10, 11: 12}, 10, "all_hours"),
    ):  # fmt: skip
        for table, rows in volume.items():
            given.setdefault(table, []).extend(rows)
    c, d = rows_for(
        module_warehouse, given, "select * from public.cluster_disk_reads(:hour, 6, 100, 2, 1e9, 0.2) order by cluster"
    )
    since = HOUR + timedelta(minutes=10)
    assert c[:-1] == ("c", 6, 2, 3, 9000, since, since + timedelta(minutes=2), 2, 1370, 30, 1370, 1340, 9)
    assert [(one["volume_id"], one["read_bytes_per_second"], one["minutes_above"]) for one in c[-1]] == [
        ("large", 1010, 2), ("fifth", 210, 2),
    ]  # fmt: skip
    assert d == ("d", 1, 0, 0, 12, None, None, None, None, None, None, None, None, None)
