"""Exact increases of counters between readings, across restarts.

The increase of an hour is from the last reading before the run to the last reading of the run, so that consecutive
hours join without a gap. `counted_from` and `counted_to` give the covered time span.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from spark_apps.runtime.warehouse_io import read_query

SERIES = ("cluster", "endpoint", "metric", "labels")
LOOK_BACK = timedelta(hours=3)
"""Maximum age of an earlier reading: across a longer pause between runs, a rate is not representative of the hour."""


def earlier_counters(spark: SparkSession, readings: str, hour: datetime) -> DataFrame:
    """The newest reading of each counter in earlier hours, from a sample table (or a query with its columns)."""
    query = f"""
        select distinct on (cluster, endpoint, metric, labels) cluster, endpoint, metric, labels, at, value
        from {readings} as reading
        where hour >= '{(hour - LOOK_BACK).isoformat()}' and hour < '{hour.isoformat()}'
          and kind = 'counter' and value is not null
        order by cluster, endpoint, metric, labels, at desc"""  # noqa: S608 our own table, and a time
    return read_query(
        spark, query, "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
    )


def counts(samples: DataFrame, earlier: DataFrame, hour: datetime) -> DataFrame:
    """Increase of each counter: the series, `counted`, `counted_from`, `counted_to`, `covered_seconds`.

    Null where there is only a single reading, or none after the start that the process reports: a span of no length has
    no rate.
    """
    run = (
        samples.where((f.col("kind") == "counter") & f.col("value").isNotNull())
        .groupBy(*SERIES)
        .agg(
            f.min("at").alias("first_at"),
            f.min_by("value", "at").alias("first_value"),
            f.max("at").alias("last_at"),
            f.max_by("value", "at").alias("last_value"),
            f.max_by("process_started_at", "at").alias("started_at"),
        )
    )
    before = earlier.select(*SERIES, f.col("at").alias("earlier_at"), f.col("value").alias("earlier_value"))
    # A new counter of a metric with older counters (a topic's first bytes) started after their last reading.
    siblings = Window.partitionBy("cluster", "endpoint", "metric")
    known = run.join(before, [*SERIES], "left").select(
        "*",
        f.max("earlier_at").over(siblings).alias("siblings_earlier_at"),
        f.min("first_at").over(siblings).alias("siblings_first_at"),
    )
    based = known.select(*SERIES, "last_at", "last_value", _base(hour).alias("base")).withColumn(
        "base", f.when(f.col("base.at") < f.col("last_at"), f.col("base"))
    )
    return based.select(
        *SERIES,
        (f.col("last_value") - f.col("base.value")).alias("counted"),
        f.col("base.at").alias("counted_from"),
        f.when(f.col("base").isNotNull(), f.col("last_at")).alias("counted_to"),
        (f.col("last_at").cast("double") - f.col("base.at").cast("double")).alias("covered_seconds"),
    )


def _base(hour: datetime) -> Column:
    """Start of the covered time span, and the counter's value then."""

    def point(at: Column, value: Column) -> Column:
        return f.struct(at.alias("at"), value.alias("value"))

    started_at, last_value, zero = f.col("started_at"), f.col("last_value"), f.lit(0.0)

    def since(at: str, value: Column) -> Column:
        """From a reading; from the JVM's start if that is later; from 0 if the counter decreased."""
        restarted = started_at > f.col(at)
        fallen = last_value < value
        return f.when(restarted, point(started_at, zero)).otherwise(
            point(f.col(at), f.when(fallen, zero).otherwise(value))
        )

    return (
        f.when(f.col("earlier_at").isNotNull(), since("earlier_at", f.col("earlier_value")))
        .when(f.col("siblings_earlier_at").isNotNull(), since("siblings_earlier_at", zero))
        .when(started_at >= f.lit(hour), point(started_at, zero))
        .when(f.col("first_at") > f.col("siblings_first_at"), since("siblings_first_at", zero))
        .when(f.col("first_at") < f.col("last_at"), since("first_at", f.col("first_value")))
    )
