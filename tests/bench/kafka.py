"""Kafka on a real broker: a snapshot of an ordinary hour's offsets, and the decoding of an hour of commits.

A fifth of the partitions received records since the previous hour, which is in the warehouse. For comparison, the bare
client reads in the same run, without Spark, what a lag needs: groups, commits, and log-end offsets; and a bare consumer
decodes the commits record by record. The first read of a session is reported as cold. 30,000 partitions are on two
brokers, because each partition takes two of the 65,530 memory maps of a process; creating them takes 1 to 2 minutes.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import sqlalchemy as sa
import yaml
from confluent_kafka import OFFSET_END, Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from demo.broker import Broker, Cluster
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import HOUR
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import engine, ensure_day
from streamwarden.store.migrate import migrate

from spark_apps.runtime.session import start_session
from spark_apps.sources.kafka_client import (
    PARTITIONS_PER_REQUEST,
    ClusterSource,
    Connection,
    OffsetReaders,
    cluster_named,
    led_partitions,
    read_clusters,
)
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_offsets import KafkaOffsets
from tests.bench.metric import Metric
from tests.conftest import a_database
from tests.spark_apps.offsets_log import TOPIC, commit, commit_key, commit_value, log_partition

GROUPS = [f"bench-group-{i}" for i in range(50)]
PARTITIONS_PER_TOPIC = 100
COMMITTED_SHARE = 0.1
"""Of the cluster's partitions that each group has committed on: 1,000 of 10,000."""
COMMITS = 1_000_000
COMMITS_PER_SECOND = 150_000
COMMITS_CPU_RATIO = 1.3
"""At most, to the bare consumer and decoder."""
SNAPSHOT_SECONDS = {10_000: 0.45}
SNAPSHOT_CPU_SECONDS = {10_000: 0.40}
"""At most, and as many CPU seconds; by partitions."""
TIMES = 5
WARM_SECONDS = 15
"""Before it counts: by then an hour's other sources have had the JVM's code compiled."""
LONGEST_WAIT_SECONDS = 600
"""Until the brokers have made 30,000 logs, and the offsets topic's after them."""
LOG_PARTITIONS = 50
SETTINGS = {"offsets.topic.num.partitions": str(LOG_PARTITIONS)}
_VALUE = struct.Struct(">qiBq")
"""Of a commit of layout 4: offset, leader's epoch, length of the metadata (none), time."""


def measure() -> list[Metric]:
    """Snapshots of a growing cluster, then the hour of commits."""
    metrics: list[Metric] = []
    with _fleet(brokers=1) as fleet:
        metrics += _snapshot(fleet, 10_000)
        metrics += _hour_of_commits(fleet)
        metrics.append(Metric("memory of Spark and its tasks after it all", fleet.memory_gib(), "GiB"))
    with _fleet(brokers=2) as fleet:
        for partitions in (1_000, 30_000):
            metrics += _snapshot(fleet, partitions)
    return metrics


@dataclass
class _Fleet:
    """A broker or several, and a Spark session whose config knows them as `bench`."""

    servers: str
    spark: SparkSession
    brokers: set[int]
    is_cold: bool
    partitions: int = 0

    def cost(self, work: Callable[[], object]) -> tuple[float, float]:
        """Seconds and CPU seconds of this process, the driver's JVM and the tasks, without the brokers'."""
        started, cpu = time.monotonic(), self._cpu_seconds()
        work()
        return time.monotonic() - started, self._cpu_seconds() - cpu

    def memory_gib(self) -> float:
        """Proportional set size of the same processes."""
        return float(sum(process.memory_full_info().pss for process in self._family()) / 2**30)

    def _family(self) -> Iterator[psutil.Process]:
        mine = psutil.Process()
        yield mine
        yield from (child for child in mine.children(recursive=True) if child.pid not in self.brokers)

    def _cpu_seconds(self) -> float:
        # With what their ended children took: the sources fork some.
        return sum(sum(process.cpu_times()[:4]) for process in self._family())


@contextmanager
def _fleet(brokers: int) -> Iterator[_Fleet]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(dir=PROJECT_ROOT / "var")))
        if brokers == 1:
            broker = stack.enter_context(Broker(folder, heap="1g", settings=SETTINGS))
            servers, pids = broker.bootstrap_servers, {broker.pid}
        else:
            cluster = stack.enter_context(Cluster(folder, size=brokers, heap="1g", settings=SETTINGS))
            servers, pids = cluster.bootstrap_servers, {broker.pid for broker in cluster.brokers}
        config = folder / "streamwarden.yaml"
        config.write_text(yaml.safe_dump({"kafka": [{"name": "bench", "bootstrap_servers": servers}]}))
        os.environ[CONFIG_ENV] = str(config)
        spark = start_session("bench", master="local[2]")
        spark.sparkContext.environment[CONFIG_ENV] = str(config)  # the JVM, with its environment, outlives a session
        stack.callback(spark.stop)
        yield _Fleet(servers, spark, pids, is_cold=brokers == 1)  # the first; the next one's JVM is warm


def _snapshot(fleet: _Fleet, partitions: int) -> list[Metric]:
    _grow(fleet, partitions)
    begin = datetime.now(UTC).replace(microsecond=0) - HOUR
    with a_database() as url:
        migrate(engine(url))
        _remember_hour_before(fleet, url, begin)
        span = {"from": _ms(begin), "to": _ms(begin + 2 * HOUR), "warehouse": url}

        def ours() -> None:
            with _read(fleet, KafkaOffsets, **span):
                pass

        cold = fleet.cost(ours)
        expected = partitions + len(GROUPS) * round(COMMITTED_SHARE * partitions)
        with _read(fleet, KafkaOffsets, **span) as frame:
            rows = frame.filter("gap is null").count(), _bare_lag(fleet.servers)
            arrived = frame.filter(f"offset_at_to > offset_at_from and topic <> '{TOPIC}'").count()
        if min(rows) < expected or arrived != partitions // 5:
            raise AssertionError(f"{rows} rows by us and the bare client, {arrived} logs with records of {expected}")
        warm_at = time.monotonic() + WARM_SECONDS
        while time.monotonic() < warm_at:
            ours()
        costs = [(*fleet.cost(lambda: _bare_lag(fleet.servers)), *fleet.cost(ours)) for _ in range(TIMES)]
    bare_s, bare_cpu, our_s, our_cpu = map(median, zip(*costs, strict=True))
    what, limit = f"{partitions:,} partitions, {expected - partitions:,} commits", SNAPSHOT_SECONDS.get(partitions)
    return [
        Metric(f"{what}: bare client, ends only", bare_s, "s"),
        Metric(f"{what}: bare client, ends only, CPU", bare_cpu, "s"),
        Metric(f"{what}: our source, {'cold' if fleet.is_cold else 'for the first time'}", cold[0], "s"),
        Metric("  CPU", cold[1], "s"),
        Metric(f"{what}: our source, warm", our_s, "s", limit),
        Metric(f"{what}: our source, warm, CPU", our_cpu, "s", SNAPSHOT_CPU_SECONDS.get(partitions)),
    ]


def _remember_hour_before(fleet: _Fleet, url: str, begin: datetime) -> None:
    """What the hour before has left in the warehouse; then a fifth of the logs get a record."""
    places = [(f"bench-{i}", p) for i in range(fleet.partitions // PARTITIONS_PER_TOPIC) for p in range(100)]
    with OffsetReaders(Connection(cluster_named("bench"))) as readers:
        ends = readers.ask({"end": (OFFSET_END, False, places)})
    if ends is None:
        raise AssertionError("not all partitions have an end offset")
    warehouse = engine(url)
    ensure_day(warehouse, (begin - HOUR).date())
    insert = sa.text("""
        insert into metrics.partition_hourly
          (hour, cluster, topic, partition, log_end_offset, log_end_offset_last, last_stable_offset, offsets_at)
        values (:hour, 'bench', :topic, :partition, :end, :end, :end, :begin)""")
    with warehouse.begin() as connection:
        known = [{"topic": t, "partition": p, "end": end} for (t, p), end in ends["end"].items()]
        connection.execute(insert, [row | {"hour": begin - HOUR, "begin": begin} for row in known])
        connection.exec_driver_sql("analyze metrics.partition_hourly")
    producer = Producer({"bootstrap.servers": fleet.servers})
    for topic, partition in places[::5]:
        producer.produce(topic, b"x", partition=partition)
    if producer.flush(LONGEST_WAIT_SECONDS):
        raise AssertionError("not all records were written")


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


@contextmanager
def _read(fleet: _Fleet, source: type[ClusterSource], **options: int | str) -> Iterator[DataFrame]:
    """Reads a source into Spark's memory, as the apps do."""
    frame = read_clusters(fleet.spark, source, ["bench"], **options).persist()
    try:
        frame.write.format("noop").mode("overwrite").save()
        yield frame
    finally:
        frame.unpersist(blocking=True)


def _grow(fleet: _Fleet, partitions: int) -> None:
    """More topics, one at a time of a size that the broker takes in; then every group commits."""
    admin = AdminClient({"bootstrap.servers": fleet.servers})
    count = partitions // PARTITIONS_PER_TOPIC
    for i in range(fleet.partitions // PARTITIONS_PER_TOPIC, count):
        admin.create_topics([NewTopic(f"bench-{i}", PARTITIONS_PER_TOPIC, 1)])[f"bench-{i}"].result(60)
    fleet.partitions = partitions
    _wait_for_leaders(fleet.servers, partitions)
    places = [TopicPartition(f"bench-{i % count}", i // count) for i in range(round(COMMITTED_SHARE * partitions))]
    for number, group in enumerate(GROUPS):
        offsets = [TopicPartition(p.topic, p.partition, number) for p in places]
        commit(fleet.servers, group, *offsets, seconds=LONGEST_WAIT_SECONDS)


def _wait_for_leaders(servers: str, partitions: int) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while time.monotonic() < deadline:
        # A client that asked while topics were being created keeps its opinion: a fresh one each time.
        led = led_partitions(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=10))
        if sum(leader >= 0 for topic, _, leader in led if topic != TOPIC) == partitions:
            return
        time.sleep(0.5)
    raise AssertionError(f"{partitions} partitions didn't get their leaders within {LONGEST_WAIT_SECONDS} s")


def _bare_lag(servers: str) -> int:
    """Metadata, groups, their commits, the end of every partition; returns rows."""
    admin = AdminClient({"bootstrap.servers": servers})
    metadata = admin.list_topics(timeout=10)
    keys = sorted((topic, p) for topic, described in metadata.topics.items() for p in described.partitions)
    groups = [group.group_id for group in admin.list_consumer_groups(request_timeout=10).result().valid]
    committed = {
        g: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(g)], request_timeout=10)[g] for g in groups
    }
    commits = [
        (group, place.topic, place.partition, place.offset)
        for group, future in committed.items()
        for place in future.result().topic_partitions
    ]
    futures: dict[TopicPartition, Any] = {}
    for i in range(0, len(keys), PARTITIONS_PER_REQUEST):
        asked = {TopicPartition(*key): OffsetSpec.latest() for key in keys[i : i + PARTITIONS_PER_REQUEST]}
        futures |= admin.list_offsets(asked, request_timeout=10)
    ends = {(place.topic, place.partition): future.result().offset for place, future in futures.items()}
    return len(commits) + len(ends)


def _hour_of_commits(fleet: _Fleet) -> list[Metric]:
    started_ms = int(time.time() * 1000)
    _write_commits(fleet.servers)
    span = {"from": started_ms, "to": started_ms + 3_600_000}

    def read() -> None:
        with _read(fleet, KafkaCommits, slices=2, **span):
            pass

    first_s, first_cpu = fleet.cost(read)
    with _read(fleet, KafkaCommits, slices=2, **span) as frame:
        rows = frame.filter("gap is null").count(), _bare_commits(fleet.servers, started_ms)
    if min(rows) < COMMITS:
        raise AssertionError(f"{rows} of {COMMITS} commits were read by us and the bare consumer")
    costs = [(*fleet.cost(lambda: _bare_commits(fleet.servers, started_ms)), *fleet.cost(read)) for _ in range(TIMES)]
    bare_s, bare_cpu, seconds, cpu = map(median, zip(*costs, strict=True))
    what = "an hour of 1 M commits"
    return [
        Metric(f"{what}: bare consumer and decoder", bare_s, "s"),
        Metric(f"{what}: bare consumer and decoder, CPU", bare_cpu, "s"),
        Metric(f"{what}: our source, for the first time", first_s, "s"),
        Metric("  CPU", first_cpu, "s"),
        Metric(f"{what}: our source, warm", seconds, "s", COMMITS / COMMITS_PER_SECOND),
        Metric(f"{what}: our source, warm, CPU", cpu, "s"),
        Metric("CPU of the source against that of the bare consumer", cpu / bare_cpu, "times", COMMITS_CPU_RATIO),
        Metric("commits per second", COMMITS / seconds, "commits/s"),
    ]


def _bare_commits(servers: str, from_ms: int) -> int:
    """Every commit since, with what a lag takes of it: a plain consumer, and `struct`; returns how many."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        starts = consumer.offsets_for_times([TopicPartition(TOPIC, p, from_ms) for p in range(LOG_PARTITIONS)])
        consumer.assign(starts)
        commits, ended = [], set[int]()
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while len(ended) < LOG_PARTITIONS:
            if time.monotonic() > deadline:
                raise AssertionError("the offsets topic wasn't read to its end")
            for message in consumer.consume(20_000, 0.1):
                if message.error():
                    ended.add(message.partition())
                elif (key := message.key() or b"")[:2] == b"\0\1" and (value := message.value()):
                    commits.append((*_decoded_key(key), *_decoded_value(value)))
    finally:
        consumer.close()
    return len(commits)


def _decoded_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic, partition."""
    split = 4 + int.from_bytes(key[2:4], "big")
    return key[4:split].decode(), key[split + 2 : -4].decode(), int.from_bytes(key[-4:], "big")


def _decoded_value(value: bytes) -> tuple[int, int]:
    """Offset, and when it was committed, of layout 4, whose plain metadata is empty here."""
    offset, _, _, at_ms = _VALUE.unpack_from(value, 2)
    return offset, at_ms


def _write_commits(servers: str) -> None:
    """Records as the groups' coordinators write them, by a producer that the broker takes for an administrator."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "client.id": "__admin_client",
            "queue.buffering.max.messages": COMMITS,
            "linger.ms": 50,
        }
    )
    console, places = Console(), COMMITS // len(GROUPS) // 20
    console.print(f"  writing {COMMITS:,} commits …")
    keys = [
        (commit_key(group, f"bench-{i % 100}", i // 100), log_partition(group, LOG_PARTITIONS))
        for i in range(places)
        for group in GROUPS
    ]
    for turn in range(COMMITS // len(keys)):
        value = commit_value(4, 1000 * turn, int(time.time() * 1000))
        for key, partition in keys:
            producer.produce(TOPIC, value, key, partition=partition)
        producer.poll(0)
    if producer.flush(60):
        raise AssertionError("not all commits were written")
