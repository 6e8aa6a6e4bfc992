"""Minutes of an hour: expected minutes, minutes with data from CloudWatch, and minutes in which a condition was
true."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

EMPTY_PERCENT = 1.0
NEAR_LIMIT = 0.95


def completeness(metrics: DataFrame, id_column: str, metric: str) -> DataFrame:
    """Resources for which CloudWatch returned a metric completely, even if it had no data."""
    return (
        metrics.filter(f.col("metric") == metric)
        .groupBy("account", "region", f.col("resource_id").alias(id_column))
        .agg((f.count("gap") == 0).alias("is_complete"))
    )


def expected_minutes(hour: datetime, since: str) -> Column:
    """Minutes between `since` (a column, null: the start of the hour) and `known_until`, at least 0."""
    start = f.greatest(f.lit(hour), f.coalesce(since, f.lit(hour)))
    minutes = f.floor((f.unix_timestamp("known_until") - f.unix_timestamp(start)) / 60)
    return f.greatest(f.lit(0), minutes).cast("int")


def minutes(share: Column) -> Column:
    """Minutes in which a condition was true; `share` is 0, 1, or a share of each period."""
    return f.round(f.sum(share.cast("double") * f.col("period_seconds") / 60)).cast("int")


def or_none(column: str) -> Column:
    """A number of minutes: 0 where CloudWatch responded without data, null where it did not respond."""
    return f.coalesce(column, f.when(f.col("is_complete"), 0)).alias(column)
