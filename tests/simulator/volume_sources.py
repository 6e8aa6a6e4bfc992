"""Responses of EC2 and CloudWatch on simulated volumes, all cases as volumes of one hour, in the sources' layout."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from demo.ebs_physics import GIB, INSTANCE_TYPES
from demo.ebs_resources import Volume
from demo.world import Metric, World
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.hours import HOUR

from spark_apps.apps import ebs_volumes as app
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes
from tests.simulator.frames import SAMPLED_SINCE, rows_frame
from tests.simulator.scenario import EVALUATED, START, Case
from tests.simulator.volume_kinds import ACCOUNT, MINUTE, REGION, Fleet, attachment_at

LATE_BALANCE = 5
"""Delay of BurstBalance relative to the other metrics, in minutes."""


class Points:
    """CloudWatch's response in the long layout, as columns."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.columns: list[tuple[np.ndarray, ...]] = []

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.names)
            self.names.append(name)
        return self.numbers[name]

    def add(
        self, resource_name: str, metric: str, start: datetime, period_seconds: int, values: np.ndarray,
        region: str = REGION,
    ) -> None:  # fmt: skip
        """One series from `start` on; NaN: no data point. A series without data points is one row."""
        there = np.flatnonzero(~np.isnan(values))
        at = np.int64(start.timestamp()) + there * period_seconds
        if not len(there):
            at, values = np.array([-1]), np.array([np.nan])
            there = np.array([0])
        ids = (self.number(region), self.number(resource_name), self.number(metric), period_seconds)
        self.columns.append((*(np.full(len(at), i, dtype=np.int32) for i in ids), at, values[there]))

    def frame(self, spark: SparkSession, file: Path) -> DataFrame:
        region, resource_name, metric, period, at, value = (
            np.concatenate(column) for column in zip(*self.columns, strict=True)
        )
        names, none = pa.array(self.names), at < 0
        count = len(at)
        table = pa.table(
            {
                "account": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [ACCOUNT]),
                "region": pa.DictionaryArray.from_arrays(region, names),
                "resource_id": pa.DictionaryArray.from_arrays(resource_name, names),
                "metric": pa.DictionaryArray.from_arrays(metric, names),
                "at": pa.array(at * 1_000_000, mask=none).cast(pa.timestamp("us", "UTC")),
                "period_seconds": pa.array(period, mask=none),
                "value": pa.array(value, mask=none),
            }
        )
        pq.write_table(table, file, row_group_size=500_000)
        rest = {name: f.lit(None).cast(kind) for name, kind in _REST.items()}
        return spark.read.parquet(str(file)).withColumns(rest)


_REST = {"calls": "int", "metrics_requested": "int", "resource": "string", "gap": "string"}


def sources(spark: SparkSession, fleet: Fleet, chosen: list[Case], folder: Path) -> dict[str, DataFrame]:
    """Frames as returned by the app's `extract`, all cases as volumes of one hour."""
    end = EVALUATED + HOUR
    until = {"known_until": f.lit(end)}
    volumes = rows_frame(spark, [_volume_row(fleet, case) for case in chosen], Ec2Volumes({}).schema())
    hosts = sorted({host for case in chosen for host in _hosts(fleet, case)}, key=lambda c: (c.resource_name, c.hour))
    instances = rows_frame(spark, [_instance_row(fleet, host) for host in hosts], Ec2Instances({}).schema())
    hour, day = Points(), Points()
    for case in chosen:
        _add_volume(fleet.world, case, hour)
    for host in hosts:
        _add_instance(fleet.world, host, hour)
    metrics = hour.frame(spark, folder / "hour.parquet")
    ec2 = app.volumes_of(volumes, end).withColumns(until)
    of_hour = app.samples(metrics, "volume_id", [metric.column for metric in app.VOLUME_METRICS]).cache()
    throttled = {row.volume_id for row in app.throttled_volumes(ec2, of_hour).select("volume_id").collect()}
    for case in chosen:
        if case.name in throttled:
            _add_last_day(fleet.world, case, day)
    look_back = day.frame(spark, folder / "day.parquet") if day.columns else metrics.limit(0)
    of_instance = [*(metric.column for metric in app.INSTANCE_METRICS), *app.AGENT_METRICS.values()]
    return {
        "instances": app.instances_of(instances, end).withColumns(until),
        "volumes": ec2,
        "cloudwatch": metrics,
        "cloudwatch_look_back": look_back,
        "cloudwatch_read_baseline": metrics.limit(0),
        "sampled_since": rows_frame(spark, [], SAMPLED_SINCE),
        "volume_samples": of_hour,
        "last_day_samples": app.samples(look_back, "volume_id", [m.column for m in app.LOOK_BACK_METRICS]).cache(),
        "instance_samples": app.samples(metrics, "instance_id", of_instance).cache(),
    }


def _hosts(fleet: Fleet, case: Case) -> list[Case]:
    """The instance of the volume at the end of the hour, and the second one of a Multi-Attach volume."""
    volume = attachment_at(fleet.world.volumes[case.resource_name], case.hour + HOUR)
    instance_id = str(volume.instance_id)
    second = [f"{instance_id}-peer"] if volume.is_multi_attach else []
    return [Case(each, case.hour) for each in (instance_id, *second)]


def _volume_row(fleet: Fleet, case: Case) -> dict[str, Any]:
    end = case.hour + HOUR
    volume = attachment_at(fleet.world.volumes[case.resource_name], end)
    configuration = volume.configuration(end)
    is_attached = volume.created_at < end and (volume.detached_at is None or volume.detached_at > end)
    created_at = volume.attachments[-1].created_at + case.shift
    is_gp3 = configuration.volume_type == "gp3"
    attachments = [
        {"instance_id": host.name, "device": volume.device, "state": "attached",
         "attached_at": volume.created_at + case.shift + n * MINUTE}
        for n, host in enumerate(_hosts(fleet, case))
    ]  # fmt: skip
    return {
        "account": ACCOUNT,
        "region": volume.region,
        "volume_id": case.name,
        "volume_type": configuration.volume_type,
        "size_gib": configuration.size_gib,
        "iops": configuration.iops or (3000 if is_gp3 else None),
        "throughput_mib_s": (configuration.throughput_mib_s or 125) if is_gp3 else None,
        "state": "in-use" if is_attached else "available",
        "multi_attach": volume.is_multi_attach,
        "created_at": created_at,
        "attachments": attachments if is_attached else [],
        "tags": {},
        "observed_at": EVALUATED + HOUR,
        "resource": f"{ACCOUNT}/{volume.region} volumes",
        "gap": None,
    }


def _instance_row(fleet: Fleet, case: Case) -> dict[str, Any]:
    instance = fleet.world.instances[case.resource_name]
    kind = INSTANCE_TYPES[instance.instance_type]
    is_gone = instance.terminated_at is not None and instance.terminated_at <= case.hour + HOUR
    return {
        "account": ACCOUNT,
        "region": instance.region,
        "instance_id": case.name,
        "instance_type": instance.instance_type,
        "state": "terminated" if is_gone else "running",
        "private_ip": instance.private_ip,
        "private_dns": None,
        "launched_at": START + case.shift,
        "vcpus": kind.vcpus,
        "memory_bytes": int(kind.memory_gib * GIB),
        "nitro": kind.nitro,
        "ebs_baseline_iops": float(kind.base_iops),
        "ebs_maximum_iops": float(kind.max_iops),
        "ebs_baseline_bytes_per_second": kind.base_mbps * 125e3,
        "ebs_maximum_bytes_per_second": kind.max_mbps * 125e3,
        "tags": {},
        "observed_at": EVALUATED + HOUR,
        "resource": f"{ACCOUNT}/{instance.region} instances",
        "gap": None,
    }


def _read(world: World, namespace: str, name: str, resource_name: str, start: datetime, minutes: int) -> np.ndarray:
    is_volume = namespace == "AWS/EBS"
    dimension = "VolumeId" if is_volume else "InstanceId"
    resource = world.volumes[resource_name] if is_volume else world.instances[resource_name]
    found = world.read(
        ACCOUNT, resource.region, Metric(namespace, name, frozenset({(dimension, resource_name)})),
        int(start.timestamp() // 60), minutes,
    )  # fmt: skip
    return np.full(minutes, np.nan) if found is None else np.asarray(found[1], dtype=float)


def _add_volume(world: World, case: Case, hour: Points) -> None:
    start = case.hour - app.OVERLAP
    minutes = int((HOUR + app.OVERLAP) / MINUTE)
    volume = world.volumes[case.resource_name]
    for metric in app.VOLUME_METRICS:
        values = _read(world, "AWS/EBS", metric.name, case.resource_name, start, minutes)
        if metric.name == "BurstBalance":
            values = np.round(values) if _has_bucket(volume, case) else np.full(minutes, np.nan)
            values[-LATE_BALANCE:] = np.nan
        hour.add(case.name, metric.column, start + case.shift, 60, values, volume.region)


def _has_bucket(volume: Volume, case: Case) -> bool:
    """BurstBalance is requested if the configuration that EC2 describes can have it."""
    described = volume.configuration(case.hour + HOUR)
    is_large = described.volume_type == "gp2" and described.size_gib >= 1000
    return described.volume_type in ("gp2", "st1", "sc1") and not is_large


def _add_last_day(world: World, case: Case, day: Points) -> None:
    start, period = case.hour + HOUR - app.LOOK_BACK, app.LOOK_BACK_PERIOD_SECONDS
    volume = world.volumes[case.resource_name]
    for metric in app.LOOK_BACK_METRICS:
        minutes = _read(world, "AWS/EBS", metric.name, case.resource_name, start, int(app.LOOK_BACK / MINUTE))
        values = minutes.reshape(-1, period // 60)
        known = ~np.isnan(values).all(axis=1)
        merged = np.full(len(values), np.nan)
        merge = {"Sum": np.nansum, "Minimum": np.nanmin, "Maximum": np.nanmax}.get(metric.stat, np.nanmean)
        merged[known] = merge(values[known], axis=1)
        if metric.name == "BurstBalance":
            merged = np.round(merged) if _has_bucket(volume, case) else np.full(len(merged), np.nan)
        day.add(case.name, metric.column, start + case.shift, period, merged, volume.region)


def _add_instance(world: World, case: Case, hour: Points) -> None:
    start = case.hour - app.OVERLAP
    for metric in app.INSTANCE_METRICS:
        values = _read(world, "AWS/EC2", metric.name, case.resource_name, start, int((HOUR + app.OVERLAP) / MINUTE))
        region = world.instances[case.resource_name].region
        hour.add(case.name, metric.column, start + case.shift, 60, values, region)
