"""Reassignments that run in a cluster, and the throttles that its brokers have: rows of the source `kafka_log_dirs`.

`reassignment`: a partition that is being moved, with the brokers it goes to and comes from. `broker`: how many replicas
are being added to it, and the throttles of replication that are set on it, `{}` if none.

Reads: ListPartitionReassignments (Kafka 2.4 or newer), one per cluster, and DescribeConfigs of four settings, one per
broker. Needs: Describe on the cluster; DescribeConfigs on it for the throttles. Can't see: throttles of brokers that
are down. What can't be had is null, and a gap.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
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
"""Asked along with the throttles: kafka-python loses a refusal, and a broker without throttles would look the same."""


def reassignments(connection: Connection, client: KafkaAdminClient, brokers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Rows of the cluster: of `brokers`, which it lists, and of those that replicas are being added to."""
    name = connection.cluster.name
    now = datetime.now(UTC)
    moving: dict[Any, dict[str, list[int]]] | None = None
    try:
        moving = client.list_partition_reassignments()
    except ClusterAuthorizationFailedError:
        gap = f"refused: cluster '{name}' doesn't allow it; grant Describe on the cluster."
        yield {"cluster": name, "resource": f"{name} reassignments", "gap": gap}
    except (KafkaError, OSError) as error:
        gap = f"refused: cluster '{name}' doesn't list its reassignments: {line(error)}."
        yield {"cluster": name, "resource": f"{name} reassignments", "gap": gap}
    known = {"cluster": name, "observed_at": now, "resource": f"{name} reassignments"}
    for partition, brokers_of in (moving or {}).items():
        yield known | {
            "kind": "reassignment",
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": brokers_of["replicas"],
            "adding": brokers_of["adding_replicas"],
            "removing": brokers_of["removing_replicas"],
        }
    added = Counter(broker for of in (moving or {}).values() for broker in of["adding_replicas"])
    listed = set(brokers)
    for broker in sorted(listed | added.keys()):
        row = known | {"kind": "broker", "broker": broker, "resource": f"{name} broker {broker} throttles"}
        row["adding_replicas"] = None if moving is None else added[broker]
        yield row | (_throttles(connection, client, broker) if broker in listed else {})


def _throttles(connection: Connection, client: KafkaAdminClient, broker: int) -> dict[str, Any]:
    """`throttles`, or the `gap`."""
    name = connection.cluster.name
    wanted = ConfigResource(ConfigResourceType.BROKER, str(broker), [*THROTTLES, _EVERY_BROKER_HAS])
    try:
        told = client.describe_configs([wanted], config_filter="all")["broker"][str(broker)]
    except (KafkaError, OSError) as error:
        return {"gap": f"refused: broker {broker} of cluster '{name}' doesn't tell its throttles: {line(error)}."}
    if _EVERY_BROKER_HAS not in told:
        return {"gap": f"refused: cluster '{name}' doesn't allow it; grant DescribeConfigs on the cluster."}
    throttles = {
        throttle: {"value": told[throttle]["value"], "source": told[throttle]["config_source"].lower()}
        for throttle in THROTTLES
        if throttle in told and "dynamic" in told[throttle]["config_source"].lower()
    }
    return {"throttles": json.dumps(throttles)}


def line(error: BaseException) -> str:
    """An error in one line, without its full stop."""
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")
