"""The demo's AWS world: accounts, instances, and volumes, with their CloudWatch metrics.

The metrics of each minute are modeled (ebs_days), or measured if they are fed. The strict endpoint in aws_endpoint.py
serves this world through the AWS APIs.
"""

from __future__ import annotations

import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from demo.aws_glue import GlueRegistry
from demo.data_points import alive, as_set, before_nitro, every, failed, network_bytes, or_earlier
from demo.ebs_days import Day, DayCache, InstanceDay, Unit, day_of, minute_of
from demo.ebs_load import DAY_MINUTES, LoadModel
from demo.ebs_physics import GIB, INSTANCE_TYPES, Minutes, volume_limits
from demo.ebs_resources import Configuration, Instance, Modification, Volume
from demo.msk_world import Msk

EBS_METRICS: dict[str, tuple[str, Callable[[Day, Volume], Minutes]]] = {
    "VolumeReadOps": ("Count", lambda d, v: d.read_ops),
    "VolumeWriteOps": ("Count", lambda d, v: d.write_ops),
    "VolumeReadBytes": ("Bytes", lambda d, v: d.read_bytes),
    "VolumeWriteBytes": ("Bytes", lambda d, v: d.write_bytes),
    # Little's law: requests in flight × seconds = seconds spent by all requests
    "VolumeTotalReadTime": ("Seconds", lambda d, v: 60 * d.queue * _share(d.read_ops, d.write_ops)),
    "VolumeTotalWriteTime": ("Seconds", lambda d, v: 60 * d.queue * _share(d.write_ops, d.read_ops)),
    "VolumeIdleTime": ("Seconds", lambda d, v: d.idle_seconds),
    "VolumeQueueLength": ("Count", lambda d, v: d.queue),
    "BurstBalance": ("Percent", lambda d, v: d.balance_percent),
    "VolumeThroughputPercentage": ("Percent", lambda d, v: np.where(d.iops_exceeded > 0, 99.0, 100.0) + 0 * d.queue),
    "VolumeConsumedReadWriteOps": ("Count", lambda d, v: d.read_ops + d.write_ops),
    "VolumeIOPSExceededCheck": ("None", lambda d, v: d.iops_exceeded),
    "VolumeThroughputExceededCheck": ("None", lambda d, v: d.bytes_exceeded),
    "VolumeStalledIOCheck": ("None", lambda d, v: d.stalled),
}
NITRO_EBS_METRICS = {"VolumeIOPSExceededCheck", "VolumeThroughputExceededCheck", "VolumeStalledIOCheck"}
PROVISIONED_METRICS = {"VolumeThroughputPercentage", "VolumeConsumedReadWriteOps"}

INSTANCE_EBS_SUMS = {
    "EBSReadOps": ("Count", "read_ops"),
    "EBSWriteOps": ("Count", "write_ops"),
    "EBSReadBytes": ("Bytes", "read_bytes"),
    "EBSWriteBytes": ("Bytes", "write_bytes"),
}
INSTANCE_METRICS: dict[str, tuple[str, Callable[[InstanceDay], Minutes]]] = {
    "EBSIOBalance%": ("Percent", lambda d: d.io_balance_percent),
    "EBSByteBalance%": ("Percent", lambda d: d.byte_balance_percent),
    "InstanceEBSIOPSExceededCheck": ("None", lambda d: d.iops_exceeded),
    "InstanceEBSThroughputExceededCheck": ("None", lambda d: d.bytes_exceeded),
}
NETWORK = {"NetworkIn": 2, "NetworkOut": 3}
"""Metric → its index in `Instance.network`."""
CPU_CREDITS = {
    "CPUCreditBalance": (2, 500.0),
    "CPUSurplusCreditBalance": (3, 0.0),
    "CPUSurplusCreditsCharged": (4, 0.0),
}
"""Metric → its index in `Instance.cpu_credits`, and its default."""
STATUS_CHECKS = {
    "StatusCheckFailed_Instance": "instance",
    "StatusCheckFailed_System": "system",
    "StatusCheckFailed_AttachedEBS": "volumes",
}
Dimensions = frozenset[tuple[str, str]]


def _share(mine: Minutes, other: Minutes) -> Minutes:
    return mine / np.maximum(mine + other, 1e-9)


class Metric(NamedTuple):
    """A CloudWatch metric: namespace, name, and dimensions."""

    namespace: str
    name: str
    dimensions: Dimensions


@dataclass(frozen=True)
class ScalingActivity:
    """An Auto Scaling activity for an instance of a group."""

    account: str
    region: str
    activity_id: str
    scaling_group: str
    instance_id: str
    is_termination: bool
    cause: str
    started_at: datetime
    ended_at: datetime

    def has_ended(self, now: datetime) -> bool:
        return self.ended_at <= now


class World:
    """Accounts, regions, instances, and volumes, with the values of each metric, minute by minute."""

    def __init__(self, seed: int, now: Callable[[], datetime]):
        self.seed = seed
        self.now = now
        self.instances: dict[str, Instance] = {}
        self.volumes: dict[str, Volume] = {}
        self.activities: list[ScalingActivity] = []
        self.glue: list[GlueRegistry] = []
        self._units: dict[str, Unit] = {}
        self._cache = DayCache()
        self._lock = threading.RLock()

    @cached_property
    def msk(self) -> Msk:
        """Amazon MSK; what its brokers run on is in no account of this world."""
        return Msk(World(self.seed, self.now))

    @property
    def accounts(self) -> set[str]:
        with self._lock:
            owners = {volume.account for volume in self.volumes.values()}
            owners |= {cluster.account for cluster in self.msk.clusters} | {each.account for each in self.glue}
            return owners | {instance.account for instance in self.instances.values()}

    def add_instance(
        self,
        account: str,
        region: str,
        instance_id: str,
        instance_type: str,
        tags: dict[str, str] | None = None,
        launched_at: datetime | None = None,
        *,
        private_ip: str | None = None,
        detailed_monitoring: bool = False,
        cpu_percent: float = 25.0,
        memory_used_percent: float = 55.0,
    ) -> Instance:
        """Adds a running instance; without detailed monitoring its AWS/EC2 metrics come every five minutes."""
        if instance_type not in INSTANCE_TYPES:
            raise ValueError(f"instance type {instance_type!r} is unknown: use one of {', '.join(INSTANCE_TYPES)}")
        number = zlib.crc32(instance_id.encode())
        instance = Instance(
            account, region, instance_id, instance_type, dict(tags or {}), launched_at or self._long_ago(),
            private_ip or f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            detailed_monitoring, cpu_percent, memory_used_percent,
        )  # fmt: skip
        with self._lock:
            self.instances[instance_id] = instance
            self._units[instance_id] = Unit(self.seed, instance, self._cache)
        return instance

    def add_volume(
        self,
        account: str,
        region: str,
        volume_id: str,
        volume_type: str,
        size_gib: int,
        iops: int | None = None,
        throughput_mib_s: int | None = None,
        instance_id: str | None = None,
        device: str | None = None,
        tags: dict[str, str] | None = None,
        load: LoadModel | None = None,
        created_at: datetime | None = None,
        *,
        initial_balance_percent: float = 100.0,
    ) -> Volume:
        """Adds a volume, attached from its creation to the instance if one is named."""
        volume_limits(volume_type, size_gib, iops, throughput_mib_s)
        if instance_id is not None and instance_id not in self.instances:
            raise ValueError(f"volume {volume_id}: instance {instance_id} is not in this world: add it first")
        volume = Volume(
            account, region, volume_id, volume_type, size_gib, iops, throughput_mib_s, instance_id,
            device or (instance_id and "/dev/sdf"), dict(tags or {}), load or LoadModel(),
            created_at or self._long_ago(), initial_balance_percent,
        )  # fmt: skip
        with self._lock:
            self.volumes[volume_id] = volume
            unit = self._units.setdefault(instance_id or volume_id, Unit(self.seed, None, self._cache))
            unit.forget(-1)
            unit.volumes.append(volume)
        return volume

    def _long_ago(self) -> datetime:
        return (self.now() - timedelta(days=15)).replace(hour=0, minute=0, second=0, microsecond=0)

    def feed_volume(self, volume_id: str, at: datetime, read_bytes: float, write_bytes: float) -> None:
        """Sets the measured I/O of the minute of `at`, which replaces the model."""
        with self._lock:
            self.volumes[volume_id].measured[minute_of(at)] = (read_bytes, write_bytes)
            self._unit_of(self.volumes[volume_id]).forget(day_of(at))

    def feed_memory(self, instance_id: str, at: datetime, used_bytes: float) -> None:
        """Sets the measured memory usage of the minute of `at`."""
        with self._lock:
            self.instances[instance_id].measured_memory[minute_of(at)] = used_bytes

    def stall(self, volume_id: str, start: datetime, end: datetime) -> None:
        """The volume completes no I/O in [start, end)."""
        self._change(volume_id, start, lambda volume: volume.stalls.append((start, end)))

    def slow(self, volume_id: str, start: datetime, end: datetime, factor: float) -> None:
        """The latency of the volume is multiplied by `factor` in [start, end); no status check reports it."""
        self._change(volume_id, start, lambda volume: volume.slow.append((start, end, factor)))

    def lose_points(self, volume_id: str, start: datetime, end: datetime) -> None:
        """The volume sends no metrics in [start, end)."""
        self._change(volume_id, start, lambda volume: volume.gaps.append((start, end)))

    def detach(self, volume_id: str, at: datetime) -> None:
        """The volume is detached and sends no metrics from `at` on."""
        self._change(volume_id, at, lambda volume: setattr(volume, "detached_at", at))

    def modify(self, volume_id: str, at: datetime, ready_at: datetime, to: Configuration) -> None:
        """ModifyVolume at `at`; the volume performs as before until `ready_at`."""
        change = Modification(at, ready_at, to)
        self._change(volume_id, at, lambda volume: volume.modifications.append(change))

    def move(self, volume_id: str, at: datetime, attached_at: datetime, instance_id: str) -> Volume:
        """Detaches the volume at `at` and attaches it to another instance; a bucket is full again by then."""
        self.detach(volume_id, at)
        earlier = self.volumes[volume_id]
        moved = replace(earlier, instance_id=instance_id, created_at=attached_at, detached_at=None, earlier=earlier)
        with self._lock:
            self.volumes[volume_id] = moved
            self._units[instance_id].forget(-1)
            self._units[instance_id].volumes.append(moved)
        return moved

    def delete_volume(self, volume_id: str, at: datetime) -> None:
        """The volume is deleted at `at`; CloudWatch keeps its history."""
        self._change(volume_id, at, lambda volume: setattr(volume, "deleted_at", at))

    def terminate_instance(self, instance_id: str, at: datetime) -> None:
        """The instance is terminated at `at`; its volumes are detached."""
        self.instances[instance_id].terminated_at = at
        for volume in [volume for volume in self.volumes.values() if volume.instance_id == instance_id]:
            self.detach(volume.volume_id, min(at, volume.detached_at or at))

    def fail_checks(self, instance_id: str, check: str, start: datetime, end: datetime) -> None:
        """A status check (`instance`, `system` or `volumes`) fails in [start, end)."""
        self.instances[instance_id].failed_checks.append((check, start, end))

    def take_out(self, instance_id: str, scaling_group: str, at: datetime, reason: str) -> None:
        """Auto Scaling terminates the instance at `at`: it was taken out of service in response to `reason`."""
        instance = self.instances[instance_id]
        cause = f"At {at:%Y-%m-%dT%H:%M:%SZ} an instance was taken out of service in response to {reason}."
        self.activities.append(
            ScalingActivity(
                instance.account, instance.region, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{instance_id} {at}")),
                scaling_group, instance_id, True, cause, at, at + timedelta(minutes=2),
            )
        )  # fmt: skip
        self.terminate_instance(instance_id, at)

    def _change(self, volume_id: str, at: datetime, change: Callable[[Volume], None]) -> None:
        with self._lock:
            change(self.volumes[volume_id])
            self._unit_of(self.volumes[volume_id]).forget(day_of(at))

    def _unit_of(self, volume: Volume) -> Unit:
        return self._units[volume.instance_id or volume.volume_id]

    def metrics(self, account: str, region: str) -> Iterator[Metric]:
        """Every metric that the account's region has ever sent."""
        for volume in self.volumes.values():
            if (volume.account, volume.region) == (account, region):
                for name in EBS_METRICS:
                    if self._has(volume, name):
                        yield Metric("AWS/EBS", name, frozenset({("VolumeId", volume.volume_id)}))
        for instance in self.instances.values():
            if (instance.account, instance.region) == (account, region):
                yield from self._instance_metrics(instance)
        yield from self.msk.metrics(account, region)

    def _instance_metrics(self, instance: Instance) -> Iterator[Metric]:
        dimensions = frozenset({("InstanceId", instance.instance_id)})
        kind = instance.type
        yield Metric("AWS/EC2", "CPUUtilization", dimensions)
        for name in NETWORK:
            yield Metric("AWS/EC2", name, dimensions)
        if instance.instance_type.startswith("t"):
            for name in CPU_CREDITS:
                yield Metric("AWS/EC2", name, dimensions)
        for name, check in STATUS_CHECKS.items():
            if check != "volumes" or kind.nitro:
                yield Metric("AWS/EC2", name, dimensions)
        if kind.nitro:
            for name in [*INSTANCE_EBS_SUMS, *INSTANCE_METRICS]:
                if not name.endswith("Balance%") or kind.max_iops > kind.base_iops:
                    yield Metric("AWS/EC2", name, dimensions)
        agent = dimensions | {("ImageId", instance.image_id), ("InstanceType", instance.instance_type)}
        for each in (dimensions, agent):  # the agent's usual config aggregates by InstanceId as well
            yield Metric("CWAgent", "mem_used_percent", each)
        disk = {("path", "/data"), ("fstype", "xfs")}
        for position, volume in enumerate(self._units[instance.instance_id].volumes):
            if volume.instance_id == instance.instance_id:
                device = ("device", f"nvme{position + 1}n1" if kind.nitro else f"xvd{chr(ord('f') + position)}")
                yield Metric("CWAgent", "disk_used_percent", agent | disk | {device})

    def _has(self, volume: Volume, name: str) -> bool:
        if volume.instance_id is None:
            return False
        if name == "BurstBalance":
            # A gp2 that needs no bucket has a balance of 100 % on instances before Nitro, and none on Nitro.
            is_full = volume.volume_type == "gp2" and not self.instances[volume.instance_id].type.nitro
            configurations = [volume.first_configuration, *(each.to for each in volume.modifications)]
            return any(each.limits.credits > 0 for each in configurations) or is_full
        if name in PROVISIONED_METRICS:
            return volume.volume_type in ("io1", "io2")
        if name in NITRO_EBS_METRICS:
            has_checks = volume.volume_type != "standard" and not volume.is_multi_attach
            return has_checks and self.instances[volume.instance_id].type.nitro
        return name in EBS_METRICS

    def read(self, account: str, region: str, metric: Metric, first: int, count: int) -> tuple[str, Minutes] | None:
        """Unit and values of `count` minutes from Unix minute `first` (NaN: no data point); None: no such metric."""
        with self._lock:
            found = self._source(account, region, metric)
            if found is None:
                return None
            unit, of_day = found
            days = range(first // DAY_MINUTES, (first + count - 1) // DAY_MINUTES + 1)
            figures = np.concatenate([of_day(day) for day in days]) if len(days) > 1 else of_day(days[0])
            start = first - days[0] * DAY_MINUTES
            return unit, figures[start : start + count]

    def _source(self, account: str, region: str, metric: Metric) -> tuple[str, Callable[[int], Minutes]] | None:
        dimensions = dict(metric.dimensions)
        if metric.namespace == "AWS/Kafka":
            return self.msk.source(account, region, metric)
        if metric.namespace == "AWS/EBS":
            volume = self.volumes.get(dimensions.get("VolumeId", ""))
            if volume is None or (volume.account, volume.region, len(dimensions)) != (account, region, 1):
                return None
            if not self._has(volume, metric.name):
                return None
            sources = [self._volume_source(each, metric.name) for each in volume.attachments]
            return EBS_METRICS[metric.name][0], lambda day: reduce(or_earlier, [source(day) for source in sources])
        instance = self.instances.get(dimensions.get("InstanceId", ""))
        if instance is None or (instance.account, instance.region) != (account, region):
            return None
        if metric not in set(self._instance_metrics(instance)):
            return None
        return self._instance_source(instance, metric)

    def _volume_source(self, volume: Volume, name: str) -> Callable[[int], Minutes]:
        figure, home = EBS_METRICS[name][1], self._unit_of(volume)
        row = home.volumes.index(volume)
        nitro = home.instance is None or home.instance.type.nitro
        adjust = (lambda figures, day: figures) if nitro else before_nitro(name)
        return lambda day: adjust(figure(home.day(day)[0][row], volume), home.day(day)[0][row])

    def _instance_source(self, instance: Instance, metric: Metric) -> tuple[str, Callable[[int], Minutes]]:
        home = self._units[instance.instance_id]
        step = 1 if metric.namespace == "CWAgent" or instance.detailed_monitoring else 5
        if metric.name in INSTANCE_EBS_SUMS:
            unit, name = INSTANCE_EBS_SUMS[metric.name]
            whole = self._sums(home, name)
            # Basic monitoring sends one data point for five minutes: their sum.
            return unit, lambda day: alive(instance, day, every(whole(day), step, np.sum))
        if metric.name in INSTANCE_METRICS:
            unit, figure = INSTANCE_METRICS[metric.name]
            merge = np.min if metric.name.endswith("Balance%") else np.max
            return unit, lambda day: alive(instance, day, every(figure(home.day(day)[1]), step, merge))
        if metric.name in STATUS_CHECKS:
            check = STATUS_CHECKS[metric.name]
            return "Count", lambda day: alive(instance, day, failed(instance, check, day))
        if metric.name in NETWORK:
            which = NETWORK[metric.name]
            return "Bytes", lambda day: alive(
                instance, day, every(60 * network_bytes(instance, which, day), step, np.sum)
            )
        if metric.name in CPU_CREDITS:
            which, unset = CPU_CREDITS[metric.name]
            return "Count", lambda day: alive(
                instance, day, every(as_set(instance.cpu_credits, which, unset, day), 5, np.min)
            )
        if metric.name == "CPUUtilization":
            return "Percent", lambda day: alive(instance, day, every(self._cpu(instance, day), step, np.mean))
        if metric.name == "mem_used_percent":
            return "Percent", lambda day: alive(instance, day, self._memory(instance, day))
        return "Percent", lambda day: alive(instance, day, self._disk(instance, day))

    def _sums(self, home: Unit, name: str) -> Callable[[int], Minutes]:
        zero = np.zeros(DAY_MINUTES)
        return lambda day: sum((np.nan_to_num(getattr(each, name)) for each in home.day(day)[0]), zero)

    def _cpu(self, instance: Instance, day: int) -> Minutes:
        load = LoadModel(read_iops=instance.cpu_percent, write_iops=0)
        return np.minimum(100, load.demand((self.seed, zlib.crc32(instance.instance_id.encode())), day)[0])

    def _memory(self, instance: Instance, day: int) -> Minutes:
        load = LoadModel(read_iops=instance.memory_used_percent, daily_swing=0.02, weekend_factor=1, noise=0.005)
        used = load.demand((self.seed, zlib.crc32(instance.instance_id.encode()), 1), day)[0]
        for minute, used_bytes in instance.measured_memory.items():
            if minute // DAY_MINUTES == day:
                used[minute % DAY_MINUTES] = used_bytes / (instance.type.memory_gib * GIB) * 100
        return np.minimum(100, used)

    def _disk(self, instance: Instance, day: int) -> Minutes:
        age_days = day - day_of(instance.launched_at) + np.arange(DAY_MINUTES) / DAY_MINUTES
        return 40 + 30 * (1 - np.exp(-np.maximum(0, age_days) / 30))
