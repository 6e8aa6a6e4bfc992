"""Partitions without a leader in the first response, leaders without our listener, and an unclean leader election."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow as pa
import pytest
import yaml
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    BrokerMetadata,
    ClusterMetadata,
    NewTopic,
    PartitionMetadata,
    TopicMetadata,
)
from demo.broker import Broker, create_topics, wait_until_answering
from demo.process import free_port
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from streamwarden.base.config import CONFIG_ENV, load_config

from spark_apps.sources import kafka_topics
from spark_apps.sources.jmx import read_jmx
from spark_apps.sources.kafka_client import ClusterSource, Connection
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.clock import present_hour

NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


def metadata(brokers: set[int], **leaders: list[int] | KafkaError) -> ClusterMetadata:
    """Metadata with these leaders of the partitions of each topic, or with the error of the topic."""
    response = ClusterMetadata()
    for broker in brokers:
        one: Any = BrokerMetadata()
        one.id, one.host = broker, f"b{broker}"
        response.brokers[broker] = one
    for name, of_topic in leaders.items():
        topic = response.topics[name] = TopicMetadata()
        topic.topic, topic.error = name, of_topic if isinstance(of_topic, KafkaError) else None
        for n, leader in enumerate(of_topic if isinstance(of_topic, list) else ()):
            partition = topic.partitions[n] = PartitionMetadata()
            partition.id, partition.leader, partition.replicas = n, leader, [1, 2] if name != "moved" else [3]
    return response


class SecondMetadata:
    """A connection that returns the second metadata response and records the requested topics."""

    def __init__(self, second: ClusterMetadata) -> None:
        self.second, self.asked = second, list[str]()

    def metadata(self, topic: str = "") -> ClusterMetadata:
        self.asked.append(topic)
        return self.second


def settled(first: ClusterMetadata, second: SecondMetadata) -> tuple[dict[str, list[int]], dict[int, str | None]]:
    connection = cast(Connection, second)
    topics, hosts = kafka_topics._settled(connection, first, kafka_topics._topics(first), 0.0)
    return {name: [p.leader for p in partitions] for name, partitions in topics.items()}, hosts


def test_missing_leaders_come_from_the_second_response_and_removed_topics_are_dropped() -> None:
    first = metadata({1, 2}, led=[1, 2], elected=[-1, 1], lost=[2, -1], removed=[-1], refused=[-1], moved=[-1])
    second = metadata({1, 2}, led=[-1, -1], elected=[2, 2], lost=[1, -1], refused=NO_TOPIC, made=[-1])
    connection = SecondMetadata(second)
    topics, hosts = settled(first, connection)
    assert topics == {"led": [1, 2], "elected": [2, 1], "lost": [2, -1]}
    assert connection.asked == [""]
    assert hosts == {1: "b1", 2: "b2"}  # broker 3 had replicas of the removed topic only


def test_only_topics_with_missing_leaders_are_requested_again() -> None:
    complete = SecondMetadata(metadata(set()))
    assert settled(metadata({1, 2}, led=[1]), complete) == ({"led": [1]}, {1: "b1", 2: "b2"})
    assert complete.asked == []
    incomplete = SecondMetadata(metadata({2}, led=[-1]))
    assert settled(metadata({1}, led=[1], moved=[1]), incomplete) == (
        {"led": [1], "moved": [1]},
        {1: "b1", 2: "b2", 3: None},
    )
    assert incomplete.asked == ["led"]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    """The first broker is the controller and the only one with the listener EXTRA. Topic `lossy` has two replicas."""
    folder = tmp_path_factory.mktemp("three")
    port, extra, controller = free_port(), free_port(), free_port()
    soon = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},EXTRA://127.0.0.1:{extra},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    voters = f"1@127.0.0.1:{controller}"
    brokers = [Broker(folder / "1", port, controller_port=controller, voters=voters, settings=soon | listeners)]
    brokers += [Broker(folder / str(n), node_id=n, voters=voters, settings=soon) for n in (2, 3)]
    config = {
        "kafka": [{"name": "three", "bootstrap_servers": f"127.0.0.1:{extra}"}],
        "jmx": [{"role": "broker", "cluster": "three", "url": brokers[0].jolokia_url}],
        "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.5},
    }
    (folder / "streamwarden.yaml").write_text(yaml.safe_dump(config))
    try:
        for broker in brokers:
            broker.launch()
        wait_until_answering(brokers[0].bootstrap_servers, brokers)
        lossy = NewTopic("lossy", 1, replica_assignment=[[2, 3]], config={"unclean.leader.election.enable": "true"})
        create_topics(brokers[0].bootstrap_servers, NewTopic("t", 2, replica_assignment=[[1], [2]]), lossy)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(CONFIG_ENV, str(folder / "streamwarden.yaml"))
            patch.setattr(kafka_topics, "LOOK_AGAIN_SECONDS", 0)
            yield brokers
    finally:
        for broker in reversed(brokers):
            broker.stop()


def read(source: ClusterSource) -> list[dict[str, Any]]:
    """Rows of the source, read in this process."""
    reader = source.reader(cast(StructType, StructType.fromDDL(str(source.schema()))))
    batches = (cast(pa.RecordBatch, batch) for part in reader.partitions() for batch in reader.read(part))
    return [row for batch in batches for row in batch.to_pylist()]


def leaders_of(topic: str) -> dict[int, tuple[int | None, str | None]]:
    """Leader and error by partition."""
    rows = read(KafkaTopics({"clusters": '["three"]'}))
    partitions = [p for row in rows if row["topic"] == topic for p in row["partitions"]]
    assert partitions, rows
    return {p["partition"]: (p["leader"], p["leader_error"]) for p in partitions}


def soon(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


NO_LISTENER, NONE = (None, "LISTENER_NOT_FOUND"), (None, "LEADER_NOT_AVAILABLE")


@pytest.mark.rare
@pytest.mark.slow
def test_a_leader_without_our_listener_differs_from_no_leader(three: list[Broker], spark: SparkSession) -> None:
    assert leaders_of("t") == {0: (1, None), 1: NO_LISTENER}


@pytest.mark.rare
@pytest.mark.slow
def test_an_unclean_election_is_counted(three: list[Broker], spark: SparkSession) -> None:
    """The only in-sync replica is dead, and an out-of-sync replica returns."""
    admin = AdminClient({"bootstrap.servers": three[0].bootstrap_servers, "log_level": 0})

    def in_sync() -> list[int]:
        return admin.list_topics("lossy", timeout=10).topics["lossy"].partitions[0].isrs

    def elections() -> list[float]:
        rows = read_jmx(spark, load_config(), present_hour(), "broker").where("metric = 'unclean_elections_total'")
        return [row.value for row in rows.collect()]

    before = elections()
    soon(lambda: in_sync() == [2, 3] or in_sync() == [3, 2])
    three[2].kill()
    soon(lambda: in_sync() == [2])
    three[1].kill()
    soon(lambda: leaders_of("lossy") == {0: NONE})
    three[2].launch()
    soon(lambda: leaders_of("lossy") == {0: NO_LISTENER})
    assert in_sync() == [3]
    assert len(before) == 2 and min(elections()) > max(before)
