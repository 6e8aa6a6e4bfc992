"""App confluent: bytes and records of topics of Confluent Cloud, by its Metrics API, in the table of topics.

Brokers of Confluent Cloud are not exposed: its rows have 0 brokers, which tells them from those of JMX.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config

from spark_apps.sources.confluent_metrics import COUNTERS, ConfluentMetrics
from spark_apps.sources.kafka_client import read_clusters

_NOT_EXPOSED = (
    "log_bytes",
    "failed_produces",
    "bytes_rejected",
    "remote_fetch_bytes",
    "fetch_requests",
    "produce_requests",
)


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Rows of the API. Nothing, where the config names no cluster."""
    if not config.confluent:
        return {}
    clusters = [entry.cluster for entry in config.confluent]
    return {"confluent_metrics": read_clusters(spark, ConfluentMetrics, clusters, hour=hour.isoformat())}


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """One row per topic."""
    if not sources:
        return {}
    rows = sources["confluent_metrics"].where("topic is not null")
    return {
        "metrics.topic_hourly": rows.select(
            "cluster",
            "topic",
            f.lit(0).alias("brokers"),
            "covered_seconds",
            "counted_from",
            "counted_to",
            *COUNTERS,
            *(f.lit(None).cast("double").alias(name) for name in _NOT_EXPOSED),
        )
    }
