"""What lacks a leader at the first look, and leaders that have no listener for us."""

from __future__ import annotations

import time
from pathlib import Path
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
from demo.broker import Broker, wait_until_answering
from demo.process import free_port
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from streamwarden.base.config import CONFIG_ENV

from spark_apps.sources import kafka_topics
from spark_apps.sources.kafka_client import Connection
from spark_apps.sources.kafka_topics import KafkaTopics

NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


def metadata(brokers: set[int], **leaders: list[int] | KafkaError) -> ClusterMetadata:
    """Leaders of the partitions of each topic, or its error."""
    told = ClusterMetadata()
    for broker in brokers:
        told.brokers[broker] = BrokerMetadata()
        told.brokers[broker].id, told.brokers[broker].host = broker, f"b{broker}"
    for name, of_topic in leaders.items():
        topic = told.topics[name] = TopicMetadata()
        topic.topic, topic.error = name, of_topic if isinstance(of_topic, KafkaError) else None
        for n, leader in enumerate(of_topic if isinstance(of_topic, list) else ()):
            partition = topic.partitions[n] = PartitionMetadata()
            partition.id, partition.leader, partition.replicas = n, leader, [1, 2] if name != "moved" else [3]
    return told


class TwoLooks:
    """Of a connection what is asked for."""

    def __init__(self, second: ClusterMetadata) -> None:
        self.second, self.asked = second, list[str]()

    def metadata(self, topic: str = "") -> ClusterMetadata:
        self.asked.append(topic)
        return self.second


def settled(first: ClusterMetadata, looks: TwoLooks) -> tuple[dict[str, list[int]], dict[int, str | None]]:
    connection = cast(Connection, looks)
    topics, hosts = kafka_topics._settled(connection, first, kafka_topics._topics(first), 0.0)
    return {name: [p.leader for p in partitions] for name, partitions in topics.items()}, hosts


def test_leaders_that_lacked_are_as_at_the_second_look_and_topics_that_went_are_none() -> None:
    first = metadata({1, 2}, led=[1, 2], elected=[-1, 1], lost=[2, -1], removed=[-1], refused=[-1], moved=[-1])
    second = metadata({1, 2}, led=[-1, -1], elected=[2, 2], lost=[1, -1], refused=NO_TOPIC, made=[-1])
    looks = TwoLooks(second)
    topics, hosts = settled(first, looks)
    assert topics == {"led": [1, 2], "elected": [2, 1], "lost": [2, -1]}
    assert looks.asked == [""]
    assert hosts == {1: "b1", 2: "b2"}  # 3 had a replica of nothing but what went


def test_only_what_lacks_is_looked_for_again() -> None:
    whole = TwoLooks(metadata(set()))
    assert settled(metadata({1, 2}, led=[1]), whole) == ({"led": [1]}, {1: "b1", 2: "b2"})
    assert whole.asked == []
    lacking = TwoLooks(metadata({2}, led=[-1]))
    assert settled(metadata({1}, led=[1], moved=[1]), lacking) == (
        {"led": [1], "moved": [1]},
        {1: "b1", 2: "b2", 3: None},
    )
    assert lacking.asked == ["led"]


def leaders_of(topic: str) -> dict[int, tuple[int | None, str | None]]:
    """Leader and error by partition, read in this process."""
    source = KafkaTopics({"clusters": '["pair"]'})
    reader = source.reader(cast(StructType, StructType.fromDDL(source.schema())))
    batches = (cast(pa.RecordBatch, batch) for batch in reader.read(reader.partitions()[0]))
    [row] = (row for batch in batches for row in batch.to_pylist() if row["topic"] == topic)
    return {p["partition"]: (p["leader"], p["leader_error"]) for p in row["partitions"]}


@pytest.mark.slow
def test_a_leader_without_our_listener_is_told_from_none(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, extra, controller = free_port(), free_port(), free_port()
    both: dict[str, Any] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},EXTRA://127.0.0.1:{extra},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    voters = f"1@127.0.0.1:{controller}"
    first = Broker(tmp_path / "1", port, controller_port=controller, voters=voters, settings=both)
    second = Broker(tmp_path / "2", node_id=2, voters=voters)
    monkeypatch.setattr(kafka_topics, "LOOK_AGAIN_SECONDS", 0)
    file = tmp_path / "streamwarden.yaml"
    file.write_text(yaml.safe_dump({"kafka": [{"name": "pair", "bootstrap_servers": f"127.0.0.1:{extra}"}]}))
    monkeypatch.setenv(CONFIG_ENV, str(file))
    try:
        first.launch()
        second.launch()
        wait_until_answering(first.bootstrap_servers, [first, second])
        admin = AdminClient({"bootstrap.servers": first.bootstrap_servers})
        made = NewTopic("t", 2, replica_assignment=[[1], [2]])
        admin.create_topics([made])["t"].result(20)
        assert leaders_of("t") == {0: (1, None), 1: (None, "LISTENER_NOT_FOUND")}
        second.kill()
        deadline = time.monotonic() + 60
        while leaders_of("t")[1] == (None, "LISTENER_NOT_FOUND") and time.monotonic() < deadline:
            time.sleep(0.2)
        assert leaders_of("t") == {0: (1, None), 1: (None, "LEADER_NOT_AVAILABLE")}
    finally:
        for broker in (second, first):
            broker.stop()
