"""Topics, partitions, leaders, replicas and configurations of Kafka clusters: one row per topic, and one per broker.

A broker is one that the cluster lists or that has replicas. One that has replicas and isn't listed is looked for once
more, some seconds later: it may just have been restarted.

Reads: metadata, DescribeCluster for the racks, and DescribeConfigs, some requests per cluster. Needs: Describe on
topics, and DescribeConfigs on them for `configs` (without it `configs` is null and a gap row says so). Can't see:
topics that it may not describe; racks of brokers that aren't listed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import ClusterMetadata, ConfigResource, ConfigSource

from spark_apps.sources.kafka_client import (
    ANSWER_SECONDS,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
)

TOPICS_PER_REQUEST = 1000
"""A broker writes some thirty settings of each: all of a large cluster's in one answer would outlast the time-out."""
LOOK_AGAIN_SECONDS = 20
"""So long after the first look brokers that weren't listed are looked for again."""


class TopicsReader(ClusterReader):
    """See the module."""

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        now, started = datetime.now(UTC), time.monotonic()
        metadata = connection.metadata()
        topics = {str(t.topic): t for t in metadata.topics.values() if t.error is None}
        configs, refusal = configs_of(connection, list(topics))
        rows: list[dict[str, Any]] = [
            {
                "cluster": name,
                "topic": topic_name,
                "partitions": [
                    {
                        "partition": p.id,
                        "leader": p.leader if p.leader >= 0 else None,
                        "replicas": p.replicas,
                        "isr": p.isrs,
                    }
                    for p in topic.partitions.values()
                ],
                "configs": configs.get(topic_name),
                "observed_at": now,
                "resource": name,
            }
            for topic_name, topic in topics.items()
        ]
        hosts = _brokers(connection, metadata, started + LOOK_AGAIN_SECONDS)
        racks, untold = _racks(connection)
        known = {"cluster": name, "observed_at": now, "resource": name}
        rows += [known | {"broker": broker, "host": host, "rack": racks.get(broker)} for broker, host in hosts.items()]
        rows += [
            self.gap_row(name, f"{name} {what}", gap) for what, gap in (("configs", refusal), ("racks", untold)) if gap
        ]
        yield from self.batches(rows)


class KafkaTopics(ClusterSource):
    """Spark data source `kafka_topics`. Rows have a topic or a broker; `host` is null where it isn't listed."""

    reader_type = TopicsReader

    @classmethod
    def name(cls) -> str:
        return "kafka_topics"

    def schema(self) -> str:
        return (
            "cluster string, topic string,"
            " partitions array<struct<partition: int, leader: int, replicas: array<int>, isr: array<int>>>,"
            " configs map<string, struct<value: string, source: string>>, broker int, host string,"
            " rack string, observed_at timestamp, resource string, gap string"
        )


def _brokers(connection: Connection, metadata: ClusterMetadata, look_again_at: float) -> dict[int, str | None]:
    """Host by broker; null: it has replicas and isn't listed, nor is it when looked for again."""
    hosts: dict[int, str | None] = {
        replica: None
        for topic in metadata.topics.values()
        for partition in topic.partitions.values()
        for replica in partition.replicas
    }
    hosts |= {broker.id: broker.host for broker in metadata.brokers.values()}
    if None in hosts.values():
        time.sleep(max(0.0, look_again_at - time.monotonic()))
        # Of one topic: all brokers, and not all topics again.
        hosts |= {
            broker.id: broker.host for broker in connection.metadata(next(iter(metadata.topics))).brokers.values()
        }
    return hosts


def _racks(connection: Connection) -> tuple[dict[int, str | None], str | None]:
    """Rack by broker (null: it has none), and the reason where they couldn't be had. Metadata as the client gives it
    has none of them."""
    try:
        told = connection.admin.describe_cluster(request_timeout=ANSWER_SECONDS).result()
    except KafkaException as error:
        return {}, connection.gap(error)
    return {node.id: node.rack for node in told.nodes}, None


def configs_of(connection: Connection, topics: list[str]) -> tuple[dict[str, dict[str, dict[str, Any]]], str | None]:
    """Configs by topic, and the reason where some couldn't be had. Sensitive values come as null from the broker."""
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
