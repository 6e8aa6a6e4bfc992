"""Reassignments in progress, and replication throttles of brokers: rows of the source `kafka_log_dirs`.

`reassignment`: a partition that is being reassigned, with its adding and removing replicas, and the bytes left to
copy by the sizes of its replicas. `broker`: the number of replicas that are being added to it, and the replication
throttles that are set on it, `{}` if none.

Reads: ListPartitionReassignments (Kafka 2.4 or newer), one per cluster, and DescribeConfigs of four settings, one
per broker. Needs: Describe on the cluster; DescribeConfigs on it for the throttles. Limitations: no throttles of
brokers that are down or do not respond. Data that could not be read is null, with a gap.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import ClusterAuthorizationFailedError, KafkaError

from spark_apps.sources.kafka_client import Connection

THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_EVERY_BROKER_HAS = "num.io.threads"
"""Requested with the throttles: kafka-python hides a denied request, which would look like a broker without
throttles."""


class Reassignments:
    """Reassignments in progress in a cluster, and the sizes of their replicas by broker."""

    def __init__(self, connection: Connection, client: KafkaAdminClient) -> None:
        self.connection, self.client = connection, client
        self.name = connection.cluster.name
        self.observed_at = datetime.now(UTC)
        self.running: dict[Any, dict[str, list[int]]] | None = None
        """By partition; None: not reported."""
        self.gap: str | None = None
        self.sizes: dict[tuple[str, int], dict[int, int]] = {}
        """Sizes of partitions that are being reassigned, by broker."""
        self.answering: set[int] = set()
        self.complete: set[int] = set()
        """Brokers that reported all their log directories: a replica that is not listed there does not exist."""
        try:
            self.running = client.list_partition_reassignments()
            self.sizes = {(p.topic, p.partition): {} for p in self.running}
        except ClusterAuthorizationFailedError:
            self.gap = f"failed: cluster '{self.name}' denied access; grant Describe on the cluster."
        except (KafkaError, OSError) as error:
            self.gap = f"failed: cluster '{self.name}' did not list its reassignments: {line(error)}."

    def note(self, broker: int, log_dirs: list[Mapping[str, Any]]) -> None:
        """Adds the sizes from a broker's response to DescribeLogDirs."""
        self.answering.add(broker)
        if log_dirs and not any(log_dir["error_code"] for log_dir in log_dirs):
            self.complete.add(broker)
        if not self.sizes:
            return
        for topic in (topic for log_dir in log_dirs for topic in log_dir["topics"]):
            for replica in topic["partitions"]:
                held = self.sizes.get((topic["name"], replica["partition_index"]))
                if held is not None and not replica["is_future_key"]:
                    held[broker] = replica["partition_size"]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per partition that is being reassigned, and per broker that responds or gets replicas."""
        resource = f"{self.name} reassignments"
        if self.gap:
            yield {"cluster": self.name, "resource": resource, "gap": self.gap}
        running = self.running or {}
        known = {"cluster": self.name, "observed_at": self.observed_at}
        for partition, of in running.items():
            place = {"topic": partition.topic, "partition": partition.partition}
            brokers = {"replicas": of["replicas"], "adding": of["adding_replicas"], "removing": of["removing_replicas"]}
            held = self.sizes[partition.topic, partition.partition]
            left = self._left(held, of["replicas"], of["adding_replicas"])
            yield known | {"kind": "reassignment", "resource": resource} | place | brokers | left
        added = Counter(broker for of in running.values() for broker in of["adding_replicas"])
        for broker in sorted(self.answering | added.keys()):
            row = known | {"kind": "broker", "broker": broker, "resource": f"{self.name} broker {broker} throttles"}
            row["adding_replicas"] = None if self.running is None else added[broker]
            yield row | (_throttles(self.connection, self.client, broker) if broker in self.answering else {})

    def _left(self, held: Mapping[int, int], replicas: list[int], adding: list[int]) -> dict[str, int | None]:
        """Sizes in bytes; null if a broker that they depend on did not report them."""
        whole = max((held[broker] for broker in replicas if broker in held and broker not in adding), default=None)
        copied = [held.get(broker, 0 if broker in self.complete else None) for broker in adding]
        sizes = [size for size in copied if size is not None]
        is_known = len(sizes) == len(copied)
        return {
            "partition_bytes": whole,
            "copied_bytes": sum(sizes) if is_known else None,
            "left_bytes": sum(max(whole - size, 0) for size in sizes) if is_known and whole is not None else None,
        }


def _throttles(connection: Connection, client: KafkaAdminClient, broker: int) -> dict[str, Any]:
    """The broker's `throttles` as JSON, or the `gap`."""
    name = connection.cluster.name
    wanted = ConfigResource(ConfigResourceType.BROKER, str(broker), [*THROTTLES, _EVERY_BROKER_HAS])
    try:
        configs = client.describe_configs([wanted], config_filter="all")["broker"][str(broker)]
    except (KafkaError, OSError) as error:
        return {"gap": f"failed: broker {broker} of cluster '{name}' did not report its throttles: {line(error)}."}
    if _EVERY_BROKER_HAS not in configs:
        return {"gap": f"failed: cluster '{name}' denied access; grant DescribeConfigs on the cluster."}
    throttles = {
        throttle: {"value": configs[throttle]["value"], "source": configs[throttle]["config_source"].lower()}
        for throttle in THROTTLES
        if throttle in configs and "dynamic" in configs[throttle]["config_source"].lower()
    }
    return {"throttles": json.dumps(throttles)}


def line(error: BaseException) -> str:
    """An error in one line, without a trailing period."""
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")
