"""An hour of an instance's network against what its type sustains and reaches in a burst; AWS doesn't tell its rest."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

INSTANCE = ["account", "region", "instance_id"]
NEAR, BEYOND = 0.95, 1.05
"""Of a limit: what is between is held by it, as headers and rounding take their part."""
LATELY = timedelta(minutes=15)


def with_periods(samples: DataFrame) -> DataFrame:
    """Basic monitoring sends one point for five minutes, on their first: asked by the minute, it holds all five."""
    of_instance = Window.partitionBy(*INSTANCE)
    is_basic = f.bool_and((f.col("period_seconds") == 60) & (f.unix_timestamp("at") % 300 == 0)).over(of_instance)
    return samples.withColumn("period_seconds", f.when(is_basic, 300).otherwise(f.col("period_seconds")))


def network_hours(samples: DataFrame, hour: datetime) -> DataFrame:
    """Facts by instance and direction. `samples`: in_bytes, out_bytes, known_until, and the limits of the type."""
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
    """Minutes of it; null where a limit isn't known."""
    return (f.sum(condition.cast("int") * f.col("period_seconds")) / 60).cast("int")
