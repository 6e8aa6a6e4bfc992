"""Topics, partitions, leaders, replicas, and configs of Kafka clusters: one row per topic, and one per broker.

A broker is one that the cluster lists or that has replicas. If one with replicas is not listed, metadata is
requested again some seconds later, because it may have been restarted; also if a leader is missing, because an
election may be in progress, and a topic that is missing then was being deleted.

Reads: metadata, DescribeCluster for the racks, and DescribeConfigs, some requests per cluster. Needs: Describe on
topics, and DescribeConfigs on them for `configs` (without it `configs` is null and there is a gap row). Limitations:
no topics without the Describe permission; no racks of brokers that are not listed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import ClusterMetadata, ConfigResource, ConfigSource, PartitionMetadata

from spark_apps.sources.kafka_client import (
    ANSWER_SECONDS,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
)

TOPICS_PER_REQUEST = 1000
"""A topic has some thirty settings: all topics of a large cluster in one response would exceed the timeout."""
LOOK_AGAIN_SECONDS = 20
"""Time between the two metadata requests, for brokers that were not listed and leaders that were missing."""


class TopicsReader(ClusterReader):
    """Reads the topics and brokers of a cluster; see the module."""

    only_present = "a cluster's list of topics and brokers"

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Topics and brokers of one cluster."""
        name = connection.cluster.name
        now, started = datetime.now(UTC), time.monotonic()
        metadata = connection.metadata()
        topics = _topics(metadata)
        configs, refusal = configs_of(connection, list(topics))
        topics, hosts = _settled(connection, metadata, topics, started + LOOK_AGAIN_SECONDS)
        rows: list[dict[str, Any]] = [
            {
                "cluster": name,
                "topic": topic_name,
                "partitions": [
                    {
                        "partition": p.id,
                        "leader": p.leader if p.leader >= 0 else None,
                        "leader_error": p.error.name() if p.leader < 0 and p.error else None,
                        "replicas": p.replicas,
                        "isr": p.isrs,
                    }
                    for p in partitions
                ],
                "configs": configs.get(topic_name),
                "observed_at": now,
                "resource": name,
            }
            for topic_name, partitions in topics.items()
        ]
        racks, rack_gap = _racks(connection)
        known = {"cluster": name, "observed_at": now, "resource": name}
        rows += [known | {"broker": broker, "host": host, "rack": racks.get(broker)} for broker, host in hosts.items()]
        gaps = (("configs", refusal), ("racks", rack_gap))
        rows += [self.gap_row(name, f"{name} {what}", gap) for what, gap in gaps if gap]
        yield from self.batches(rows)


class KafkaTopics(ClusterSource):
    """Spark data source `kafka_topics`. Rows have a topic or a broker; `host` is null if the broker is not listed."""

    reader_type = TopicsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kafka_topics"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, topic string,"
            " partitions array<struct<partition: int, leader: int, leader_error: string, replicas: array<int>,"
            " isr: array<int>>>,"
            " configs map<string, struct<value: string, source: string>>, broker int, host string,"
            " rack string, observed_at timestamp, resource string, gap string"
        )


Topics = dict[str, list[PartitionMetadata]]
"""Partitions by topic."""


def _topics(metadata: ClusterMetadata) -> Topics:
    return {str(t.topic): list(t.partitions.values()) for t in metadata.topics.values() if t.error is None}


def _settled(
    connection: Connection, first: ClusterMetadata, topics: Topics, look_again_at: float
) -> tuple[Topics, dict[int, str | None]]:
    """Topics after a second request where leaders or brokers were missing, and host by broker (null: not listed)."""
    listed = {broker.id: broker.host for broker in first.brokers.values()}
    unled = {name for name, partitions in topics.items() if any(p.leader < 0 for p in partitions)}
    if unled or not _holders(topics) <= listed.keys():
        time.sleep(max(0.0, look_again_at - time.monotonic()))
        # With one topic the response has all brokers, without all topics again.
        second = connection.metadata("" if unled else next(iter(topics)))
        listed |= {broker.id: broker.host for broker in second.brokers.values()}
        topics = _with_leaders_of(_topics(second), topics, unled)
    return topics, dict.fromkeys(_holders(topics)) | listed


def _holders(topics: Topics) -> set[int]:
    return {broker for partitions in topics.values() for p in partitions for broker in p.replicas}


def _with_leaders_of(second: Topics, first: Topics, unled: set[str]) -> Topics:
    """Topics of the first response; partitions without a leader are as in the second."""
    there = {name: {p.id: p for p in second[name]} for name in unled & second.keys()}
    return {
        name: [there[name].get(p.id, p) if p.leader < 0 else p for p in partitions] if name in unled else partitions
        for name, partitions in first.items()
        if name not in unled or name in there
    }


def _racks(connection: Connection) -> tuple[dict[int, str | None], str | None]:
    """Rack by broker (null: none), and the gap if they could not be read; the client's metadata has no racks."""
    try:
        cluster = connection.admin.describe_cluster(request_timeout=ANSWER_SECONDS).result()
    except KafkaException as error:
        return {}, connection.gap(error)
    return {node.id: node.rack for node in cluster.nodes}, None


def configs_of(connection: Connection, topics: list[str]) -> tuple[dict[str, dict[str, dict[str, Any]]], str | None]:
    """Configs by topic, and the gap if some could not be read. Brokers return sensitive values as null."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    refusal: str | None = None
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    futures: dict[ConfigResource, Any] = {}
    for i in range(0, len(resources), TOPICS_PER_REQUEST):
        some = resources[i : i + TOPICS_PER_REQUEST]
        futures |= connection.admin.describe_configs(some, request_timeout=ANSWER_SECONDS)
    for resource, future in futures.items():
        try:
            found[resource.name] = {
                entry.name: {"value": entry.value, "source": ConfigSource(entry.source).name.lower()}
                for entry in future.result().values()
            }
        except KafkaException as error:
            refusal = refusal or connection.gap(error)
    return found, refusal
