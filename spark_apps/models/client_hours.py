"""Hourly rows of Kafka clients in applications' JVMs, from their own metrics, and of their topics."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as f

from spark_apps.models.hourly_columns import label
from spark_apps.models.rocksdb_memory import APP

CLIENT = (*APP, "kind", "client_id")
TOPICS_OF_A_CLIENT = 100
"""Topics kept per client: a pattern subscription may match thousands."""
_COUNTERS = {
    "record_errors": "producer_record_errors_total",
    "buffer_exhausted": "producer_buffer_exhausted_total",
    "requests": "producer_requests_total",
    "fetches": "consumer_fetches_total",
    "network_in_bytes": "consumer_network_in_bytes_total",
}
_MEANS = {
    "batch_mean_bytes": "producer_batch_mean_bytes",
    "queue_mean_ms": "producer_queue_mean_ms",
    "compression_ratio": "producer_compression_ratio",
}
_LARGEST = {"queue_max_ms": "producer_queue_max_ms", "poll_gap_max_ms": "consumer_poll_gap_max_ms"}


def client_hours(samples: DataFrame, gained: DataFrame) -> DataFrame:
    """Rows of metrics.client_hourly."""
    of_topics = (
        _topics(samples, gained)
        .groupBy(*CLIENT)
        .agg(f.sum("records").alias("records_of_topics"), f.sum("bytes").alias("bytes_of_topics"))
    )
    counts = _by_client(gained, "counted", "covered_seconds", keys=("cluster", "endpoint")).agg(
        f.max("covered_seconds").alias("covered_seconds"),
        f.coalesce(_one("producer_records_total", "counted"), _one("consumer_records_total", "counted")).alias(
            "records"
        ),
        _one("consumer_bytes_total", "counted").alias("bytes"),
        *(_one(metric, "counted").alias(name) for name, metric in _COUNTERS.items()),
    )
    gauges = _by_client(samples, "value", keys=APP).agg(
        *(f.avg(_where(metric, "value")).alias(name) for name, metric in _MEANS.items()),
        f.avg(f.when(f.col("metric").endswith("_throttle_mean_ms"), f.col("value"))).alias("throttle_mean_ms"),
        *(_one(metric, "value").alias(name) for name, metric in _LARGEST.items()),
    )
    # Micrometer has no metric of a client where it has one per topic. Producers report bytes only by topic.
    return (
        gauges.join(counts, ["cluster", "endpoint", "kind", "client_id"], "left")
        .join(of_topics, [*CLIENT], "left")
        .withColumn("records", f.coalesce("records", "records_of_topics"))
        .withColumn("bytes", f.coalesce("bytes", "bytes_of_topics"))
        .drop("records_of_topics", "bytes_of_topics")
    )


def client_topic_hours(samples: DataFrame, gained: DataFrame) -> DataFrame:
    """Rows of metrics.client_topic_hourly: topics with records or record errors, those with the most bytes."""
    most_first = Window.partitionBy(*CLIENT).orderBy(f.desc_nulls_last("bytes"), f.desc("records"), "topic")
    return (
        _topics(samples, gained)
        .where("records > 0 or record_errors > 0")
        .withColumn("place", f.row_number().over(most_first))
        .where(f.col("place") <= TOPICS_OF_A_CLIENT)
        .drop("place")
    )


def _topics(samples: DataFrame, gained: DataFrame) -> DataFrame:
    """Records, bytes, and record errors of each client by topic."""
    apps = samples.select(*APP).distinct()
    found = (
        gained.where(f.col("metric").rlike("^(producer|consumer)_topic_") & f.col("counted").isNotNull())
        .groupBy("cluster", "endpoint", _kind(), label("client").alias("client_id"), label("topic").alias("topic"))
        .agg(
            f.max("covered_seconds").alias("covered_seconds"),
            f.max(f.when(f.col("metric").endswith("_topic_records_total"), f.col("counted"))).alias("records"),
            f.max(f.when(f.col("metric").endswith("_topic_bytes_total"), f.col("counted"))).alias("bytes"),
            _one("producer_topic_record_errors_total", "counted").alias("record_errors"),
        )
        .where(f.col("records").isNotNull())
    )
    # From Kafka 4.1 to 4.x, consumers report a topic with dots in its name twice: as it is, and with _ for dots.
    same_name = Window.partitionBy("cluster", "endpoint", "kind", "client_id", f.regexp_replace("topic", r"\.", "_"))
    is_dotted = f.col("topic").contains(".")
    return (
        found.withColumn("has_dotted", f.max(is_dotted).over(same_name))
        .where(is_dotted | ~f.col("has_dotted") | (f.col("kind") == "producer"))
        .drop("has_dotted")
        .join(apps, ["cluster", "endpoint"])
    )


def _by_client(rows: DataFrame, *columns: str, keys: tuple[str, ...]) -> GroupedData:
    of_clients = rows.where(
        f.col("metric").rlike("^(producer|consumer)_")
        & ~f.col("metric").contains("_topic_")
        & label("client").isNotNull()
    )
    return of_clients.select(*keys, _kind(), label("client").alias("client_id"), "metric", *columns).groupBy(
        *keys, "kind", "client_id"
    )


def _kind() -> Column:
    return f.split_part("metric", f.lit("_"), f.lit(1)).alias("kind")


def _where(metric: str, column: str) -> Column:
    return f.when(f.col("metric") == metric, f.col(column))


def _one(metric: str, column: str) -> Column:
    return f.max(_where(metric, column))
