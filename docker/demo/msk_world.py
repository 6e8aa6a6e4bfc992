"""Amazon MSK in the demo's AWS world: clusters, and what CloudWatch's namespace AWS/Kafka has of them.

Which metric a monitoring level has, and its dimensions: Amazon MSK Developer Guide, "Amazon MSK metrics for monitoring
Standard brokers with CloudWatch" (metrics-details) and "… Express brokers …" (metrics-details-express). The storage of
a broker is modelled like any EBS volume (ebs_days), in a world of its own: no customer sees it in EC2.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from demo.ebs_load import DAY_MINUTES, LoadModel, within
from demo.ebs_physics import Minutes
from demo.ebs_resources import FOREVER

if TYPE_CHECKING:
    from demo.world import Metric, World

LEVELS = ("DEFAULT", "PER_BROKER", "PER_TOPIC_PER_BROKER", "PER_TOPIC_PER_PARTITION")
OF_CLUSTER = {"ActiveControllerCount": ("Count", 1.0), "OfflinePartitionsCount": ("Count", 0.0),
              "GlobalPartitionCount": ("Count", 120.0), "GlobalTopicCount": ("Count", 20.0)}  # fmt: skip
"""Metrics with the dimension Cluster Name alone: unit, and the value where a test sets none."""
OF_BROKER: dict[str, tuple[str, float, int]] = {
    "BytesInPerSec": ("Bytes/Second", 2e6, 0),
    "BytesOutPerSec": ("Bytes/Second", 4e6, 0),
    "MessagesInPerSec": ("Count/Second", 2000.0, 0),
    "ConnectionCount": ("Count", 120.0, 0),
    "CpuIdle": ("Percent", 80.0, 0),
    "CpuIoWait": ("Percent", 1.0, 0),
    "CpuSystem": ("Percent", 4.0, 0),
    "CpuUser": ("Percent", 15.0, 0),
    "HeapMemoryAfterGC": ("Percent", 35.0, 0),
    "KafkaAppLogsDiskUsed": ("Percent", 5.0, 0),
    "KafkaDataLogsDiskUsed": ("Percent", 40.0, 0),
    "LeaderCount": ("Count", 40.0, 0),
    "MemoryBuffered": ("Bytes", 1e8, 0),
    "MemoryCached": ("Bytes", 3e9, 0),
    "MemoryFree": ("Bytes", 5e8, 0),
    "MemoryUsed": ("Bytes", 4e9, 0),
    "PartitionCount": ("Count", 120.0, 0),
    "RootDiskUsed": ("Percent", 20.0, 0),
    "SwapFree": ("Bytes", 0.0, 0),
    "SwapUsed": ("Bytes", 0.0, 0),
    "TrafficShaping": ("Count", 0.0, 0),
    "UnderMinIsrPartitionCount": ("Count", 0.0, 0),
    "UnderReplicatedPartitions": ("Count", 0.0, 0),
    "ProduceTotalTimeMsMean": ("Milliseconds", 3.0, 1),
    "FetchConsumerTotalTimeMsMean": ("Milliseconds", 20.0, 1),
    "FetchFollowerTotalTimeMsMean": ("Milliseconds", 20.0, 1),
    "RequestHandlerAvgIdlePercent": ("None", 0.9, 1),
    "NetworkProcessorAvgIdlePercent": ("None", 0.95, 1),
    "ReplicationBytesInPerSec": ("Bytes/Second", 4e6, 1),
    "ReplicationBytesOutPerSec": ("Bytes/Second", 4e6, 1),
    "BwInAllowanceExceeded": ("Count", 0.0, 1),
    "BwOutAllowanceExceeded": ("Count", 0.0, 1),
    "PpsAllowanceExceeded": ("Count", 0.0, 1),
    "ConnTrackAllowanceExceeded": ("Count", 0.0, 1),
    "ProduceThrottleTime": ("Milliseconds", 0.0, 1),
    "FetchThrottleTime": ("Milliseconds", 0.0, 1),
    "RemoteFetchBytesPerSec": ("Bytes/Second", 0.0, 1),
}
"""Metrics with the dimensions Cluster Name and Broker ID: unit, value where a test sets none, level."""
OF_BURSTABLE = {"CPUCreditBalance": ("Count", 500.0, 0), "CpuCreditUsage": ("Count", 1.0, 1)}
OF_VOLUME: dict[str, int] = {
    "BurstBalance": 0, "VolumeReadBytes": 1, "VolumeWriteBytes": 1, "VolumeReadOps": 1, "VolumeWriteOps": 1,
    "VolumeQueueLength": 1, "VolumeTotalReadTime": 1, "VolumeTotalWriteTime": 1,
}  # fmt: skip
"""Metrics of the broker's storage, in AWS/EBS of the same names: level."""
OF_GROUP = {"MaxOffsetLag": "Count", "SumOffsetLag": "Count", "EstimatedMaxTimeLag": "Seconds"}
"""Metrics with the dimensions Cluster Name, Consumer Group and Topic."""
NOT_OF_EXPRESS = {
    *OF_VOLUME, "HeapMemoryAfterGC", "KafkaAppLogsDiskUsed", "KafkaDataLogsDiskUsed", "RootDiskUsed", "SwapFree",
    "SwapUsed", "TrafficShaping", "UnderReplicatedPartitions", "BwInAllowanceExceeded", "BwOutAllowanceExceeded",
    "PpsAllowanceExceeded", "ConnTrackAllowanceExceeded", "CpuIoWait", "OfflinePartitionsCount",
}  # fmt: skip


@dataclass(eq=False)
class MskCluster:
    """A cluster; `set` says what its metrics are, by broker (None: of the cluster) or by group and topic."""

    account: str
    region: str
    name: str
    brokers: int = 3
    instance_type: str = "kafka.m5.large"
    volume_gib: int = 100
    provisioned_mib_s: int | None = None
    level: str = "DEFAULT"
    jmx_exporter: bool = False
    node_exporter: bool = False
    state: str = "ACTIVE"
    kafka_version: str = "3.8.x"
    authentications: tuple[str, ...] = ("iam",)
    storage_mode: str = "LOCAL"
    is_serverless: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    """Of brokers that are somewhere else than MSK's are: a real one of a test."""
    values: dict[tuple[str, Any], list[tuple[datetime, datetime, float]]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.account} {self.region} {self.name}")) + "-2"

    @property
    def arn(self) -> str:
        return f"arn:aws:kafka:{self.region}:{self.account}:cluster/{self.name}/{self.id}"

    @property
    def is_express(self) -> bool:
        return self.instance_type.startswith("express.")

    @property
    def broker_ids(self) -> range:
        return range(1, 0 if self.is_serverless else self.brokers + 1)

    def host(self, broker_id: int) -> str:
        """As ListNodes and the bootstrap addresses have it."""
        made = f"b-{broker_id}.{self.name.replace('_', '')}.{self.id[:6]}.c2.kafka.{self.region}.amazonaws.com"
        return self.hosts.get(broker_id, made)

    def volume_id(self, broker_id: int) -> str:
        return f"{self.name}-{broker_id}"

    def set(self, name: str, of: Any, start: datetime, end: datetime, value: float) -> None:
        """What a metric is in [start, end); later calls win."""
        self.values.setdefault((name, of), []).append((start, end, value))


class Msk:
    """The clusters of a world; brokers' storage lives in `inner`."""

    def __init__(self, inner: World) -> None:
        self.inner = inner
        self.clusters: list[MskCluster] = []
        self.secrets: dict[tuple[str, str, str], str] = {}
        """Text of a secret by account, region, and name."""

    def add(self, cluster: MskCluster, loads: dict[int, LoadModel] | None = None, **volume: Any) -> MskCluster:
        """Adds a cluster. `loads`: of brokers' storage."""
        self.clusters.append(cluster)
        if cluster.is_express or cluster.is_serverless:
            return cluster
        for broker_id in cluster.broker_ids:
            instance_id = cluster.volume_id(broker_id)
            kind = cluster.instance_type.removeprefix("kafka.")
            self.inner.add_instance(cluster.account, cluster.region, instance_id, kind)
            throughput = cluster.provisioned_mib_s
            self.inner.add_volume(
                cluster.account, cluster.region, instance_id, "gp3" if throughput else "gp2", cluster.volume_gib,
                iops=16_000 if throughput else None, throughput_mib_s=throughput, instance_id=instance_id,
                load=(loads or {}).get(broker_id), **volume,
            )  # fmt: skip
        return cluster

    def metrics(self, account: str, region: str) -> Iterator[Metric]:
        """Every metric of the namespace AWS/Kafka that the account's region has."""
        for cluster in self.clusters:
            if (cluster.account, cluster.region) == (account, region):
                yield from self._of_brokers(cluster)
                yield from self._of_groups(cluster)

    def _of_brokers(self, cluster: MskCluster) -> Iterator[Metric]:
        from demo.world import Metric

        level, left_out = LEVELS.index(cluster.level), NOT_OF_EXPRESS if cluster.is_express else set()
        left_out = left_out | (set() if cluster.storage_mode == "TIERED" else {"RemoteFetchBytesPerSec"})
        mine = frozenset({("Cluster Name", cluster.name)})
        if not cluster.is_serverless:
            for name in OF_CLUSTER.keys() - left_out:
                yield Metric("AWS/Kafka", name, mine)
        burstable = OF_BURSTABLE if cluster.instance_type.startswith("kafka.t") else {}
        for broker_id in cluster.broker_ids:
            named = mine | {("Broker ID", str(broker_id))}
            for name, (_, _, least) in {**OF_BROKER, **burstable}.items():
                if level >= least and name not in left_out:
                    yield Metric("AWS/Kafka", name, named)
            for name, least in OF_VOLUME.items():
                if level >= least and name not in left_out and self._has(cluster, broker_id, name):
                    yield Metric("AWS/Kafka", name, named)

    def _of_groups(self, cluster: MskCluster) -> Iterator[Metric]:
        from demo.world import Metric

        for name, of in cluster.values:
            if isinstance(of, tuple) and name in OF_GROUP:
                named = {("Cluster Name", cluster.name), ("Consumer Group", of[0]), ("Topic", of[1])}
                yield Metric("AWS/Kafka", name, frozenset(named))

    def _has(self, cluster: MskCluster, broker_id: int, name: str) -> bool:
        return self.inner._has(self.inner.volumes[cluster.volume_id(broker_id)], name)

    def _exists(self, cluster: MskCluster, metric: Metric, group: tuple[str | None, str | None]) -> bool:
        if all(group):  # there may be thousands
            return (metric.name, group) in cluster.values
        return metric in set(self._of_brokers(cluster))

    def source(self, account: str, region: str, metric: Metric) -> tuple[str, Callable[[int], Minutes]] | None:
        """Unit and the minutes of a day of a metric; None: there is no such metric."""
        from demo.world import Metric

        dimensions = dict(metric.dimensions)
        for cluster in self.clusters:
            is_meant = (cluster.account, cluster.region, cluster.name) == (
                account,
                region,
                dimensions.get("Cluster Name"),
            )
            group = dimensions.get("Consumer Group"), dimensions.get("Topic")
            if not is_meant or not self._exists(cluster, metric, group):
                continue
            broker_id = dimensions.get("Broker ID")
            if metric.name in OF_VOLUME and broker_id is not None:
                volume = frozenset({("VolumeId", cluster.volume_id(int(broker_id)))})
                return self.inner._source(account, region, Metric("AWS/EBS", metric.name, volume))
            of = group if all(group) else broker_id
            unit, value = _default(metric.name)
            spans = cluster.values.get((metric.name, int(of) if isinstance(of, str) else of), [])
            return unit, partial(_minutes, spans, value)
        return None


def _default(name: str) -> tuple[str, float]:
    if name in OF_GROUP:
        return OF_GROUP[name], np.nan
    unit, value, *_ = OF_CLUSTER.get(name) or {**OF_BROKER, **OF_BURSTABLE}[name]
    return unit, value


def _minutes(spans: list[tuple[datetime, datetime, float]], value: float, day: int) -> Minutes:
    figures = np.full(DAY_MINUTES, value)
    for start, end, set_to in spans:
        figures[within(day, start, end or FOREVER)] = set_to
    return figures
