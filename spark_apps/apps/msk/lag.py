"""Lag of consumer groups by CloudWatch, of clusters whose offsets are not read by Kafka's protocol."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.apps.msk.series import LAG, OF_LAG


def lag_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """The columns of metrics.msk_consumer_lag_hourly: a group on a topic, with at least one point."""
    parts = f.split("resource_id", OF_LAG)
    points = (
        sources["cloudwatch_lag"]
        .filter(f.col("at").isNotNull() & (f.col("at") >= f.lit(hour)))
        .withColumns({"cluster": parts[0], "group_id": parts[1], "topic": parts[2]})
    )

    def of(metric: str, pick: Column) -> Column:
        return f.when(f.col("metric") == metric, pick)

    value, at = f.col("value"), f.col("at")
    columns = []
    for metric in LAG:
        columns += [
            f.min_by(of(metric, value), of(metric, at)).alias(f"{metric}_first"),
            f.max_by(of(metric, value), of(metric, at)).alias(f"{metric}_last"),
            f.min(of(metric, value)).alias(f"{metric}_min"),
            f.max(of(metric, value)).alias(f"{metric}_max"),
        ]
    minutes = f.sum(of("max_offset_lag", f.col("period_seconds"))) / 60
    return points.groupBy("cluster", "group_id", "topic").agg(minutes.cast("int").alias("minutes_present"), *columns)
