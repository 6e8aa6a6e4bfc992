"""Minutes of an hour: how many there should be, how many CloudWatch told, how many a condition held."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

EMPTY_PERCENT = 1.0
NEAR_LIMIT = 0.95


def answered(metrics: DataFrame, id_column: str, metric: str) -> DataFrame:
    """Resources of which CloudWatch said all it has of a metric, be it nothing."""
    return (
        metrics.filter(f.col("metric") == metric)
        .groupBy("account", "region", f.col("resource_id").alias(id_column))
        .agg((f.count("gap") == 0).alias("answered"))
    )


def expected_minutes(hour: datetime, since: str) -> Column:
    start = f.greatest(f.lit(hour), f.coalesce(since, f.lit(hour)))
    minutes = f.floor((f.unix_timestamp("known_until") - f.unix_timestamp(start)) / 60)
    return f.greatest(f.lit(0), minutes).cast("int")


def minutes(share: Column) -> Column:
    """Minutes of a condition that is 0, 1 or a share in every period."""
    return f.round(f.sum(share.cast("double") * f.col("period_seconds") / 60)).cast("int")


def or_none(column: str) -> Column:
    """A count of minutes: 0 where CloudWatch answered and had none, null where it didn't answer."""
    return f.coalesce(column, f.when(f.col("answered"), 0)).alias(column)
