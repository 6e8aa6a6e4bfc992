"""Topics, partitions, leaders, replicas and configurations of Kafka clusters: one row per topic, and one per broker.

A broker is one that the cluster lists or that has replicas. One that has replicas and isn't listed is looked for once
more, some seconds later: it may just have been restarted. So are leaders where none is named: one may just be elected,
and a topic that is gone by then was being removed.

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
from confluent_kafka.admin import ClusterMetadata, ConfigResource, ConfigSource, PartitionMetadata

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
"""So long after the first look brokers that weren't listed, and leaders that weren't named, are looked for again."""


class TopicsReader(ClusterReader):
    """See the module."""

    only_present = "a cluster's list of topics and brokers"

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
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
    """What was looked for once more where it lacked; and host by broker: null, it has replicas and isn't listed."""
    listed = {broker.id: broker.host for broker in first.brokers.values()}
    unled = {name for name, partitions in topics.items() if any(p.leader < 0 for p in partitions)}
    if unled or not _holders(topics) <= listed.keys():
        time.sleep(max(0.0, look_again_at - time.monotonic()))
        # Of one topic: all brokers, and not all topics again.
        second = connection.metadata("" if unled else next(iter(topics)))
        listed |= {broker.id: broker.host for broker in second.brokers.values()}
        topics = _with_leaders_of(_topics(second), topics, unled)
    return topics, dict.fromkeys(_holders(topics)) | listed


def _holders(topics: Topics) -> set[int]:
    return {broker for partitions in topics.values() for p in partitions for broker in p.replicas}


def _with_leaders_of(second: Topics, first: Topics, unled: set[str]) -> Topics:
    """Those of the first look; partitions that had no leader are as they were at the second."""
    there = {name: {p.id: p for p in second[name]} for name in unled & second.keys()}
    return {
        name: [there[name].get(p.id, p) if p.leader < 0 else p for p in partitions] if name in unled else partitions
        for name, partitions in first.items()
        if name not in unled or name in there
    }


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
