"""The app consumer_groups on a real broker, into a real warehouse, evaluated by the real detector."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.jars import TOOLS, classpath
from demo.process import JVM_OPTIONS
from pyspark.sql import functions as f
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config, load_config
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import evaluate, findings, load_detectors

from spark_apps.apps.consumer_groups.inventory import brokers, log_partitions
from spark_apps.apps.consumer_groups.inventory import topics as topics_of
from spark_apps.apps.consumer_groups.lag import badness, busy_members
from spark_apps.apps.consumer_groups.positions import positions
from spark_apps.runtime.class_archive import java
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from spark_apps.submit import run_app
from tests.clock import present_hour
from tests.simulator.frames import KNOWN_COMMITS, NO_KNOWN_ENDS, rows_frame
from tests.spark_apps.offsets_log import Commit, commit, log_partition, times_written, write_commits, write_group
from tests.spark_apps.sources.connect_api import connect_api
from tests.spark_apps.sources.registry import MONEY, ORDER, SCHEMAS, registry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PAST = start_of_hour(datetime.now(UTC)) - timedelta(hours=26)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker for this module only, because its offsets are found by time."""
    with Broker(tmp_path_factory.mktemp("groups")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def run_hour(
    servers: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[datetime], Config]]:
    """Puts the config in force, here and in Spark's tasks; runs the app for an hour."""
    file = tmp_path_factory.mktemp("config") / "streamwarden.yaml"
    file.write_text(yaml.safe_dump({"kafka": [{"name": "shop", "bootstrap_servers": servers}]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONFIG_ENV, str(file))
        patch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))

        def run(hour: datetime) -> Config:
            run_app(spark, "consumer_groups", hour, load_config())
            return load_config()

        yield run


@pytest.fixture(autouse=True)
def _tasks_know_the_warehouse(spark: Any, warehouse_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, WAREHOUSE_ENV, warehouse_url)


def rows(warehouse: sa.Engine, table: str, *key: str) -> dict[Any, Any]:
    with warehouse.connect() as connection:
        found = connection.execute(sa.text(f"select * from {table}")).mappings().all()
    return {tuple(row[k] for k in key) if len(key) > 1 else row[key[0]]: row for row in found}


def topic(servers: str, partitions: int, name: str = "") -> str:
    name = name or f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    config = {"cleanup.policy": "compact"} if name.endswith("-changelog") else {}
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result()
    return name


def produce(servers: str, name: str, at: list[datetime], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": servers})
    deadline = time.monotonic() + 10
    for moment in at:
        producer.produce(name, b"x" * 50, partition=partition, timestamp=int(moment.timestamp() * 1000))
    while producer.flush(1) and time.monotonic() < deadline:
        pass


@pytest.mark.rare
def test_a_cluster_without_topics_and_groups_has_answered(
    run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """First test of the module: `__consumer_offsets` does not exist yet."""
    run_hour(present_hour())
    with warehouse.connect() as connection:
        query = sa.text("select distinct status, resource_name from detect.coverage")
        coverage = connection.execute(query).tuples().all()
    assert {status for status, _ in coverage} == {"complete"}
    assert ("complete", "shop") in coverage
    assert not rows(warehouse, "metrics.consumer_group_hourly", "group_id")


@pytest.mark.rare
def test_brokers_of_out_of_sync_replicas(spark: Any) -> None:
    partitions = [
        {"partition": 0, "leader": 1, "replicas": [1, 3, 2], "isr": [1]},
        {"partition": 1, "leader": 2, "replicas": [1, 2], "isr": [2, 1]},
    ]
    listed = [{"cluster": "c", "topic": "orders", "partitions": partitions}]
    sources = {
        "kafka_topics": rows_frame(spark, listed, KafkaTopics({}).schema()),
        "kafka_offsets": rows_frame(spark, [], KafkaOffsets({}).schema()),
    }
    found = {row.partition: (row.replicas, row.isr, row.missing_brokers) for row in log_partitions(sources).collect()}
    assert found == {0: (3, 1, "[2,3]"), 1: (2, 2, None)}


@pytest.mark.rare
def test_kind_and_owner_of_a_topic(spark: Any) -> None:
    """Two clusters, one without groups. A topic that is not compacted is not a changelog, whatever its name."""
    job = "__samza_checkpoint_ver_1_for_shop-eu_1"
    names = [
        "app-a-b-changelog",
        "app-a-c-repartition",
        "app-a-old-changelog",
        "seen-log-of-shop",
        job,
        "orders",
        "__x",
    ]
    policies = {"app-a-old-changelog": "delete"}
    listed = [
        {
            "cluster": cluster,
            "topic": topic,
            "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}],
            "configs": {"cleanup.policy": {"value": policies.get(topic, "compact")}},
            "observed_at": present_hour(),
        }
        for cluster in "cd"
        for topic in names
    ]
    sources = {
        "kafka_topics": rows_frame(spark, listed, KafkaTopics({}).schema()),
        "kafka_groups": rows_frame(spark, [{"cluster": "c", "group_id": "app-a"}], KafkaGroups({}).schema()),
    }
    found = topics_of(sources, ["seen-log-of-(?P<job>.+)"]).collect()
    of = {(row.cluster, row.topic): (row.kind, row.application_id) for row in found}
    assert len(of) == len(found) == 2 * len(names)
    assert {topic: of["c", topic] for topic in names} == {
        "app-a-b-changelog": ("changelog", "app-a"),
        "app-a-c-repartition": ("repartition", "app-a"),
        "app-a-old-changelog": ("plain", "app-a"),
        "seen-log-of-shop": ("changelog", "shop"),
        job: ("checkpoint", "shop-eu"),
        "orders": ("plain", None),
        "__x": ("internal", None),
    }
    assert (of["d", job], of["d", "seen-log-of-shop"]) == (of["c", job], of["c", "seen-log-of-shop"])


def test_brokers_are_those_that_are_listed_or_have_replicas(spark: Any) -> None:
    at = present_hour()
    partitions = [
        {"partition": 0, "leader": 1, "replicas": [1, 3], "isr": [1]},
        {"partition": 1, "leader": None, "replicas": [3], "isr": [3]},
    ]
    listed: list[dict[str, Any]] = [
        {"cluster": "c", "topic": "orders", "partitions": partitions},
        {"cluster": "c", "topic": "audit", "partitions": partitions},
        *(
            {"cluster": "c", "broker": n, "host": host, "rack": rack, "observed_at": at}
            for n, host, rack in ((1, "k1", "a"), (2, "k2", None), (3, None, None))
        ),
        {"cluster": "d", "broker": 3, "host": "k3", "observed_at": at},
    ]
    moves = [
        {"cluster": "c", "kind": "broker", "broker": 1, "adding_replicas": 0, "throttles": "{}"},
        {"cluster": "c", "kind": "broker", "broker": 3, "adding_replicas": 2, "gap": "failed: it is down."},
    ]
    sources = {
        "kafka_topics": rows_frame(spark, listed, KafkaTopics({}).schema()),
        "kafka_log_dirs": rows_frame(spark, moves, KafkaLogDirs({}).schema()),
    }
    found = brokers(sources).collect()
    assert {
        (row.cluster, row.broker_id): (
            row.host,
            row.rack,
            row.is_listed,
            row.replicas,
            row.adding_replicas,
            row.throttles,
        )
        for row in found
    } == {
        ("c", 1): ("k1", "a", True, 2, 0, "{}"),
        ("c", 2): ("k2", None, True, 0, None, None),
        ("c", 3): (None, None, False, 4, 2, None),
        ("d", 3): ("k3", None, True, 0, None, None),
    }


def test_partitions_whose_replicas_all_lie_in_one_rack(spark: Any) -> None:
    """Brokers 1 and 2 are in rack a, 3 is in b, 4 and 5 report no rack; in cluster d broker 2 is in b."""
    racks = {"c": {1: "a", 2: "a", 3: "b", 4: None, 5: None}, "d": {1: "a", 2: "b"}, "e": {1: None, 2: None}}
    placed = {
        "apart": [[1, 3], [3, 2, 1], [4, 1, 3]], "one": [[2, 1], [1, 3], [1, 2]], "single": [[1], [4]], "alone": [],
        "not reported": [[1, 3], [1, 4]], "no rack": [[4, 5]], "at least": [[1, 2], [1, 4]],
    }  # fmt: skip
    listed: list[dict[str, Any]] = [
        {"cluster": cluster, "topic": topic, "partitions": [{"partition": n, "replicas": r} for n, r in enumerate(of)]}
        for cluster in racks
        for topic, of in placed.items()
    ]
    listed += [
        {"cluster": cluster, "broker": broker, "host": "h", "rack": rack}
        for cluster, of in racks.items()
        for broker, rack in of.items()
    ]
    sources = {
        "kafka_topics": rows_frame(spark, listed, KafkaTopics({}).schema()),
        "kafka_groups": rows_frame(spark, [], KafkaGroups({}).schema()),
    }
    found = {(row.cluster, row.topic): row.one_rack_partitions for row in topics_of(sources, []).collect()}
    assert {topic: found["c", topic] for topic in placed} == {
        "apart": 0, "one": 2, "single": 0, "alone": 0, "not reported": None, "no rack": None, "at least": 1,
    }  # fmt: skip
    assert (found["d", "one"], found["e", "one"], found["e", "single"]) == (None, None, 0)


def test_rate_of_members_that_always_have_lag(spark: Any) -> None:
    """Members with lag on one partition, on several, on none. Equal partitions count only if all have lag."""
    members = {
        "one": ["a", "b"],
        "busy beside idle": ["a"],
        "alike": ["a", "a"],
        "alike, one behind": ["a", "a"],
        "keeps up": ["a"],
        "not reported": ["a"],
        "began behind": ["a"],
    }
    sources = {
        "kafka_groups": driver_rows(
            spark,
            [("c", group, [(client, "h") for client in clients]) for group, clients in members.items()],
            "cluster string, group_id string, members array<struct<client_id string, host string>>",
        )
    }
    behind, silent, late = 3000.0, 300.0, 3300.0
    partitions = [
        ("one", "a", late, behind, 200.0, 5), ("one", "b", late, behind, 150.0, 5),
        ("one", None, late, behind, 900.0, 5),
        ("busy beside idle", "a", late, behind, 100.0, 5), ("busy beside idle", "a", 0.0, None, None, 0),
        ("busy beside idle", "a", 1.0, behind, 40.0, 5),
        ("alike", "a", late, behind, 100.0, 5), ("alike", "a", late, behind, 300.0, 5),
        ("alike, one behind", "a", late, behind, 100.0, 5), ("alike, one behind", "a", 0.0, behind, 10.0, 5),
        ("keeps up", "a", 0.0, behind, 100.0, 5),
        ("not reported", "a", late, behind, 100.0, 5), ("not reported", "a", 1.0, None, None, 5),
        ("began behind", "a", late - 1, behind, 100.0, 5),
    ]  # fmt: skip
    places = driver_rows(
        spark,
        [("c", group, client, client and "h", *rest, silent) for group, client, *rest in partitions],
        "cluster string, group_id string, client_id string, host string, lag_seconds_low double,"
        " reading_seconds double, reading_per_second_high double, records_consumed int, silent_seconds double",
    )
    found = {row["group_id"]: row["busy_member_per_second"] for row in busy_members(sources, places).collect()}
    assert found == {"one": 200.0, "busy beside idle": 140.0, "alike": 200.0, "not reported": None}


@pytest.mark.rare
def test_a_commit_older_than_the_available_history_keeps_the_time_of_the_previous_hour(spark: Any) -> None:
    hour = present_hour() - HOUR
    yesterday, clock = hour - timedelta(hours=20), {"as_of": hour + HOUR, "read_at": hour + HOUR + timedelta(minutes=3)}
    now = {"cluster": "c", "kind": "committed", "topic": "t", "partition": 0, "committed_offset": 7} | clock
    known = {"cluster": "c", "topic": "t", "partition": 0, "known_committed_at": yesterday}
    sources = {
        "kafka_offsets": rows_frame(
            spark, [now | {"group_id": group} for group in ("stands", "was set", "new")], KafkaOffsets({}).schema()
        ),
        "known_commits": rows_frame(
            spark,
            [known | {"group_id": "stands", "known_offset": 7}, known | {"group_id": "was set", "known_offset": 5}],
            KNOWN_COMMITS,
        ),
        "kafka_commits": rows_frame(
            spark, [{"cluster": "c", "kind": "read", "log_partition": 0}], KafkaCommits({}).schema()
        ),
        "known_ends": rows_frame(spark, [], NO_KNOWN_ENDS),
    }
    found = {row.group_id: row.committed_at for row in positions(sources, hour).collect()}
    assert found == {"stands": yesterday.replace(tzinfo=None), "was set": None, "new": None}


def test_among_equal_partitions_each_run_names_the_same_one(spark: Any) -> None:
    equal = [(topic, partition, "ok", 0.5, 3) for topic in ("a", "b") for partition in (0, 1)]
    columns = "topic string, partition int, status string, lag_seconds double, lag_records bigint"
    for rows in (equal, equal[::-1]):
        worst = driver_rows(spark, rows, columns).coalesce(1).agg(
            f.max_by("topic", badness()), f.max_by("partition", badness())
        )  # fmt: skip
        assert worst.first() == ("b", 0)


@pytest.mark.rare
def test_a_past_hour_comes_from_the_commit_history(
    servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """One record every 10 s through the hour. One group keeps up, one stops after 30 min, one resets its offset."""
    name = topic(servers, 2, "past")
    commit(servers, "warm-up", TopicPartition(name, 0, 0))  # creates __consumer_offsets
    moments = [PAST + timedelta(seconds=10 * i) for i in range(360)]
    for partition in range(2):
        produce(servers, name, moments, partition)
    minutes = [PAST + timedelta(minutes=m, seconds=1) for m in range(-5, 60)]

    def reached(at: datetime) -> int:
        return max(0, int((at - PAST).total_seconds() / 10) + 1)

    taken = {log_partition("warm-up", 8)}
    keeps_up, stops, rewinds = (_named(stem, taken) for stem in ("keeps-up", "stops", "rewinds"))
    half = PAST + timedelta(minutes=30)
    history = [Commit(keeps_up, name, p, reached(at), at) for at in minutes for p in range(2)]
    history += [Commit(stops, name, p, reached(at if p else min(at, half)), at) for at in minutes for p in range(2)]
    history += [Commit(rewinds, name, 0, reached(at) if at < half else max(reached(at) - 250, 0), at) for at in minutes]
    history.append(Commit(keeps_up, "deleted since", 0, 5, half))
    write_commits(servers, sorted(history, key=lambda c: c.at))

    config = run_hour(PAST)
    places = rows(warehouse, "metrics.consumer_partition_hourly", "group_id", "topic", "partition")
    groups = rows(warehouse, "metrics.consumer_group_hourly", "group_id")

    fine = places[keeps_up, name, 0]
    assert (fine["committed_offset"], fine["log_end_offset"], fine["lag_records"]) == (355, 360, 5)
    assert fine["lag_seconds"] == pytest.approx(50, abs=10)
    assert (fine["commits"], fine["records_consumed"], fine["rewinds"], fine["status"]) == (60, 355, 0, "ok")
    assert groups[keeps_up]["status"] == "ok"

    stuck, sibling = places[stops, name, 0], places[stops, name, 1]
    assert (stuck["committed_offset"], stuck["lag_records"], stuck["status"]) == (181, 179, "stall")
    assert stuck["lag_seconds"] == pytest.approx(1790, abs=2)
    assert abs(stuck["moved_at"] - half) < timedelta(minutes=1, seconds=2)
    assert sibling["status"] == "ok"
    # The group is stuck and still commits, once a minute.
    assert stuck["still_seconds"] == pytest.approx(1799, abs=61)
    assert stuck["silent_seconds"] == pytest.approx(59, abs=2)
    assert (stuck["commit_gap_p95_seconds"], stuck["is_assigned"]) == (pytest.approx(60), None)
    assert (groups[stops]["status"], groups[stops]["worst_partition"]) == ("stall", 0)

    back = places[rewinds, name, 0]
    assert (back["rewinds"], back["status"]) == (1, "rewind")
    lost = places[keeps_up, "deleted since", 0]
    assert (lost["committed_offset"], lost["log_end_offset"], lost["lag_records"], lost["status"]) == (
        5,
        None,
        None,
        None,
    )
    # The warm-up group committed today only: nothing shows that it existed in the past hour.
    assert {group for group, _, _ in places} == {keeps_up, stops, rewinds} == groups.keys()
    only_present = (
        *(f"inventory.{table}_hourly" for table in ("topic", "broker", "consumer_group", "schema")),
        *(f"metrics.{table}" for table in ("partition_hourly", "log_dir_hourly", "replica_sample")),
        "inventory.consumer_member_hourly",
    )
    assert {table: len(rows(warehouse, table, "hour")) for table in only_present} == dict.fromkeys(only_present, 0)
    coverage = rows(warehouse, "detect.coverage", "source", "resource_name")
    for source in ("kafka_topics", "kafka_groups", "kafka_log_dirs"):
        assert coverage[source, "shop"]["status"] == "missing"
        assert "only knows the present" in coverage[source, "shop"]["message"]
    assert coverage["kafka_commits", "shop"]["status"] == "complete"
    assert coverage["kafka_offsets", "shop"]["status"] == "complete"

    evaluate(warehouse, load_detectors()["consumer_group_lagging"], PAST, config)
    found = rows(warehouse, "detect.evaluation", "resource_name")
    assert found[f"shop/{keeps_up}"]["status"] == "ok"
    assert found[f"shop/{stops}"]["status"] == "firing"
    assert found[f"shop/{stops}"]["reason"] == "partition_stuck"
    assert f"is stuck on {name}-0 at offset 181, " in found[f"shop/{stops}"]["message"]
    assert "shop/warm-up" not in found


@pytest.mark.rare
@pytest.mark.parametrize(("hours", "minutes_ahead", "known_end"), [(2, 50.0, 358), (3, 39.5, 360)])
def test_a_clock_ahead_does_not_hide_a_stuck_group(
    servers: str,
    run_hour: Callable[[datetime], Config],
    warehouse: sa.Engine,
    hours: int,
    minutes_ahead: float,
    known_end: int,
) -> None:
    """One record has a future timestamp: by time, the log seems to end before the committed offset."""
    name, hour = topic(servers, 1), PAST + hours * HOUR  # after the records of the previous test
    commit(servers, "warm-up", TopicPartition(name, 0, 0))
    moments = [hour + timedelta(seconds=10 * i) for i in range(360)]
    moments[120] += timedelta(minutes=minutes_ahead)
    produce(servers, name, moments)
    taken = {log_partition("warm-up", 8)}
    leads, stands, beyond = (_named(f"{stem}-{hours}", taken) for stem in ("leads", "stands", "beyond"))
    minutes = [hour + timedelta(minutes=m, seconds=1) for m in range(60)]
    offsets = {leads: 358, stands: 181, beyond: 1000}
    history = [Commit(group, name, 0, offset, at) for at in minutes for group, offset in offsets.items()]
    write_commits(servers, sorted(history, key=lambda c: c.at))

    config = run_hour(hour)
    places = rows(warehouse, "metrics.consumer_partition_hourly", "group_id", "topic")
    # The log reached the committed offset of the first group; the next record's timestamp says since when it waits.
    behind = places[stands, name]
    waiting = known_end - 181
    assert (behind["log_end_offset"], behind["lag_records"], behind["waiting_records"]) == (known_end, waiting, waiting)
    assert behind["lag_seconds"] == pytest.approx(1790, abs=11)
    assert places[leads, name]["lag_records"] == max(known_end - 358, 2)
    assert places[beyond, name]["lag_records"] is None
    evaluate(warehouse, load_detectors()["consumer_group_lagging"], hour, config)
    found = rows(warehouse, "detect.evaluation", "resource_name")
    assert (found[f"shop/{stands}"]["reason"], found[f"shop/{beyond}"]["reason"]) == ("stuck", "offset_out_of_range")


@pytest.mark.rare
def test_markers_and_aborted_records_at_the_end_of_a_log_are_not_lag(
    servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """Two groups stopped. One has read everything; for the other, a record waits after aborted records."""
    done, waits = topic(servers, 1), topic(servers, 1)
    hour = PAST + 4 * HOUR
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"tx-{done}"})
    producer.init_transactions()

    def moments(first: int, last: int) -> list[datetime]:
        return [hour + timedelta(minutes=minute) for minute in range(first, last)]

    # The broker stamps markers with today's time: by time, the log ends at its first marker.
    for name in (done, waits):
        produce(servers, name, moments(0, 10))
        producer.begin_transaction()
        for at in moments(10, 20):
            producer.produce(name, b"x" * 50, partition=0, timestamp=int(at.timestamp() * 1000))
        producer.flush(10)
        if name == waits:
            produce(servers, name, moments(20, 25))
        producer.abort_transaction()
    commit(servers, "warm-up", TopicPartition(done, 0, 0))
    taken = {log_partition("warm-up", 8)}
    of = {done: _named("done", taken), waits: _named("waits", taken)}
    minutes = [hour + timedelta(minutes=m, seconds=1) for m in range(10, 60)]
    write_commits(servers, [Commit(of[name], name, 0, 10, at) for at in minutes for name in (done, waits)])

    config = run_hour(hour)
    places = rows(warehouse, "metrics.consumer_partition_hourly", "group_id")
    assert (places[of[done]]["lag_records"], places[of[done]]["lag_seconds"]) == (0, 0)
    assert (places[of[waits]]["lag_records"], places[of[waits]]["waiting_records"]) == (5, 5)
    assert places[of[waits]]["lag_seconds"] == pytest.approx(40 * 60, abs=61)
    evaluate(warehouse, load_detectors()["consumer_group_lagging"], hour, config)
    found = rows(warehouse, "detect.evaluation", "resource_name")
    assert [found[f"shop/{of[name]}"]["status"] for name in (done, waits)] == ["ok", "firing"]


@pytest.mark.rare
def test_a_hanging_transaction(servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine) -> None:
    """The producer is alive and idle. The command of the ticket aborts the transaction."""
    name, hour = topic(servers, 1), present_hour()
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": f"tx-{name}", "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions()
    produce(servers, name, [datetime.now(UTC)] * 2)
    producer.begin_transaction()
    producer.produce(name, b"never committed", partition=0)
    assert producer.flush(10) == 0
    commit(servers, "held-up", TopicPartition(name, 0, 2))

    run_hour(hour)
    with warehouse.begin() as connection:  # rows as of two hours before, when the transaction was open already
        connection.execute(
            sa.text("""
                update metrics.partition_hourly
                set hour = hour - interval '2 h', offsets_at = offsets_at - interval '2 h' where hour = :hour"""),
            {"hour": hour},
        )
    produce(servers, name, [datetime.now(UTC)] * 3)

    def said() -> dict[str, Any]:
        config = run_hour(hour)
        evaluate(warehouse, load_detectors()["transaction_hanging"], hour, config)
        return dict(rows(warehouse, "detect.evaluation", "resource_name")[f"shop/{name}"])

    hangs = said()
    figures = hangs["metrics"]
    assert (hangs["reason"], figures["blocked_groups"]) == ("blocks_readers", "held-up")
    assert (figures["worst_topic_partition"], figures["last_stable_offset"], figures["waiting_records"]) == (
        f"{name}-0",
        2,
        4,
    )
    printed = [_run_tool(command) for command in hangs["commands"]]
    assert str(figures["last_stable_offset"]) in printed[1], printed
    produce(servers, name, [datetime.now(UTC)])
    assert said()["reason"] == "none_open"


def _run_tool(command: str) -> str:
    """Output of Kafka's own tool for a command of a ticket."""
    tool, *arguments = shlex.split(command)
    assert tool == "kafka-transactions.sh"
    run = [java(), *JVM_OPTIONS, "-cp", classpath(TOOLS), "org.apache.kafka.tools.TransactionsCommand", *arguments]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.rare
def test_a_group_on_another_applications_changelog(
    servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """Two groups are applications with a changelog each; the third group reads the changelog of the first."""
    hour, id_ = present_hour(), uuid.uuid4().hex[:6]
    changelog, own = (topic(servers, 1, f"{app}-{id_}-totals-changelog") for app in ("bills", "stock"))
    source = topic(servers, 1)
    for name in (changelog, own, source):
        produce(servers, name, [datetime.now(UTC)] * 3)
    commit(servers, f"bills-{id_}", TopicPartition(source, 0, 3), TopicPartition(changelog, 0, 3))
    commit(servers, f"stock-{id_}", TopicPartition(source, 0, 3), TopicPartition(own, 0, 3))
    commit(servers, f"reports-{id_}", TopicPartition(source, 0, 3), TopicPartition(changelog, 0, 1))

    config, rule = run_hour(hour), load_detectors()["internal_topic_foreign_consumer"]
    with warehouse.connect() as connection:
        said = findings(connection, rule, hour, config, rule.params_in_force(config))
    found = {dict(one.resource.columns)["group_id"].removesuffix(f"-{id_}"): one for one in said}
    assert [found[app].reason for app in ("bills", "stock")] == ["own_topics_only"] * 2
    figures = found["reports"].metrics
    assert found["reports"].reason == "foreign_read"
    assert (figures["topic_names"], figures["application_names"]) == (changelog, f"bills-{id_}")


def _named(stem: str, taken: set[int]) -> str:
    """A group alone on its partition of `__consumer_offsets`: newer records would hide it from a search by time."""
    name = next(n for n in (f"{stem}-{i}" for i in range(1000)) if log_partition(n, 8) not in taken)
    taken.add(log_partition(name, 8))
    return name


def test_the_present_hour(servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine) -> None:
    now = datetime.now(UTC)
    name, gone, store = topic(servers, 3), topic(servers, 1), topic(servers, 1, "orders-app-totals-changelog")
    for partition in range(3):
        produce(servers, name, [now] * 100, partition)
    produce(servers, gone, [now] * 10)
    time.sleep(1)
    commit(servers, "partial", TopicPartition(name, 1, 60), TopicPartition(gone, 0, 4))
    commit(servers, "partial", TopicPartition(name, 1, 70))
    commit(servers, "beyond", TopicPartition(name, 0, 10_000))
    commit(servers, "orders-app", TopicPartition(name, 2, 100))
    # Written manually: no coordinator has loaded these commits.
    lately = now - timedelta(minutes=2)
    removed = [Commit("removed", name, 0, offset, lately) for offset in (9, None)]
    write_commits(servers, [Commit("lost", name, 0, 9, lately), *removed])
    write_group(servers, "connect-workers", 3, lately)  # not a consumer group, so not expected
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([gone])[gone].result()
    hour = present_hour()
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into inventory.consumer_group_hourly (hour, cluster, group_id, observed_at)"
                " values (:hour, 'shop', 'idle and lost', :hour), (:hour, 'shop', 'removed', :hour)"
            ),
            {"hour": hour - HOUR},
        )

    config = run_hour(hour)
    first = rows(warehouse, "metrics.consumer_partition_hourly", "group_id", "topic", "partition")
    # Commits exist on one partition of three. The coordinator removed the commit on the deleted topic.
    assert {key for key in first if key[0] == "partial"} == {("partial", name, 1)}
    partial = first["partial", name, 1]
    assert (partial["committed_offset"], partial["lag_records"]) == (70, 30)
    assert partial["commits"] == times_written(servers, "partial", TopicPartition(name, 1)) >= 2
    assert partial["records_consumed"] == 10
    # A client that commits without joining has neither members nor generations, as Flink's groups.
    group = rows(warehouse, "metrics.consumer_group_hourly", "group_id")["partial"]
    assert (group["members"], group["rebalances"], group["commits"]) == (0, 0, partial["commits"])
    assert 0 < partial["lag_seconds"] < 120
    assert (first["beyond", name, 0]["lag_records"], first["beyond", name, 0]["log_end_offset"]) == (None, 100)
    topics = rows(warehouse, "inventory.topic_hourly", "topic")
    assert (topics[store]["kind"], topics[store]["application_id"]) == ("changelog", "orders-app")
    assert (topics["__consumer_offsets"]["kind"], topics[name]["kind"]) == ("internal", "plain")
    partitions = rows(warehouse, "metrics.partition_hourly", "topic", "partition")
    assert (partitions[name, 0]["log_end_offset"], partitions[name, 0]["isr"]) == (100, 1)

    replicas = rows(warehouse, "public.replicas", "topic", "partition", "broker_id")
    assert replicas[name, 0, 1]["size_bytes"] > 100 * 50
    [log_dir] = rows(warehouse, "metrics.log_dir_hourly", "log_dir").values()
    assert log_dir["log_bytes"] == sum(replica["size_bytes"] for replica in replicas.values())
    assert (log_dir["replicas"], log_dir["usable_bytes"] > 0) == (len(replicas), True)

    run_hour(hour)
    again = rows(warehouse, "metrics.consumer_partition_hourly", "group_id", "topic", "partition")
    steady = ("committed_offset", "commits", "records_consumed", "lag_records")
    assert {k: [r[c] for c in steady] for k, r in again.items()} == {
        k: [r[c] for c in steady] for k, r in first.items()
    }
    gaps = rows(warehouse, "(select * from detect.coverage where status <> 'complete') as gap", "resource_name")
    assert set(gaps) == {"shop group lost", "shop group idle and lost"}
    assert gaps["shop group lost"]["message"].startswith("group 'lost' was not removed, but no coordinator lists it")
    groups = rows(warehouse, "metrics.consumer_group_hourly", "group_id")
    assert (groups["lost"]["state"], groups["lost"]["partitions"]) == (None, 1)  # from its commit history
    assert (groups["idle and lost"]["state"], groups["idle and lost"]["partitions"]) == (None, None)
    assert "removed" not in groups
    evaluate(warehouse, load_detectors()["consumer_group_lagging"], hour, config)
    statuses = {
        row["resource_name"]: row["status"] for row in rows(warehouse, "detect.evaluation", "resource_name").values()
    }
    assert statuses["shop/idle and lost"] == "unknown"


def checkpoint(servers: str, topic: str, task: str, offsets: dict[tuple[str, int], int], at: datetime) -> None:
    """As Samza's KafkaCheckpointLogKeySerde and CheckpointV1Serde write it."""
    factory = "org.apache.samza.container.grouper.stream.GroupByPartitionFactory"
    key = {"systemstreampartition-grouper-factory": factory, "taskName": task, "type": "checkpoint"}
    value = {
        f"SystemStreamPartition [kafka, {name}, {partition}]": {
            "system": "kafka", "stream": name, "partition": str(partition), "offset": str(offset)
        }
        for (name, partition), offset in offsets.items()
    }  # fmt: skip
    producer = Producer({"bootstrap.servers": servers})
    moment = int(at.timestamp() * 1000)
    producer.produce(topic, json.dumps(value).encode(), json.dumps(key).encode(), timestamp=moment)
    assert producer.flush(10) == 0


@pytest.mark.rare
def test_the_position_of_a_samza_job_comes_from_its_checkpoints(
    servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """Two running tasks, one input without checkpoints since long before the hour, and a decoy."""
    now, hour = datetime.now(UTC), present_hour()
    name, idle = topic(servers, 2), topic(servers, 1)
    for one, partition in ((name, 0), (name, 1), (idle, 0)):
        produce(servers, one, [now - timedelta(minutes=1)] * 100, partition)
    job, decoy = f"job-{uuid.uuid4().hex[:8]}", topic(servers, 1, "__samza_checkpoint_backup")
    log = topic(servers, 1, f"__samza_checkpoint_ver_1_for_{job}_1")
    checkpoint(servers, log, "Partition 9", {(idle, 0): 49}, hour - timedelta(hours=9))
    for ago, offset in ((40, 59), (20, 69)):
        at = now - timedelta(seconds=ago)
        checkpoint(servers, log, "Partition 0", {(name, 0): offset}, at)
        checkpoint(servers, log, "Partition 1", {(name, 1): 99}, at)
        checkpoint(servers, decoy, "Partition 0", {(name, 0): 5}, at)

    run_hour(hour)
    places = rows(warehouse, "metrics.consumer_partition_hourly", "group_id", "topic", "partition")
    mine = {key[1:]: row for key, row in places.items() if key[0] == job}
    columns = ("committed_offset", "lag_records", "commits", "records_consumed")
    assert {key: tuple(row[c] for c in columns) for key, row in mine.items()} == {
        (name, 0): (70, 30, 2, 10),
        (name, 1): (100, 0, 2, 0),
        (idle, 0): (50, 50, 0, 0),
    }
    assert not {key for key in places if key[1] == name and key[0] != job}
    group = rows(warehouse, "metrics.consumer_group_hourly", "group_id")[job]
    assert [group[c] for c in ("state", "members", "rebalances", "commits", "partitions")] == ["EMPTY", 0, 0, 4, 3]
    kinds = rows(warehouse, "inventory.topic_hourly", "topic")
    assert (kinds[log]["kind"], kinds[log]["application_id"], kinds[decoy]["kind"]) == ("checkpoint", job, "internal")
    assert rows(warehouse, "inventory.consumer_group_hourly", "group_id")[job]["protocol"] == "samza"

    # A job whose checkpoints are deleted an hour later is not a group lost by its coordinator.
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([log])[log].result()
    with warehouse.begin() as connection:
        query = "update inventory.consumer_group_hourly set hour = hour - interval '1 hour' where group_id = :job"
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (hour - HOUR).date()})
        connection.execute(sa.text(query), {"job": job})
    run_hour(hour)
    gaps = rows(warehouse, "(select * from detect.coverage where status <> 'complete') as gap", "resource_name")
    assert not {resource for resource in gaps if job in resource}


@pytest.mark.rare
def test_members_that_leave_a_group_are_in_its_generations(
    servers: str, run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """One member stays, another joins and leaves twice."""
    name = topic(servers, 2)
    hour = present_hour()

    def joined(client_id: str) -> Consumer:
        timeouts = {"session.timeout.ms": 10_000, "max.poll.interval.ms": 20_000}
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "restless", "client.id": client_id, **timeouts})
        consumer.subscribe([name])
        return consumer

    def until(partitions_of: dict[Consumer, int]) -> None:
        deadline = time.monotonic() + 30
        while any(len(consumer.assignment()) != partitions for consumer, partitions in partitions_of.items()):
            assert time.monotonic() < deadline
            for consumer in partitions_of:
                consumer.poll(0.1)

    stays = joined("stays")
    until({stays: 2})
    for _ in range(2):
        comes = joined("comes and goes")
        until({stays: 1, comes: 1})
        comes.close()
        until({stays: 2})
    stays.close()

    run_hour(hour)
    steps = rows(
        warehouse, "(select * from metrics.group_step_hourly where group_id = 'restless') as step", "generation"
    )
    changes = [
        (steps[n]["members"], *(steps[n][c] and [m["client_id"] for m in steps[n][c]] for c in ("gone", "come")))
        for n in sorted(steps)
    ]
    alone, together = (1, ["comes and goes"], []), (2, [], ["comes and goes"])
    assert changes[1:5] == [together, alone, together, alone]
    assert changes[0][0] == 1
    assert [sorted(n["assignment"]) for step in steps.values() for n in step["gone"] or () if n["host"]] == [[name]] * 3
    assert (steps[2]["poll_interval_ms"], steps[2]["session_timeout_ms"]) == (20_000, 10_000)
    assert all(hour <= step["began_at"] < hour + HOUR for step in steps.values())
    assert rows(warehouse, "metrics.consumer_group_hourly", "group_id")["restless"]["rebalances"] == len(steps)


@pytest.mark.rare
def test_a_poison_pill_record(
    servers: str, spark: Any, run_hour: Callable[[datetime], Config], warehouse: sa.Engine
) -> None:
    """Three members read four partitions. Each member that receives one record exceeds max.poll.interval.ms with it."""
    name = topic(servers, 4)
    commit(servers, "bills", *(TopicPartition(name, p, 0) for p in range(4)))
    earlier = datetime.now(UTC) - timedelta(minutes=20)
    for partition in range(4):
        produce(servers, name, [earlier] * 5, partition)
    has_ended = threading.Event()

    def work(number: int) -> None:
        timeouts = {"session.timeout.ms": 6_000, "max.poll.interval.ms": 6_000, "heartbeat.interval.ms": 500}
        own: dict[str, Any] = {"group.id": "bills", "client.id": f"worker-{number}", "auto.commit.interval.ms": 500}
        own["enable.auto.offset.store"] = False  # commits processed records, not all polled ones
        consumer = Consumer({"bootstrap.servers": servers, **own, **timeouts})
        consumer.subscribe([name])
        while not has_ended.is_set():
            record = consumer.poll(0.2)
            if record and not record.error() and (record.partition(), record.offset()) == (2, 3):
                has_ended.wait(15)
            if record and not record.error() and not has_ended.is_set():
                with suppress(KafkaException):  # the coordinator removed it from the group meanwhile
                    consumer.store_offsets(record)
        consumer.close()

    def feed() -> None:
        while not has_ended.wait(
            1
        ):  # until the evaluation, however long that takes: otherwise all partitions are stuck
            produce(servers, name, [datetime.now(UTC) - timedelta(minutes=2)], 0)
            produce(servers, name, [datetime.now(UTC) - timedelta(minutes=2)], 1)

    workers = [threading.Thread(target=work, args=[number]) for number in range(3)] + [threading.Thread(target=feed)]
    for worker in workers:
        worker.start()
    hour = present_hour()
    time.sleep(30)
    config = run_hour(hour)
    has_ended.set()
    for worker in workers:
        worker.join()
    run_app(spark, "jvm_apps", hour, config)

    places = rows(warehouse, "metrics.consumer_partition_hourly", "group_id", "topic", "partition")
    assert (places["bills", name, 2]["committed_offset"], places["bills", name, 2]["lag_records"]) == (3, 2)
    params = {"still_minutes": 0.25, "still_gaps": 1, "few_share": 0.3}
    quick = Config.model_validate({"detectors": {"consumer_poison_pill": {"params": params}}})
    evaluate(warehouse, load_detectors()["consumer_poison_pill"], hour, quick)
    said = rows(warehouse, "detect.evaluation", "resource_name")["shop/bills"]
    assert said["reason"] == "poll_timeout_loop", said["reason"]
    # The owner of the partition had another one that may be unread for longer: the finding leaves open which one.
    assert said["metrics"]["place"] == f"{name}-2" or said["metrics"]["neighbor_partitions"], said["reason"]
    assert (said["metrics"]["poll_interval_ms"], said["metrics"]["turn_seconds"]) == (6000, pytest.approx(6, abs=1.5))
    assert {owner.partition(" on ")[0] for owner in said["metrics"]["owners"]} <= {f"worker-{n}" for n in range(3)}


@pytest.mark.rare
def test_an_unreachable_cluster_is_a_gap_without_rows_and_its_registry_is_read(
    spark: Any, warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "streamwarden.yaml"
    cluster: dict[str, Any] = {"name": "dead", "bootstrap_servers": "127.0.0.1:1"}
    monkeypatch.setenv(CONFIG_ENV, str(file))
    monkeypatch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
    with registry() as (url, _), connect_api() as connect:
        connects = [{"name": "main", "url": f"{connect}/good"}, {"name": "bad", "url": f"{connect}/down"}]
        rest = {"schema_registry": {"url": f"{url}/one_broken"}, "connect": connects}
        file.write_text(yaml.safe_dump({"kafka": [cluster | rest]}))
        loaded = run_app(spark, "consumer_groups", present_hour(), load_config())
    assert {table: n for table, n in loaded.items() if n} == {
        "inventory.schema_hourly": len(SCHEMAS),
        "inventory.registered_schema": 4,
        "inventory.connector_hourly": 2,
        "inventory.connector_task_hourly": 2,
    }
    sink = rows(warehouse, "inventory.connector_hourly", "connector")["s"]
    assert (sink["group_id"], sink["tasks"], sink["state"]) == ("connect-s", 1, "RUNNING")
    versions = rows(warehouse, "inventory.schema_hourly", "subject", "version")
    assert (versions["orders-value", 2]["schema_id"], versions["orders-value", 2]["compatibility"]) == (
        4,
        "FULL_TRANSITIVE",
    )
    assert versions["money", 1]["compatibility"] is None
    texts = rows(warehouse, "inventory.registered_schema", "cluster", "schema_id")
    assert (texts["dead", 1]["schema_type"], texts["dead", 1]["definition"]) == ("AVRO", ORDER)
    assert texts["dead", 3]["schema_references"] == MONEY
    failed = rows(warehouse, "detect.coverage", "resource_name")["dead schema registry subject money"]
    assert (failed["source"], failed["status"]) == ("schema_registry", "failed")
    coverage = rows(warehouse, "detect.coverage", "source", "resource_name")
    assert {
        source: row["status"] for (source, resource), row in coverage.items() if resource == "dead"
    } == dict.fromkeys(
        ("kafka_topics", "kafka_groups", "kafka_log_dirs", "kafka_offsets", "kafka_commits", "samza_checkpoints"),
        "failed",
    )
    assert coverage["kafka_connect", "dead connect bad"]["status"] == "failed"
    assert "no broker of cluster 'dead' at 127.0.0.1:1 responded" in coverage["kafka_topics", "dead"]["message"]
