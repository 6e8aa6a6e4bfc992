"""End-to-end latency of records at source and terminal nodes of Kafka Streams applications.

Kafka Streams measures the time from a record's timestamp until a node has processed it (KIP-613), for source nodes and
terminal nodes: minimum, mean, and maximum of the last minute for each task, NaN without records.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.models.hourly_columns import label
from spark_apps.models.rocksdb_memory import APP

_AGES = ("record_age_min_ms", "record_age_mean_ms", "record_age_max_ms")


def stream_nodes(samples: DataFrame) -> DataFrame:
    """Rows of metrics.stream_node_hourly; a node without records has no row."""
    readings = (
        samples.where(f.col("metric").isin(*_AGES))
        .groupBy(*APP, _subtopology(), label("node").alias("node"), label("task").alias("task"), "at")
        .agg(*(f.max(f.when(f.col("metric") == name, f.col("value"))).alias(name) for name in _AGES))
        .dropna(subset=_AGES)
    )
    nodes = readings.groupBy(*APP, "subtopology", "node").agg(
        f.count("*").cast("int").alias("readings"),
        f.min("record_age_min_ms").alias("age_min_ms"),
        f.avg("record_age_mean_ms").alias("age_mean_ms"),
        f.max("record_age_max_ms").alias("age_max_ms"),
        f.to_json(f.sort_array(f.collect_list(f.round("record_age_mean_ms").cast("bigint")))).alias("ages_ms"),
    )
    topics = (
        samples.where(f.col("metric") == "reads_topic")
        .groupBy(*APP, label("node").alias("node"))
        .agg(f.to_json(f.sort_array(f.collect_set(label("topic")))).alias("topics"))
    )
    holding = samples.where(f.col("metric") == "holds_back").select(
        *APP, _subtopology(), f.lit(True).alias("holds_back")
    )
    return (
        nodes.join(topics, [*APP, "node"], "left")
        .join(holding.distinct(), [*APP, "subtopology"], "left")
        .withColumn("holds_back", f.coalesce("holds_back", f.lit(False)))
    )


def _subtopology() -> Column:
    """The part of a task id before the partition: 1_0, or name__1_0 for a named topology."""
    return f.regexp_replace(label("task"), r"_\d+$", "").alias("subtopology")
