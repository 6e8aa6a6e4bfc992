"""Hourly rows of instances, and the minutes in which EBS limits of an instance throttled its volumes."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_apps.apps.ebs_volumes.hours import EMPTY_PERCENT, completeness, expected_minutes, minutes, or_none
from spark_apps.apps.ebs_volumes.inventory import INSTANCE


def instance_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.instance_hourly."""
    samples = sources["instance_samples"]
    hours = (
        samples.filter(f.col("at") >= f.lit(hour))
        .groupBy(*INSTANCE)
        .agg(
            _cpu_minutes().alias("minutes_cpu"),
            f.avg("cpu_percent").alias("cpu_mean_percent"),
            f.max("cpu_percent").alias("cpu_max_percent"),
            f.avg("memory_used_percent").alias("memory_used_mean_percent"),
            f.max("memory_used_percent").alias("memory_used_max_percent"),
            f.max("disk_used_percent").alias("disk_used_max_percent"),
            f.min("ebs_io_balance_percent").alias("ebs_io_balance_min_percent"),
            f.min("ebs_byte_balance_percent").alias("ebs_byte_balance_min_percent"),
        )
    )
    limited = (
        instance_limits(samples)
        .filter(f.col("at") >= f.lit(hour))
        .groupBy(*INSTANCE)
        .agg(minutes(f.col("instance_limited")).alias("minutes_ebs_limited"))
    )
    return (
        sources["instances"]
        .select(*INSTANCE, expected_minutes(hour, "launched_at").alias("minutes_expected"))
        .join(completeness(sources["cloudwatch"], "instance_id", "cpu_percent"), INSTANCE, "left")
        .join(hours, INSTANCE, "left")
        .join(limited, INSTANCE, "left")
        .withColumn(
            "minutes_present", f.when(f.col("minutes_cpu").isNotNull(), f.least("minutes_cpu", "minutes_expected"))
        )
        .withColumn("minutes_present", or_none("minutes_present"))
        .drop("is_complete", "minutes_cpu")
    )


def _cpu_minutes() -> Column:
    """Minutes that a CPU data point covers: basic monitoring sends one for five minutes, at the first of them."""
    seconds = f.when(f.col("cpu_percent").isNotNull(), f.col("period_seconds"))
    is_basic = f.bool_and(f.when(seconds == 60, f.unix_timestamp("at") % 300 == 0))
    return (f.sum(seconds) / 60 * f.when(is_basic, 5).otherwise(1)).cast("int")


def instance_limits(samples: DataFrame) -> DataFrame:
    """Whether EBS limits throttled an instance, by minute. A data point of basic monitoring applies until the next one.

    Without limit checks an empty balance is the only sign; with checks, an empty balance may be a load that just fits.
    """
    empty = f.least("ebs_io_balance_percent", "ebs_byte_balance_percent") <= EMPTY_PERCENT
    later = f.lead("at").over(Window.partitionBy(*INSTANCE).orderBy("at"))
    minute = f.expr("interval 1 minute")
    upto = f.least(f.coalesce(later, f.col("at") + minute) - minute, f.col("at") + f.expr("interval 4 minutes"))
    covered = f.when(f.col("period_seconds") == 60, f.sequence("at", f.greatest(upto, "at"), minute))
    limited = f.coalesce(f.greatest("ebs_iops_exceeded", "ebs_throughput_exceeded"), empty.cast("double"))
    return (
        samples.withColumn("instance_limited", limited)
        .filter("instance_limited is not null")
        .withColumn("covered", f.coalesce(covered, f.array("at")))
        .select(*INSTANCE, f.explode("covered").alias("at"), "period_seconds", "instance_limited")
    )
