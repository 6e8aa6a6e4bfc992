"""A real reassignment between three brokers, with a leftover throttle, through source, app, and detectors."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from demo.broker import Cluster
from demo.jars import BROKER, classpath
from demo.process import JVM_OPTIONS
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from pyspark.sql import SparkSession
from streamwarden.base.config import CONFIG_ENV, load_config
from streamwarden.detectors import Finding, findings, load_detectors

from spark_apps.apps.consumer_groups.inventory import brokers, log_partitions, reassignments, topics
from spark_apps.runtime.class_archive import java
from spark_apps.sources.kafka_client import read_clusters
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.simulator.frames import rows_frame
from tests.sql.rows import HOUR, insert_rows

pytestmark = pytest.mark.slow
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
MIB = 2**20
IMPACT, LEFTOVER = "reassignment_impact", "replication_throttle_leftover"


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Cluster]:
    """Topic `moved`: 20 MiB in partition 0 on broker 1, and partition 1 on broker 2."""
    with Cluster(tmp_path_factory.mktemp("trio"), size=3) as cluster, pytest.MonkeyPatch.context() as patch:
        file = tmp_path_factory.mktemp("config") / "streamwarden.yaml"
        file.write_text(yaml.safe_dump({"kafka": [{"name": "trio", "bootstrap_servers": cluster.bootstrap_servers}]}))
        patch.setenv(CONFIG_ENV, str(file))
        patch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        placed = NewTopic("moved", num_partitions=2, replica_assignment=[[1], [2]])
        admin.create_topics([placed])["moved"].result(20)
        time.sleep(1)
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "batch.size": 20_000})
        for _ in range(2000):
            producer.produce("moved", b"x" * 10_000, partition=0)
        assert producer.flush(30) == 0
        yield cluster


@pytest.fixture
def finding_after(trio: Cluster, spark: SparkSession, module_warehouse: sa.Engine) -> Iterator[Callable[..., Finding]]:
    """Gathers now, as of so many hours before the evaluated one; returns a detector's finding of the evaluated one."""
    detectors = load_detectors()
    with module_warehouse.connect() as connection, connection.begin() as transaction:

        def gather(detector_id: str, *hours_before: int) -> Finding:
            sources = {}
            for source in (KafkaTopics, KafkaLogDirs):
                rows = [row.asDict(recursive=True) for row in read_clusters(spark, source, ["trio"]).collect()]
                assert not [row["gap"] for row in rows if row["gap"]]
                sources[source.name()] = rows_frame(spark, rows, source({}).schema())
            for unasked in (KafkaGroups, KafkaOffsets):
                sources[unasked.name()] = rows_frame(spark, [], unasked({}).schema())
            for table, frame in {
                "inventory.broker_hourly": brokers(sources),
                "inventory.topic_hourly": topics(sources, []),
                "inventory.reassignment_hourly": reassignments(sources),
                "metrics.partition_hourly": log_partitions(sources),
            }.items():
                rows = [row.asDict() for row in frame.collect()]
                for hour in (HOUR - timedelta(hours=n) for n in hours_before):
                    connection.execute(sa.text(f"delete from {table} where hour = :hour"), {"hour": hour})
                    insert_rows(connection, table, ({"hour": hour} | row for row in rows))
            detector = detectors[detector_id]
            [finding] = findings(connection, detector, HOUR, load_config(), detector.params_in_force(load_config()))
            return finding

        yield gather
        transaction.rollback()


def throttle(trio: Cluster, bytes_per_second: int) -> None:
    """Sets the configs of kafka-reassign-partitions.sh --throttle."""
    admin = AdminClient({"bootstrap.servers": trio.bootstrap_servers})
    wanted = {("TOPIC", "moved"): dict(zip(REPLICAS, ("0:1", "0:3"), strict=True))}
    wanted |= {("BROKER", str(b.node_id)): dict.fromkeys(RATES, str(bytes_per_second)) for b in trio.brokers}
    for (kind, name), settings in wanted.items():
        entries = [
            ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
            for setting, value in settings.items()
        ]
        resource = ConfigResource(ConfigResource.Type[kind], name, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(10)
    time.sleep(1)  # the brokers follow their metadata log


@pytest.mark.rare
def test_a_reassignment_and_its_leftover_throttle(trio: Cluster, finding_after: Callable[..., Finding]) -> None:
    throttle(trio, MIB // 4)
    client = KafkaAdminClient(bootstrap_servers=trio.bootstrap_servers.split(","))
    with client:
        client.alter_partition_reassignments({TopicPartition("moved", 0): [3]})
        time.sleep(2)
        earlier = finding_after(IMPACT, 0, 2).metrics["left_bytes"]
        moving, deadline = finding_after(IMPACT, 0), time.monotonic() + 30
        while moving.metrics["left_bytes"] >= earlier and time.monotonic() < deadline:
            time.sleep(1)
            moving = finding_after(IMPACT, 0)
        assert moving.reason == "flush_latency_unknown"  # no JVM was read
        assert moving.metrics["unresponsive_brokers"] == 2
        assert moving.metrics["throttle_bytes_per_second"] == MIB // 4
        assert 0 < moving.metrics["left_bytes"] < earlier < 20 * MIB

        throttle(trio, 100 * MIB)
        deadline = time.monotonic() + 30
        while client.list_partition_reassignments() and time.monotonic() < deadline:
            time.sleep(0.5)
    left = finding_after(LEFTOVER, 0, 1, 2)
    assert (left.reason, left.metrics["throttle_bytes_per_second"]) == ("slows_replication", 100 * MIB)

    for command in left.commands:
        tool, *arguments = shlex.split(command)
        assert tool == "kafka-configs.sh"
        run = [java(), *JVM_OPTIONS, "-cp", classpath(BROKER), "kafka.admin.ConfigCommand", *arguments]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60)
        assert "Completed updating config" in done.stdout, done.stdout + done.stderr
    time.sleep(1)
    assert finding_after(LEFTOVER, 0, 1, 2).reason == "no_throttle"
