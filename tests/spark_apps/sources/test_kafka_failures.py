"""The Kafka sources on three brokers of which one dies: partitions with a leader are complete, others are gaps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
import sqlalchemy as sa
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker, Cluster
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.causes import weigh
from streamwarden.detectors import Finding, findings, load_detectors
from streamwarden.detectors.results import store_findings

from spark_apps.apps.consumer_groups.inventory import brokers, log_partitions, topics
from spark_apps.sources import kafka_commits
from spark_apps.sources.kafka_client import ClusterSource, read_clusters
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.simulator.frames import rows_frame
from tests.spark_apps.offsets_log import (
    TOPIC,
    Commit,
    commit,
    commit_key,
    commit_value,
    group_key,
    log_partition,
    write_commits,
)
from tests.sql.rows import HOUR, insert_rows

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(600)]
GROUP = "gr\"oup 'ü' 組"
STARTED = datetime.now(UTC)
COMMITS = 60_000
LOG_PARTITIONS = 8
SPOILT = log_partition("h", LOG_PARTITIONS)
"""Gets records of unknown versions, written manually: a coordinator that loads them knows none of its groups."""
COMMITTED = {GROUP: {("wide", 0): 4, ("wide", 2): 99, ("narrow", 1): 1}} | {
    next(n for n in map("idle {}".format, range(1000)) if log_partition(n, LOG_PARTITIONS) == p): {("wide", 5): 7}
    for p in range(LOG_PARTITIONS)
    if p != SPOILT
}
"""Groups by name: one per coordinator, and GROUP."""


@dataclass(frozen=True)
class Fleet:
    """Three brokers, and methods that read them."""

    cluster: Cluster
    spark: SparkSession
    whole: list[Row]
    """Topics and brokers that the cluster returned while all brokers were up."""
    dead: list[Broker] = field(default_factory=list)

    def kill(self, victim: Broker) -> None:
        victim.kill()
        self.dead.append(victim)

    def read(self, source: type[ClusterSource]) -> list[Row]:
        return read_clusters(self.spark, source, ["trio"], **self.span).collect()

    @property
    def span(self) -> dict[str, int]:
        edges = {"from": STARTED - timedelta(minutes=1), "to": STARTED + timedelta(hours=1)}
        return {name: int(edge.timestamp() * 1000) for name, edge in edges.items()}

    def read_leaders(self) -> dict[tuple[str, int], int | None]:
        return {(row.topic, p.partition): p.leader for row in self.read(KafkaTopics) for p in row.partitions or []}

    def leader(self, topic: str, partition: int) -> Broker:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        leader = admin.list_topics(topic, timeout=10).topics[topic].partitions[partition].leader
        return next(broker for broker in self.cluster.brokers if broker.node_id == leader)


@pytest.fixture(scope="module")
def fleet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Topics `wide` (replicas on all brokers) and `narrow` (one replica), and a group that knows some partitions."""
    with Cluster(tmp_path_factory.mktemp("trio"), size=3) as cluster, pytest.MonkeyPatch.context() as patch:
        file = tmp_path_factory.mktemp("config") / "streamwarden.yaml"
        file.write_text(yaml.safe_dump({"kafka": [{"name": "trio", "bootstrap_servers": cluster.bootstrap_servers}]}))
        patch.setenv(CONFIG_ENV, str(file))
        patch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
        _fill(cluster.bootstrap_servers)
        yield Fleet(cluster, spark, read_clusters(spark, KafkaTopics, ["trio"]).collect())


def _fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic("wide", 6, 3), NewTopic("narrow", 6, 1)]).values():
        future.result(20)
    time.sleep(1)
    producer = Producer({"bootstrap.servers": servers})
    for i in range(60):
        producer.produce("wide", b"x", partition=i % 6)
        producer.produce("narrow", b"x", partition=i % 6)
    assert producer.flush(20) == 0
    for group, offsets in COMMITTED.items():
        commit(servers, group, *(TopicPartition(*place, at) for place, at in offsets.items()))


def committed(rows: list[Row]) -> dict[str, dict[tuple[str, int], int] | str]:
    """Committed offsets by group and partition, of the groups of the fixture; or their gap."""
    found: dict[str, dict[tuple[str, int], int] | str] = {}
    for row in rows:
        if row.kind == "committed" and row.gap:
            found[row.group_id or row.resource] = row.gap
        elif row.kind == "committed" and row.group_id in COMMITTED:
            found.setdefault(row.group_id, {})[row.topic, row.partition] = row.committed_offset
    return found


def test_records_of_unknown_versions_are_counted_and_skipped(fleet: Fleet) -> None:
    producer = Producer({"bootstrap.servers": fleet.cluster.bootstrap_servers, "client.id": "__admin_client"})
    at_ms = int(time.time() * 1000)
    strange = [
        (group_key("h", 99), b"\0\0"),
        (commit_key("h", "wide", 0), b"\x00\x09" + commit_value(3, 1, at_ms)[2:]),
        (commit_key("h", "wide", 0)[:-2], commit_value(4, 1, at_ms)),
    ]
    for key, value in strange:
        producer.produce(TOPIC, value, key, partition=log_partition("h", LOG_PARTITIONS))
    producer.produce(
        TOPIC, commit_value(4, 7, at_ms), commit_key("h", "wide", 1), partition=log_partition("h", LOG_PARTITIONS)
    )
    assert producer.flush(20) == 0
    rows = fleet.read(KafkaCommits)
    assert not [row.gap for row in rows if row.gap]
    assert sum(row.records_skipped for row in rows if row.kind == "read") == len(strange)
    assert [(r.partition, r.committed_offset) for r in rows if r.kind == "commit" and r.group_id == "h"] == [(1, 7)]
    assert {(r.topic, r.partition, r.committed_offset) for r in rows if r.group_id == GROUP and r.kind == "commit"} == {
        ("wide", 0, 4),
        ("wide", 2, 99),
        ("narrow", 1, 1),
    }


def test_a_leader_that_dies_during_the_read_neither_loses_nor_repeats_a_commit(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, small in {"queued.min.messages": 1000, "fetch.message.max.bytes": 2**20}.items():
        monkeypatch.setitem(kafka_commits._READ_FAST, setting, small)  # not prefetched completely
    names = map("reader of much {}".format, range(20))
    group, where = next((n, p) for n in names if (p := log_partition(n, LOG_PARTITIONS)) != SPOILT)
    write_commits(
        fleet.cluster.bootstrap_servers,
        [Commit(group, "wide", i % 6, i, datetime.now(UTC), metadata="m" * 400) for i in range(COMMITS)],
    )
    source = KafkaCommits({"clusters": '["trio"]', **{name: str(ms) for name, ms in fleet.span.items()}})
    schema = StructType.fromDDL(source.schema())
    assert isinstance(schema, StructType)
    reader = source.reader(schema)
    offsets: list[int] = []
    gaps: list[str] = []
    victim: Broker | None = fleet.leader(TOPIC, where)
    pool, others = ThreadPoolExecutor(1), None
    for batch in reader.read(reader.partitions()[0]):
        assert isinstance(batch, pa.RecordBatch)
        rows = batch.to_pylist()
        offsets += [row["committed_offset"] for row in rows if row["group_id"] == group]
        gaps += [row["gap"] for row in rows if row["gap"]]
        if offsets and victim is not None:
            assert len(offsets) < COMMITS
            fleet.kill(victim)
            victim = None
            others = pool.submit(fleet.read, KafkaOffsets)
    assert gaps == []
    assert offsets == list(range(COMMITS))
    assert others is not None
    assert committed(others.result()) == COMMITTED  # its groups have a new coordinator before the time-out


def test_with_a_dead_broker_partitions_with_a_leader_are_complete_and_others_are_gaps(fleet: Fleet) -> None:
    started = time.monotonic()
    offsets = fleet.read(KafkaOffsets)
    assert time.monotonic() - started < 40
    listing = fleet.read(KafkaTopics)
    topics = {row.topic: row for row in listing if row.topic}
    lost = {p.partition for p in topics["narrow"].partitions if p.leader is None}
    assert len(lost) == 2
    assert all(p.leader is not None and len(p.isr) == 2 for p in topics["wide"].partitions)
    logs = {(row.topic, row.partition): row.log_end_offset for row in offsets if row.kind == "log" and not row.gap}
    wide = {("wide", p): 10 for p in range(6)}
    narrow = {("narrow", p): 10 for p in range(6) if p not in lost}
    assert {key: end for key, end in logs.items() if key[0] != TOPIC} == wide | narrow
    assert committed(offsets) == COMMITTED
    gaps = {row.resource: row.gap for row in offsets if row.gap and row.kind == "log"}
    assert gaps == {f"trio topic narrow-{p}": "failed: the partition has no leader." for p in lost}
    commits = fleet.read(KafkaCommits)
    assert not [row.gap for row in commits if row.gap]
    assert sum(row.kind == "commit" for row in commits) >= COMMITS + 4
    (down,) = {b.node_id for b in fleet.cluster.brokers} - {b for p in topics["wide"].partitions for b in p.isr}
    hosts = {row.broker: row.host for row in listing if row.broker}
    assert hosts == {b.node_id: None if b.node_id == down else "127.0.0.1" for b in fleet.cluster.brokers}
    log_dirs = fleet.read(KafkaLogDirs)
    assert {row.resource: row.gap for row in log_dirs if row.gap} == {
        f"trio broker {down} log dirs": f"failed: broker {down} of cluster 'trio' is down."
    }
    sized = {(row.broker, row.topic, row.partition) for row in log_dirs if row.topic in ("wide", "narrow")}
    replicas = {(b, t.topic, p.partition) for t in topics.values() for p in t.partitions for b in p.replicas}
    assert sized == {key for key in replicas if key[0] != down and key[1] in ("wide", "narrow")}


def test_a_dead_broker_is_reported_with_its_offline_and_under_replicated_partitions(
    fleet: Fleet, module_warehouse: sa.Engine
) -> None:
    if not fleet.dead:  # this test by itself
        fleet.kill(fleet.leader("narrow", 0))
        time.sleep(15)
    none = {
        source.name(): rows_frame(fleet.spark, [], source({}).schema())
        for source in (KafkaOffsets, KafkaGroups, KafkaLogDirs)
    }
    found: dict[str, Finding] = {}
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        for hour, listed in ((HOUR - timedelta(hours=1), fleet.whole), (HOUR, fleet.read(KafkaTopics))):
            rows = [row.asDict(recursive=True) for row in listed]
            sources = none | {"kafka_topics": rows_frame(fleet.spark, rows, KafkaTopics({}).schema())}
            for table, frame in (
                ("inventory.broker_hourly", brokers(sources)),
                ("inventory.topic_hourly", topics(sources, [])),
                ("metrics.partition_hourly", log_partitions(sources)),
            ):
                insert_rows(connection, table, ({"hour": hour} | row.asDict() for row in frame.collect()))
        detectors = load_detectors()
        for name in ("broker_down", "partitions_leaderless", "partitions_under_replicated"):
            detector = detectors[name]
            of_detector = findings(connection, detector, HOUR, Config(), detector.params_in_force(Config()))
            found |= {f"{name} {finding.resource.key}": finding for finding in of_detector}
            store_findings(connection, of_detector, HOUR, HOUR)
        causes = {(c.effect, c.cause) for c in weigh(connection, detectors, HOUR) if c.is_accepted}
        transaction.rollback()
    (dead,) = (broker.node_id for broker in fleet.dead)
    down = found.pop(f"broker_down broker:trio/{dead}")
    assert {f.reason for name, f in found.items() if name.startswith("broker_down")} == {"listed"}
    assert (down.reason, down.metrics["leaderless_partitions"], len(down.affected)) == ("down", 2, 2)
    lost = found["partitions_leaderless cluster:trio"]
    under_replicated = found[f"partitions_under_replicated broker:trio/{dead}"]
    assert (lost.reason, under_replicated.reason) == ("leaderless", "missing")
    assert causes == {(effect.fingerprint, down.fingerprint) for effect in (lost, under_replicated)}


def test_partitions_of_a_dead_leader_are_gaps_within_the_time_limit(fleet: Fleet) -> None:
    """With one of three controllers left there is no quorum and no election: dead brokers stay leaders."""
    if not fleet.dead:  # this test by itself
        fleet.kill(fleet.leader("wide", 0))
        while not {fleet.read_leaders().get(("wide", p)) for p in range(6)}.isdisjoint({fleet.dead[0].node_id, None}):
            time.sleep(0.5)
    victim = next(b for b in fleet.cluster.brokers if b.node_id == fleet.read_leaders()["wide", 0])
    leaders = {key: leader for key, leader in fleet.read_leaders().items() if leader is not None and key[0] != TOPIC}
    fleet.kill(victim)
    started = time.monotonic()
    dirs = fleet.read(KafkaLogDirs)
    assert time.monotonic() - started < 30
    missing = {
        row.resource for row in dirs if row.gap and row.resource != "trio reassignments"
    }  # the controllers' quorum
    answered = {row.broker for row in dirs if row.kind == "log_dir"}
    silent = {broker.node_id for broker in fleet.cluster.brokers} - answered
    assert silent >= {broker.node_id for broker in fleet.dead}  # the last, without a quorum, may refuse as well
    assert "trio log dirs" in missing or missing == {f"trio broker {broker} log dirs" for broker in silent}
    started = time.monotonic()
    everything = fleet.read(KafkaOffsets)
    rows = [row for row in everything if row.kind == "log" and row.topic and row.topic != TOPIC]
    assert time.monotonic() - started < 60
    whole = {(row.topic, row.partition): row.log_end_offset for row in rows if not row.gap}
    assert whole == {key: 10 for key, leader in leaders.items() if leader != victim.node_id}
    lost = {(row.topic, row.partition): row.gap for row in rows if row.gap}
    assert set(lost) >= {key for key, leader in leaders.items() if leader == victim.node_id}
    known = committed(everything)
    assert "trio groups" in known  # only the dead coordinators know the names of their groups
    answered = {group: offsets for group, offsets in known.items() if isinstance(offsets, dict)}
    assert answered
    assert answered == {group: COMMITTED[group] for group in answered}
    assert lost["wide", 0] == "failed: cluster 'trio': Broker: Leader not available."
