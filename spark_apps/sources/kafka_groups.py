"""Consumer groups of Kafka clusters, of the classic and of the newer protocol: state, members, hosts, assignments.

Reads: ListGroups and DescribeGroups, by coordinator. Needs: Describe on the cluster or on the groups. Can't see:
consumers that assign partitions themselves and commit nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConsumerGroupDescription

from spark_apps.sources.kafka_client import (
    ANSWER_SECONDS,
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
)

_GROUPS_PER_REQUEST = 200


class GroupsReader(ClusterReader):
    """See the module."""

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        name = connection.cluster.name
        now = datetime.now(UTC)
        connection.metadata()  # fails early where the cluster is down
        listing = connection.admin.list_consumer_groups(request_timeout=ANSWER_SECONDS).result()
        rows = [self.gap_row(name, name, connection.gap(error)) for error in listing.errors]
        types = {group.group_id: group.type for group in listing.valid}
        for chunk in _chunks(list(types), _GROUPS_PER_REQUEST):
            futures = connection.admin.describe_consumer_groups(chunk, request_timeout=ANSWER_SECONDS)
            for group_id, future in futures.items():
                row = {"cluster": name, "group_id": group_id, "observed_at": now, "resource": name}
                row["protocol"] = types[group_id].name.lower()
                try:
                    rows.append(row | _described(future.result()))
                except KafkaException as error:
                    rows.append(row | {"resource": f"{name} group {group_id}", "gap": connection.gap(error)})
        yield from self.batches(rows or [{"cluster": name, "observed_at": now, "resource": name}])


class KafkaGroups(ClusterSource):
    """Spark data source `kafka_groups`. A cluster without groups is one row without a group."""

    reader_type = GroupsReader

    @classmethod
    def name(cls) -> str:
        return "kafka_groups"

    def schema(self) -> str:
        return (
            "cluster string, group_id string, protocol string, state string, assignor string,"
            " members array<struct<member_id: string, client_id: string, host: string,"
            " assignment: map<string, array<int>>>>,"
            " observed_at timestamp, resource string, gap string"
        )


def _described(group: ConsumerGroupDescription) -> dict[str, Any]:
    return {
        "state": group.state.name,
        "assignor": group.partition_assignor or None,
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host.lstrip("/"),
                "assignment": _assignment(member.assignment),
            }
            for member in group.members
        ],
    }


def _assignment(assignment: Any) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for where in assignment.topic_partitions if assignment else []:
        topics.setdefault(where.topic, []).append(where.partition)
    return topics


def _chunks(items: list[str], size: int) -> Iterator[list[str]]:
    return (items[i : i + size] for i in range(0, len(items), size))
