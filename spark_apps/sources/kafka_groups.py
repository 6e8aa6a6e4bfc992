"""Consumer groups of Kafka clusters, of the classic and the newer protocol: state, members, hosts, and assignments.

Reads: ListGroups and DescribeGroups, by coordinator. Needs: Describe on the cluster or on the groups. Limitations: no
consumers with manual assignment that commit nothing, no members of groups of the Kafka Streams protocol, and no share
groups, which commit no offsets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka.admin import ConsumerGroupDescription

from spark_apps.sources.kafka_client import (
    ClusterPartition,
    ClusterReader,
    ClusterSource,
    Connection,
)
from spark_apps.sources.kafka_coordinators import PATIENCE_SECONDS, ask_groups, list_groups


class GroupsReader(ClusterReader):
    """Reads the groups of a cluster; see the module."""

    only_present = "a cluster's list of groups"

    def read_cluster(self, connection: Connection, partition: ClusterPartition) -> Iterator[pa.RecordBatch]:
        """Groups of one cluster."""
        name = connection.cluster.name
        known = {"cluster": name, "observed_at": datetime.now(UTC), "resource": name}
        deadline = time.monotonic() + PATIENCE_SECONDS
        listed = list_groups(connection, deadline)
        described, refused = ask_groups(name, list(listed.protocols), _describe, _described, deadline)
        rows = [self.gap_row(name, f"{name} groups", gap) for gap in listed.gaps]
        for group, protocol in listed.protocols.items():
            row = known | {"group_id": group, "protocol": protocol}
            gap = {"resource": f"{name} group {group}", "gap": refused.get(group)}
            rows.append(row | (gap if group in refused else described[group]))
        for protocol, states in (("streams", listed.streams), ("share", listed.shares)):
            rows += [
                known | {"group_id": group, "protocol": protocol, "state": state} for group, state in states.items()
            ]
        yield from self.batches(rows or [known])


class KafkaGroups(ClusterSource):
    """Spark data source `kafka_groups`. A cluster without groups gives one row without a group."""

    reader_type = GroupsReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "kafka_groups"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, group_id string, protocol string, state string, assignor string,"
            " members array<struct<member_id: string, client_id: string, host: string,"
            " assignment: map<string, array<int>>>>,"
            " observed_at timestamp, resource string, gap string"
        )


def _describe(connection: Connection, groups: list[str], seconds: int) -> dict[str, Future[ConsumerGroupDescription]]:
    return connection.admin.describe_consumer_groups(groups, request_timeout=seconds)


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
