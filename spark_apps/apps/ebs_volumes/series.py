"""CloudWatch queries, their results as samples, and their cost.

A metric is requested only where it can exist, because each request costs money.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config

from spark_apps.apps.ebs_volumes.inventory import VOLUME
from spark_apps.models.nodes import NO_DISK_FILE_SYSTEMS
from spark_apps.runtime.warehouse_io import read_query
from spark_apps.sources.targets import jvms_of

OVERLAP = timedelta(minutes=15)
"""Read again before the hour: late data points arrive, and a new hour gets a history."""
READ_BASELINE = timedelta(days=28)
LOOK_BACK = timedelta(hours=24)
LOOK_BACK_PERIOD_SECONDS = 300


class Metric(NamedTuple):
    """A CloudWatch metric and the column for it. Requested only where it can exist: each request costs money."""

    column: str
    name: str
    stat: str
    exists: str = "true"


# Where the baseline is as high as the burst, no credits are used and CloudWatch has no BurstBalance.
_HAS_BUCKET = (
    "volume_type = 'sc1' or volume_type = 'gp2' and size_gib < 1000 or volume_type = 'st1' and size_gib < 12800"
)
_CHECKED = "volume_type <> 'standard' and not coalesce(multi_attach, false) and coalesce(nitro, true)"
# Checks are averaged: 0 or 1 for a minute, the share of minutes for a longer period.
VOLUME_METRICS = (
    Metric("read_ops", "VolumeReadOps", "Sum"),
    Metric("write_ops", "VolumeWriteOps", "Sum"),
    Metric("read_bytes", "VolumeReadBytes", "Sum"),
    Metric("write_bytes", "VolumeWriteBytes", "Sum"),
    Metric("read_seconds", "VolumeTotalReadTime", "Sum"),
    Metric("write_seconds", "VolumeTotalWriteTime", "Sum"),
    Metric("idle_seconds", "VolumeIdleTime", "Sum"),
    Metric("queue_length", "VolumeQueueLength", "Average"),
    # The minimum, because an average over a longer period hides an empty bucket; a minute has one value.
    Metric("burst_balance_percent", "BurstBalance", "Minimum", _HAS_BUCKET),
    Metric("iops_exceeded", "VolumeIOPSExceededCheck", "Average", _CHECKED),
    Metric("throughput_exceeded", "VolumeThroughputExceededCheck", "Average", _CHECKED),
    Metric("stalled", "VolumeStalledIOCheck", "Average", _CHECKED),
)
_LOOKED_BACK = {
    *("read_ops", "write_ops", "read_bytes", "write_bytes", "idle_seconds"),
    *("queue_length", "burst_balance_percent", "iops_exceeded", "throughput_exceeded", "stalled"),
}
# Idle time shows micro-bursts where there are no checks.
LOOK_BACK_METRICS = tuple(
    metric._replace(exists=f"not ({_CHECKED})") if metric.column == "idle_seconds" else metric
    for metric in VOLUME_METRICS
    if metric.column in _LOOKED_BACK
)
INSTANCE_METRICS = (
    Metric("cpu_percent", "CPUUtilization", "Average"),
    Metric("ebs_io_balance_percent", "EBSIOBalance%", "Minimum", "coalesce(nitro, true)"),
    Metric("ebs_byte_balance_percent", "EBSByteBalance%", "Minimum", "coalesce(nitro, true)"),
    Metric("ebs_iops_exceeded", "InstanceEBSIOPSExceededCheck", "Average", "coalesce(nitro, true)"),
    Metric("ebs_throughput_exceeded", "InstanceEBSThroughputExceededCheck", "Average", "coalesce(nitro, true)"),
)
AGENT_METRICS = {"mem_used_percent": "memory_used_percent", "disk_used_percent": "disk_used_percent"}


def series_of(
    resources: DataFrame, id_column: str, namespace: str, dimension: str, metrics: Sequence[Metric]
) -> DataFrame:
    """CloudWatch series of these resources, one row per resource and metric that can exist."""
    wanted = f.array_compact(
        f.array(
            *(
                f.when(
                    f.expr(m.exists),
                    f.struct(f.lit(m.column).alias("metric"), f.lit(m.name).alias("name"), f.lit(m.stat).alias("stat")),
                )
                for m in metrics
            )
        )
    )
    return resources.select(
        "account", "region", f.col(id_column).alias("resource_id"), f.explode(wanted).alias("m")
    ).select(
        "account",
        "region",
        "resource_id",
        "m.metric",
        f.lit(namespace).alias("namespace"),
        "m.name",
        f.create_map(f.lit(dimension), "resource_id").alias("dimensions"),
        "m.stat",
    )


def agent_series(listed: DataFrame, instances: DataFrame) -> DataFrame:
    """The CloudWatch agent's series of our instances: their dimensions are known only from ListMetrics."""
    columns = f.create_map(*(f.lit(part) for pair in AGENT_METRICS.items() for part in pair))
    return (
        listed.withColumn("resource_id", f.col("dimensions").getItem("InstanceId"))
        .filter(~f.coalesce(f.col("dimensions").getItem("fstype"), f.lit("")).isin(*NO_DISK_FILE_SYSTEMS))
        .join(
            instances.select("account", "region", f.col("instance_id").alias("resource_id")),
            ["account", "region", "resource_id"],
            "left_semi",
        )
        .select(
            "account",
            "region",
            "resource_id",
            columns[f.col("name")].alias("metric"),
            "namespace",
            "name",
            "dimensions",
            f.lit("Average").alias("stat"),
        )
    )


def broker_volumes(volumes: DataFrame, config: Config) -> DataFrame:
    """Volumes attached to instances of brokers in the config."""
    brokers = [e.instance_id for e in jvms_of(config).endpoints if e.role == "broker" and e.instance_id]
    return volumes.filter(f.col("instance_id").isin(brokers))


def samples(metrics: DataFrame, id_column: str, columns: Sequence[str]) -> DataFrame:
    """One row per resource and time. Several series of a metric (file systems) become their maximum."""
    return (
        metrics.filter(f.col("at").isNotNull() & f.col("metric").isin(*columns))
        .groupBy("account", "region", f.col("resource_id").alias(id_column), "at")
        .agg(
            f.max("period_seconds").alias("period_seconds"),
            *(f.max(f.when(f.col("metric") == column, f.col("value"))).alias(column) for column in columns),
        )
    )


def sampled_since(spark: SparkSession, start: datetime, end: datetime) -> DataFrame:
    """First sample in [start, end) that the warehouse has of each volume."""
    between = f"at >= '{start.isoformat()}' and at < '{end.isoformat()}'"
    query = f"select {', '.join(VOLUME)}, min(at) from metrics.volume_sample where {between} group by 1, 2, 3"  # noqa: S608
    return read_query(spark, query, "account string, region string, volume_id string, sampled_since timestamp")


def with_last_day(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """The samples, with the last day of throttled volumes where it was not sampled: charts show how throttling
    began."""
    since = f.coalesce("sampled_since", f.lit(hour - OVERLAP))
    before = sources["last_day_samples"].join(sources["sampled_since"], VOLUME, "left")
    before = before.filter(f.unix_timestamp("at") + f.col("period_seconds") <= f.unix_timestamp(since))
    return sources["volume_samples"].unionByName(before.drop("sampled_since"), allowMissingColumns=True)


def cost(
    sources: dict[str, DataFrame],
    names: Sequence[str] = ("cloudwatch", "cloudwatch_read_baseline", "cloudwatch_look_back"),
    app: str = "ebs_volumes",
) -> DataFrame:
    """GetMetricData requests, and the metrics that AWS bills, of an app by account and region."""
    asked = reduce(DataFrame.unionByName, (sources[name] for name in names))
    return (
        asked.filter("calls is not null")
        .groupBy(f.lit(app).alias("app"), "account", "region")
        .agg(f.sum("calls").alias("calls"), f.sum("metrics_requested").alias("metrics_requested"))
    )
