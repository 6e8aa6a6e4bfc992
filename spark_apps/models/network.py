"""Network use of an instance in an hour, against the baseline and maximum bandwidth of its type; AWS does not expose
the network credit balance."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

INSTANCE = ["account", "region", "instance_id"]
NEAR, BEYOND = 0.95, 1.05
"""Shares of a limit: rates between them are at the limit, because headers and rounding count as well."""
LATELY = timedelta(minutes=15)


def with_periods(samples: DataFrame) -> DataFrame:
    """Basic monitoring has one data point per five minutes, at the first of them: by minute, it applies to all five."""
    of_instance = Window.partitionBy(*INSTANCE)
    is_basic = f.bool_and((f.col("period_seconds") == 60) & (f.unix_timestamp("at") % 300 == 0)).over(of_instance)
    return samples.withColumn("period_seconds", f.when(is_basic, 300).otherwise(f.col("period_seconds")))


def network_hours(samples: DataFrame, hour: datetime) -> DataFrame:
    """Rows by instance and direction. `samples`: in_bytes, out_bytes, known_until, and the limits of the type."""
    direction = f.stack(f.lit(2), f.lit("in"), f.col("in_bytes"), f.lit("out"), f.col("out_bytes"))
    keep = [*INSTANCE, "at", "period_seconds", "known_until", "baseline_bytes_per_second", "peak_bytes_per_second"]
    rates = (
        samples.filter(f.col("at") >= f.lit(hour))
        .select(*keep, direction.alias("direction", "bytes"))
        .filter("bytes is not null")
        .withColumn("rate", f.col("bytes") / f.col("period_seconds"))
    )
    rate, baseline, peak = (f.col(c) for c in ("rate", "baseline_bytes_per_second", "peak_bytes_per_second"))
    is_late = f.unix_timestamp("at") >= f.unix_timestamp("known_until") - int(LATELY.total_seconds())
    above, at_baseline = rate > BEYOND * baseline, rate.between(NEAR * baseline, BEYOND * baseline)
    return rates.groupBy(*INSTANCE, "direction").agg(
        (f.sum("period_seconds") / 60).cast("int").alias("minutes_present"),
        (f.sum("bytes") / f.sum("period_seconds")).alias("bytes_per_second_mean"),
        f.percentile("rate", 0.99).alias("bytes_per_second_p99"),
        f.max("rate").alias("bytes_per_second_max"),
        f.avg(f.when(is_late, rate)).alias("bytes_per_second_now"),
        _minutes(above).alias("minutes_above_baseline"),
        _minutes(rate >= NEAR * peak).alias("minutes_at_peak"),
        _minutes(above & is_late).alias("minutes_above_lately"),
        _minutes(at_baseline & is_late).alias("minutes_at_baseline_lately"),
    )


def _minutes(condition: Column) -> Column:
    """Minutes in which a condition is true; null where a limit is not known."""
    return (f.sum(condition.cast("int") * f.col("period_seconds")) / 60).cast("int")
