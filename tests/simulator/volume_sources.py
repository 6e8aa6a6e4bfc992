"""Responses of EC2 and CloudWatch on simulated volumes, all cases as volumes of one hour, in the sources' layout."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from demo.ebs_physics import GIB, INSTANCE_TYPES
from demo.world import Metric, World
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.hours import HOUR

from spark_apps.apps import ebs_volumes as app
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes
from tests.simulator.scenario import EVALUATED, START, Case
from tests.simulator.volume_kinds import ACCOUNT, MINUTE, REGION, Fleet

LATE_BALANCE = 5
"""Delay of BurstBalance relative to the other metrics, in minutes."""
LOW_PERCENT, WAITING = 40.0, 4


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

    def add(self, resource_name: str, metric: str, start: datetime, period_seconds: int, values: np.ndarray) -> None:
        """One series from `start` on; NaN: no data point. A series without data points is one row."""
        there = np.flatnonzero(~np.isnan(values))
        at = np.int64(start.timestamp()) + there * period_seconds
        if not len(there):
            at, values = np.array([-1]), np.array([np.nan])
            there = np.array([0])
        ids = (self.number(resource_name), self.number(metric), period_seconds)
        self.columns.append((*(np.full(len(at), i, dtype=np.int32) for i in ids), at, values[there]))

    def frame(self, spark: SparkSession, file: Path) -> DataFrame:
        resource_name, metric, period, at, value = (
            np.concatenate(column) for column in zip(*self.columns, strict=True)
        )
        names, none = pa.array(self.names), at < 0
        count = len(at)
        table = pa.table(
            {
                "account": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [ACCOUNT]),
                "region": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [REGION]),
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


_REST = {"calls": "int", "metrics_asked": "int", "resource": "string", "gap": "string"}


def sources(spark: SparkSession, fleet: Fleet, chosen: list[Case], folder: Path) -> dict[str, DataFrame]:
    """Frames as returned by the app's `extract`, all cases as volumes of one hour."""
    end = EVALUATED + HOUR
    until = {"known_until": f.lit(end)}
    volumes = spark.createDataFrame([_volume_row(fleet, case) for case in chosen], Ec2Volumes({}).schema())
    hosts = sorted({Case(str(fleet.world.volumes[case.resource_name].instance_id), case.hour) for case in chosen},
                   key=lambda c: (c.resource_name, c.hour))  # fmt: skip
    instances = spark.createDataFrame([_instance_row(fleet, host) for host in hosts], Ec2Instances({}).schema())
    hour, day = Points(), Points()
    for case in chosen:
        _add_volume(fleet.world, case, hour, day)
    for host in hosts:
        _add_instance(fleet.world, host, hour)
    metrics = hour.frame(spark, folder / "hour.parquet")
    look_back = day.frame(spark, folder / "day.parquet") if day.columns else metrics.limit(0)
    ec2 = app.volumes_of(volumes, end).withColumns(until)
    of_hour = app.samples(metrics, "volume_id", [metric.column for metric in app.VOLUME_METRICS]).cache()
    wanted = app.throttled_volumes(ec2, of_hour).select("account", "region", f.col("volume_id").alias("resource_id"))
    look_back = look_back.join(wanted, ["account", "region", "resource_id"], "left_semi")
    of_instance = [*(metric.column for metric in app.INSTANCE_METRICS), *app.AGENT_METRICS.values()]
    return {
        "instances": app.instances_of(instances, end).withColumns(until),
        "volumes": ec2,
        "cloudwatch": metrics,
        "cloudwatch_look_back": look_back,
        "cloudwatch_read_baseline": metrics.limit(0),
        "sampled_since": spark.createDataFrame(
            [], "account string, region string, volume_id string, sampled_since timestamp"
        ),
        "volume_samples": of_hour,
        "last_day_samples": app.samples(look_back, "volume_id", [m.column for m in app.LOOK_BACK_METRICS]).cache(),
        "instance_samples": app.samples(metrics, "instance_id", of_instance).cache(),
    }


def _volume_row(fleet: Fleet, case: Case) -> dict[str, Any]:
    volume = fleet.world.volumes[case.resource_name]
    is_attached = volume.detached_at is None or volume.detached_at > case.hour + HOUR
    attachment = {
        "instance_id": Case(str(volume.instance_id), case.hour).name,
        "device": volume.device,
        "state": "attached",
        "attached_at": volume.created_at + case.shift,
    }
    return {
        "account": ACCOUNT,
        "region": REGION,
        "volume_id": case.name,
        "volume_type": volume.volume_type,
        "size_gib": volume.size_gib,
        "iops": volume.iops or (3000 if volume.volume_type == "gp3" else None),
        "throughput_mib_s": (volume.throughput_mib_s or 125) if volume.volume_type == "gp3" else None,
        "state": "in-use" if is_attached else "available",
        "multi_attach": False,
        "created_at": volume.created_at + case.shift,
        "attachments": [attachment] if is_attached else [],
        "tags": {},
        "observed_at": EVALUATED + HOUR,
        "resource": f"{ACCOUNT}/{REGION} volumes",
        "gap": None,
    }


def _instance_row(fleet: Fleet, case: Case) -> dict[str, Any]:
    instance = fleet.world.instances[case.resource_name]
    kind = INSTANCE_TYPES[instance.instance_type]
    return {
        "account": ACCOUNT,
        "region": REGION,
        "instance_id": case.name,
        "instance_type": instance.instance_type,
        "state": "running",
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
        "resource": f"{ACCOUNT}/{REGION} instances",
        "gap": None,
    }


def _read(world: World, namespace: str, name: str, resource_name: str, start: datetime, minutes: int) -> np.ndarray:
    dimension = "VolumeId" if namespace == "AWS/EBS" else "InstanceId"
    found = world.read(
        ACCOUNT, REGION, Metric(namespace, name, frozenset({(dimension, resource_name)})),
        int(start.timestamp() // 60), minutes,
    )  # fmt: skip
    return np.full(minutes, np.nan) if found is None else np.asarray(found[1], dtype=float)


def _add_volume(world: World, case: Case, hour: Points, day: Points) -> None:
    start = case.hour - app.OVERLAP
    minutes = int((HOUR + app.OVERLAP) / MINUTE)
    metrics = {}
    for metric in app.VOLUME_METRICS:
        values = _read(world, "AWS/EBS", metric.name, case.resource_name, start, minutes)
        if metric.name == "BurstBalance":
            values = np.round(values)
            values[-LATE_BALANCE:] = np.nan
        metrics[metric.column] = values
        hour.add(case.name, metric.column, start + case.shift, 60, values)
    # Candidates for a read of the last day; the app selects among them.
    checks = ("iops_exceeded", "throughput_exceeded", "stalled")
    is_held = any(np.nanmax(metrics[name], initial=0) > 0 for name in checks)
    is_low = np.nanmin(metrics["burst_balance_percent"], initial=100) <= LOW_PERCENT
    if is_held or is_low or np.nanmax(metrics["queue_length"], initial=0) >= WAITING:
        _add_last_day(world, case, day)


def _add_last_day(world: World, case: Case, day: Points) -> None:
    start, period = case.hour + HOUR - app.LOOK_BACK, app.LOOK_BACK_PERIOD_SECONDS
    for metric in app.LOOK_BACK_METRICS:
        minutes = _read(world, "AWS/EBS", metric.name, case.resource_name, start, int(app.LOOK_BACK / MINUTE))
        values = minutes.reshape(-1, period // 60)
        known = ~np.isnan(values).all(axis=1)
        merged = np.full(len(values), np.nan)
        merge = {"Sum": np.nansum, "Minimum": np.nanmin, "Maximum": np.nanmax}.get(metric.stat, np.nanmean)
        merged[known] = merge(values[known], axis=1)
        if metric.name == "BurstBalance":
            merged = np.round(merged)
        day.add(case.name, metric.column, start + case.shift, period, merged)


def _add_instance(world: World, case: Case, hour: Points) -> None:
    start = case.hour - app.OVERLAP
    for metric in app.INSTANCE_METRICS:
        values = _read(world, "AWS/EC2", metric.name, case.resource_name, start, int((HOUR + app.OVERLAP) / MINUTE))
        hour.add(case.name, metric.column, start + case.shift, 60, values)
