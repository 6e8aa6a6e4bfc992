"""The Kafka sources on a real broker with TLS, SASL, and ACLs: complete rows, and one gap per kind of failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from demo.jars import STREAMS, classpath
from demo.process import JVM_OPTIONS, Process
from pyspark.sql import Row, SparkSession
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import HOUR, start_of_hour

from spark_apps.runtime.class_archive import java
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources import kafka_record_times
from spark_apps.sources.kafka_client import ClusterSource, Connection, cluster_named, led_partitions, read_clusters
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets, committed_offsets
from spark_apps.sources.kafka_record_times import record_times
from spark_apps.sources.kafka_topics import KafkaTopics
from spark_apps.sources.register import register_sources
from tests.clock import present_hour
from tests.secured_broker import SecuredBroker, secured_broker
from tests.spark_apps.offsets_log import Commit, commit, commit_key, commit_value, log_partition, write_commits

pytestmark = pytest.mark.slow
BEFORE = start_of_hour(datetime.now(UTC)) - timedelta(hours=30)
"""An hour of the day before yesterday; its commits are written manually."""
BILLING = 'bill"ing ü'
Read = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """`watcher` may describe everything, `blind` hardly anything."""
    passwords = {name: f"secret-{name}" for name in ("watcher", "blind")}
    with secured_broker(tmp_path_factory.mktemp("secured"), passwords) as running:
        _fill(running.bootstrap_servers)
        yield running


def _fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic("orders", 3, 1, config={"retention.ms": "-1"}), NewTopic("gone", 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result()
    time.sleep(1)
    producer = Producer({"bootstrap.servers": servers})
    for i in range(300):
        at = int((BEFORE + timedelta(seconds=12 * i)).timestamp() * 1000)
        producer.produce("orders", b"x", partition=i % 3, timestamp=at)
    for _ in range(10):
        producer.produce("gone", b"x", partition=0)
    assert producer.flush(10) == 0
    for group, commits in {
        BILLING: [TopicPartition("orders", 0, 40, metadata="a note"), TopicPartition("gone", 0, 5)],
        "beyond": [TopicPartition("orders", 1, 100_000)],
    }.items():
        commit(servers, group, *commits)
    admin.delete_topics(["gone"])["gone"].result()
    acls = [
        AclBinding(kind, "*", ResourcePatternType.LITERAL, "User:watcher", "*", operation, AclPermissionType.ALLOW)
        for kind, operation in (
            (ResourceType.TOPIC, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, AclOperation.READ),
            (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS),
            (ResourceType.GROUP, AclOperation.DESCRIBE),
        )
    ]
    acls += [
        AclBinding(
            ResourceType.BROKER,
            "kafka-cluster",
            ResourcePatternType.LITERAL,
            "User:watcher",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    ]
    acls += [
        AclBinding(
            kind, name, ResourcePatternType.LITERAL, "User:blind", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW
        )
        for kind, name in ((ResourceType.TOPIC, "orders"), (ResourceType.GROUP, "beyond"))
    ]
    for future in admin.create_acls(acls).values():
        future.result()


@pytest.fixture(scope="module")
def read(broker: SecuredBroker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Reads a source over clusters of the config: `watched`, `plainly`, `blind`, `wrong` (password) and `dead`."""
    clusters = [
        broker.cluster("watched", "watcher", "secret-watcher"),
        broker.cluster("blind", "blind", "secret-blind"),
        broker.cluster("plainly", "watcher", "secret-watcher", mechanism="PLAIN"),
        broker.cluster("wrong", "watcher", "hunter2"),
        {"name": "dead", "bootstrap_servers": "127.0.0.1:1"},
    ]
    file = tmp_path_factory.mktemp("config") / "streamwarden.yaml"
    file.write_text(yaml.safe_dump({"kafka": clusters}))

    def rows(source: type[ClusterSource], *clusters: str, hour: datetime | None = None, **options: str) -> list[Row]:
        start = hour or present_hour()
        span = {"from": _ms(start), "to": _ms(start + HOUR)}
        return read_clusters(spark, source, clusters, **span, slices=2, **options).collect()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONFIG_ENV, str(file))
        patch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
        yield rows


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def gaps(rows: list[Row]) -> dict[str, str]:
    return {row.resource: row.gap for row in rows if row.gap}


def test_topics(read: Read) -> None:
    read_rows = read(KafkaTopics, "watched")
    assert [(row.broker, row.host, row.rack) for row in read_rows if row.broker] == [(1, "127.0.0.1", "eu-central-1a")]
    rows = {row.topic: row for row in read_rows}
    orders = rows["orders"]
    assert [(p.partition, p.leader, p.replicas, p.isr) for p in orders.partitions] == [
        (i, 1, [1], [1]) for i in range(3)
    ]
    assert orders.configs["retention.ms"].asDict() == {"value": "-1", "source": "dynamic_topic_config"}
    assert orders.configs["cleanup.policy"].source == "default_config"
    assert "gone" not in rows
    assert "__consumer_offsets" in rows


@pytest.mark.rare
def test_a_registered_source_reads_in_a_notebook_as_in_an_app(read: Read, spark: SparkSession) -> None:
    register_sources(spark)
    hour = present_hour()
    options = {"clusters": '["watched"]', "from": str(_ms(hour)), "to": str(_ms(hour + HOUR))}
    ends = [row for row in spark.read.format("kafka_offsets").options(**options).load().collect() if row.kind == "log"]
    of_apps = [row for row in read(KafkaOffsets, "watched") if row.kind == "log"]
    key = attrgetter("topic", "partition", "log_end_offset")
    assert ends and sorted(map(key, ends)) == sorted(map(key, of_apps))
    everywhere = spark.read.format("kafka_topics").load().select("cluster").distinct().collect()
    assert {row.cluster for row in everywhere} == {"watched", "plainly", "blind", "wrong", "dead"}


def test_log_dirs(read: Read, broker: SecuredBroker) -> None:
    rows = read(KafkaLogDirs, "watched", "blind")
    [folder] = [row for row in rows if row.kind == "log_dir"]
    assert (folder.broker, folder.log_dir) == (1, str(broker.broker.log_folder))
    assert folder.total_bytes > folder.usable_bytes > 0
    assert [row.log_dir for row in read(KafkaLogDirs, "plainly") if row.kind == "log_dir"] == [folder.log_dir]
    sizes = {row.partition: row.size_bytes for row in rows if row.topic == "orders"}
    logs = {p: broker.broker.log_folder / f"orders-{p}" / "00000000000000000000.log" for p in range(3)}
    assert sizes == {p: log.stat().st_size for p, log in logs.items()}
    assert {(row.offset_lag, row.is_future) for row in rows if row.kind == "replica"} == {(0, False)}
    moves = {row.cluster: (row.adding_replicas, row.throttles) for row in rows if row.kind == "broker"}
    assert moves == {"watched": (0, "{}"), "blind": (None, None)}
    assert gaps(rows) == {
        "blind broker 1 log dirs": "failed: cluster 'blind' denied access; grant Describe on the cluster.",
        "blind reassignments": "failed: cluster 'blind' denied access; grant Describe on the cluster.",
        "blind broker 1 throttles": "failed: cluster 'blind' denied access; grant DescribeConfigs on the cluster.",
    }


def test_groups(read: Read, broker: SecuredBroker) -> None:
    member = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "alive", "client.id": "reader-1"})
    member.subscribe(["orders"])
    try:
        deadline = time.monotonic() + 20
        while not member.assignment() and time.monotonic() < deadline:
            member.poll(0.2)
        rows = {row.group_id: row for row in read(KafkaGroups, "watched")}
    finally:
        member.close()
    assert rows["alive"].state == "STABLE"
    [seen] = rows["alive"].members
    assert (seen.client_id, seen.host) == ("reader-1", "127.0.0.1")
    assert {topic: sorted(partitions) for topic, partitions in seen.assignment.items()} == {"orders": [0, 1, 2]}
    assert rows[BILLING].state == "EMPTY"
    assert rows["beyond"].members == []


STREAMS_APP = """
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.Consumed;
class App {
  public static void main(String[] servers) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", servers[0]);
    settings.put("application.id", "streaming");
    settings.put("group.protocol", "streams");
    settings.put("state.dir", "state");
    settings.put("commit.interval.ms", "200");
    settings.put("auto.offset.reset", "earliest");
    StreamsBuilder topology = new StreamsBuilder();
    topology.stream("orders", Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).foreach((key, value) -> {});
    new KafkaStreams(topology.build(), settings).start();
  }
}"""


@pytest.mark.rare
def test_a_group_of_kafka_streams_own_protocol(read: Read, broker: SecuredBroker, tmp_path: Path) -> None:
    """confluent-kafka does not list such groups."""
    (tmp_path / "App.java").write_text(STREAMS_APP)
    command = [java(), *JVM_OPTIONS, "-cp", classpath(STREAMS), "App.java", broker.bootstrap_servers]
    seen: list[Row] = []
    with Process("streams", command, tmp_path) as app:
        deadline = time.monotonic() + 60
        while max((row.committed_offset for row in seen), default=0) < 100 and time.monotonic() < deadline:
            app.check()
            seen = [r for r in read(KafkaOffsets, "watched") if r.group_id == "streaming" and r.topic == "orders"]
        groups = read(KafkaGroups, "watched")
    assert max(row.committed_offset for row in seen) == 100
    [group] = [row for row in groups if row.group_id == "streaming"]
    assert (group.protocol, group.state, group.members) == ("streams", "STABLE", None)
    assert not gaps(groups)
    history = [row for row in read(KafkaCommits, "watched") if row.group_id == "streaming"]
    assert {"commit", "group"} <= {row.kind for row in history}


def test_a_share_group_is_listed(read: Read, broker: SecuredBroker) -> None:
    """confluent-kafka does not list such groups."""
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "shared"})
    try:
        consumer.subscribe(["orders"])
        deadline, seen = time.monotonic() + 60, list[Row]()
        while (not seen or seen[0].state != "STABLE") and time.monotonic() < deadline:
            consumer.poll(0.5)
            seen = [row for row in read(KafkaGroups, "watched") if row.group_id == "shared"]
    finally:
        consumer.close()
    [group] = seen
    assert (group.protocol, group.state, group.members, group.gap) == ("share", "STABLE", None, None)
    assert not [row for row in read(KafkaOffsets, "watched") if row.group_id == "shared"], "it commits no offsets"


def test_offsets_of_the_present_hour(read: Read) -> None:
    rows = read(KafkaOffsets, "watched")
    committed = {(r.group_id, r.topic, r.partition): r.committed_offset for r in rows if r.kind == "committed"}
    assert committed[(BILLING, "orders", 0)] == 40
    assert committed[("beyond", "orders", 1)] == 100_000
    assert not [
        key for key in committed if key[:2] == ("beyond", "orders") and key[2] != 1
    ]  # commits on one partition only
    logs = {(r.topic, r.partition): r for r in rows if r.kind == "log"}
    orders = logs["orders", 0]
    assert (orders.log_start_offset, orders.log_end_offset, orders.last_stable_offset) == (0, 100, 100)
    assert orders.offset_at_from == orders.recent_offset == orders.offset_at_to == 100  # no records in this hour
    assert not gaps(rows)


@pytest.mark.rare
def test_records_that_arrive_meanwhile_are_not_an_open_transaction(read: Read, broker: SecuredBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("busy", 4, 1)])["busy"].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            for partition in range(4):
                producer.produce("busy", b"x", partition=partition)
            producer.flush()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            answers = [read(KafkaOffsets, "watched") for _ in range(3)]
        finally:
            over.set()
        writing.result()
    producer.flush()
    admin.delete_topics(["busy"])["busy"].result()
    rounds = [[row for row in rows if row.topic == "busy" and row.kind == "log"] for rows in answers]
    ends = [sum(row.log_end_offset for row in rows) for rows in rounds]
    assert 0 < ends[0] < ends[1] < ends[2]  # records arrived
    assert [row for rows in rounds for row in rows if row.last_stable_offset != row.log_end_offset] == []


def test_offsets_by_time_of_a_past_hour(read: Read) -> None:
    logs = {(r.topic, r.partition): r for r in read(KafkaOffsets, "watched", hour=BEFORE) if r.kind == "log"}
    # One record every 12 s over three partitions: one every 36 s in each, the last at 59 min 48 s.
    assert logs["orders", 0].offset_at_from == 0
    assert logs["orders", 0].recent_offset == 99  # 98 * 36 s = 58:48, 99 * 36 s = 59:24
    assert logs["orders", 0].offset_at_to == 100
    assert logs["orders", 0].as_of.replace(tzinfo=UTC) == BEFORE + HOUR


def test_offsets_known_from_the_previous_hour_are_not_requested(
    read: Read, warehouse: sa.Engine, warehouse_url: str
) -> None:
    begin = present_hour()
    soon = begin - timedelta(minutes=1)
    known = [
        # Same end offset as now: no records since, but a transaction that was open then may have ended.
        {"partition": 0, "end": 100, "last": 7, "stable": 40, "at": begin},
        # Records were appended: its offsets are read from the broker.
        {"partition": 1, "end": 50, "last": 9, "stable": 50, "at": begin},
        # Its stored end offset is higher: the topic was recreated.
        {"partition": 2, "end": 3000, "last": 1000, "stable": 3000, "at": begin},
    ]
    insert = sa.text("""
        insert into metrics.partition_hourly
          (hour, cluster, topic, partition, log_end_offset, log_end_offset_last, last_stable_offset, offsets_at)
        values (:hour, 'watched', 'orders', :partition, :end, :last, :stable, :at)
        on conflict (hour, cluster, topic, partition) do update set
          log_end_offset_last = excluded.log_end_offset_last, offsets_at = excluded.offsets_at""")
    with warehouse.begin() as connection:
        connection.execute(insert, [row | {"hour": begin - HOUR} for row in known])
    offsets = _orders(read(KafkaOffsets, "watched", warehouse=warehouse_url))
    asked = _orders(read(KafkaOffsets, "watched"))
    assert offsets == asked | {0: (0, 100, 100, 7, 100, 100), 1: (0, 100, 100, 9, 100, 100)}
    assert asked == dict.fromkeys(range(3), (0, 100, 100, 100, 100, 100))
    with warehouse.begin() as connection:  # read before that hour was over, when its end offset was not final
        connection.execute(insert, [known[1] | {"hour": begin - HOUR, "at": soon}])
    assert _orders(read(KafkaOffsets, "watched", warehouse=warehouse_url))[1] == asked[1]


def _orders(rows: list[Row]) -> dict[int, tuple[int, ...]]:
    """Partition of `orders` → log start, log end, last stable offset; ends at the hour's start, a minute ago, now."""
    of_log = attrgetter(
        "log_start_offset", "log_end_offset", "last_stable_offset", "offset_at_from", "recent_offset", "offset_at_to"
    )
    assert not gaps(rows)
    return {row.partition: of_log(row) for row in rows if row.kind == "log" and row.topic == "orders"}


def test_commits_of_this_hour_and_of_a_past_one(read: Read, broker: SecuredBroker) -> None:
    at = BEFORE + timedelta(minutes=10)
    # On a partition of its own: offsets are found by time, so newer records must not come first.
    taken = {log_partition(group, 8) for group in (BILLING, "beyond", "alive", "streaming", "shared")}
    group = next(name for name in map("long ago {}".format, range(100)) if log_partition(name, 8) not in taken)
    write_commits(broker.bootstrap_servers, [Commit(group, "orders", i, 7 + i, at) for i in range(3)])
    past = [row for row in read(KafkaCommits, "watched", hour=BEFORE) if row.kind == "commit"]
    assert {(row.group_id, row.topic, row.partition, row.committed_offset) for row in past} >= {
        (group, "orders", i, 7 + i) for i in range(3)
    }
    assert {row.committed_at.replace(tzinfo=UTC) for row in past if row.group_id == group} == {at}
    now = read(KafkaCommits, "watched")
    seen = {(row.group_id, row.topic, row.committed_offset) for row in now if row.kind == "commit"}
    assert seen >= {(BILLING, "orders", 40), (BILLING, "gone", 5), ("beyond", "orders", 100_000)}
    assert sum(row.records_read for row in now if row.kind == "read") >= 3


@pytest.mark.rare
def test_unreachable_and_wrong_credentials_are_one_gap_each_in_time_and_do_not_affect_others(read: Read) -> None:
    for source in (KafkaTopics, KafkaGroups, KafkaLogDirs, KafkaOffsets, KafkaCommits):
        started = time.monotonic()
        rows = read(source, "dead", "watched", "wrong")
        assert time.monotonic() - started < 20, source
        found = gaps(rows)
        assert set(found) == {"dead", "wrong"}, (source, found)
        assert found["dead"].startswith("failed: no broker of cluster 'dead' at 127.0.0.1:1 responded"), found
        assert "rejects the credentials" in found["wrong"], found
        assert "hunter2" not in found["wrong"]
        assert [row for row in rows if row.cluster == "watched" and not row.gap]


def test_missing_acls_are_gaps(read: Read) -> None:
    commits = read(KafkaCommits, "blind")
    assert "Read on __consumer_offsets" in gaps(commits)["blind"]
    topics = read(KafkaTopics, "blind")
    assert {row.rack for row in topics if row.broker} == {"eu-central-1a"}
    assert set(gaps(topics)) == {"blind configs"}
    assert [row.topic for row in topics if row.topic] == ["orders"]
    assert next(row for row in topics if row.topic == "orders").configs is None
    assert gaps(topics)["blind configs"].startswith("failed:")
    offsets = read(KafkaOffsets, "blind")
    assert {row.group_id for row in offsets if row.kind == "committed" and row.group_id} == {"beyond"}
    assert [row for row in offsets if row.kind == "log" and row.topic == "orders"]


def test_a_topic_deleted_between_listing_and_reading_does_not_affect_others(read: Read, broker: SecuredBroker) -> None:
    from confluent_kafka.admin import OffsetSpec

    from spark_apps.sources.kafka_client import Answer, list_offsets

    connection = Connection(cluster_named("watched"))
    led = [(topic, partition) for topic, partition, _ in led_partitions(connection.metadata())]
    answers = list_offsets(connection, dict.fromkeys([*led, ("gone", 0)], OffsetSpec.latest()))
    assert all(isinstance(answers[key], Answer) for key in led)
    assert isinstance(answers["gone", 0], BaseException)


_WANTED = "cluster string, topic string, partition int, offset bigint, stands boolean"


def test_record_times_are_found_by_offset(read: Read, spark: SparkSession) -> None:
    wanted = [("watched", "orders", 0, offset, False) for offset in (0, 1, 50, 99, 100)]
    frame = driver_rows(spark, [*wanted, ("watched", "gone", 0, 3, True)], _WANTED)
    found = {(row.topic, row.offset): row.record_at for row in record_times(frame).collect()}
    for offset in (0, 1, 50, 99):
        expected = BEFORE + timedelta(seconds=36 * offset)
        assert abs(found["orders", offset].replace(tzinfo=UTC) - expected) < timedelta(seconds=1), offset
    assert found["orders", 100] is None  # not written yet
    assert found["gone", 3] is None


def test_record_times_beyond_the_time_limit_are_intervals(
    read: Read, broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection(cluster_named("watched"))
    place = ("orders", 0, 50)
    exact = kafka_record_times._search(connection, [place])[place]
    monkeypatch.setattr(kafka_record_times, "BUDGET_SECONDS", 0)
    guessed = kafka_record_times._search(connection, [place])[place]
    true = (BEFORE + timedelta(seconds=36 * 50)).timestamp() * 1000
    assert exact.latest - exact.earliest <= 1000
    assert exact.at == pytest.approx(true, abs=1000)
    assert guessed.earliest <= true <= guessed.latest
    assert guessed.latest - guessed.earliest > 500_000


def test_no_clusters_are_no_rows(read: Read) -> None:
    assert read(KafkaOffsets) == []
    assert read(KafkaCommits) == []


@pytest.mark.rare
def test_a_group_whose_commit_crashes_the_client_does_not_affect_others(read: Read, broker: SecuredBroker) -> None:
    """Last test of the module: the coordinator can no longer load that commit."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    value = commit_value(4, 5, _ms(datetime.now(UTC)), None)
    producer.produce(
        "__consumer_offsets", value, commit_key("poison", "orders", 0), partition=log_partition("poison", 8)
    )
    assert producer.flush(10) == 0
    broker.broker.stop()
    broker.broker.start()
    healthy = [g for g in (BILLING, "beyond") if log_partition(g, 8) != log_partition("poison", 8)]
    deadline = time.monotonic() + 60
    rows: list[Any] = []
    while {row[0] for row in rows} != set(healthy) and time.monotonic() < deadline:
        rows, refused = committed_offsets("watched", [*healthy, "poison"], time.monotonic() + 2)
    assert {row[0] for row in rows} == set(healthy)
    assert list(refused) == ["poison"]
    assert [row.committed_offset for row in read(KafkaCommits, "watched") if row.group_id == "poison"] == [5]
