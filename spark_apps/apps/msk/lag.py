"""Lag of consumer groups by CloudWatch, of clusters whose offsets are not read by Kafka's protocol."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.apps.msk.series import LAG, OF_LAG


def lag_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """The columns of metrics.msk_consumer_lag_hourly: a group on a topic, with at least one point."""
    at, value = f.col("at"), f.col("value")
    of_hour = {
        "first": f.min_by(value, at),
        "last": f.max_by(value, at),
        "min": f.min(value),
        "max": f.max(value),
        "seconds": f.sum("period_seconds"),
    }
    metrics = (
        sources["cloudwatch_lag"]
        .filter(at.isNotNull() & (at >= f.lit(hour)))
        .groupBy("resource_id", "metric")
        .agg(*(column.alias(name) for name, column in of_hour.items()))
    )

    def of(metric: str, name: str) -> Column:
        return f.max(f.when(f.col("metric") == metric, f.col(name)))

    minutes = (of("max_offset_lag", "seconds") / 60).cast("int").alias("minutes_present")
    columns = [of(metric, name).alias(f"{metric}_{name}") for metric in LAG for name in of_hour if name != "seconds"]
    id_parts = f.split("resource_id", OF_LAG)
    names = {name: id_parts[i] for i, name in enumerate(("cluster", "group_id", "topic"))}
    return metrics.groupBy("resource_id").agg(minutes, *columns).withColumns(names).drop("resource_id")
