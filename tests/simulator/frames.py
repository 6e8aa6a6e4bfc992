"""Frames in the layout of sources, from rows that may omit columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.schemas import struct_of
from spark_apps.sources.kafka_commits import KafkaCommits

NO_KNOWN_ENDS = "cluster string, topic string, partition int, log_end_offset bigint, known_at timestamp"
KNOWN_COMMITS = (
    "cluster string, group_id string, topic string, partition int, known_offset bigint, known_committed_at timestamp"
)
KNOWN_BROKERS = "cluster string, endpoint string, known_broker_id int"
EARLIER_COUNTERS = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
SAMPLED_SINCE = "account string, region string, volume_id string, sampled_since timestamp"
MEMBERS = KafkaCommits({}).schema().split("members ")[1].split(", records_read")[0]
"""The type of the members in a group metadata record; simulated commits come without such records."""
NO_GROUPS_UNLISTED = "cluster string, group_id string, observed_at timestamp, resource string, gap string"


def rows_frame(spark: SparkSession, rows: list[dict[str, Any]], schema: str) -> DataFrame:
    """A frame of this schema."""
    struct = struct_of(schema)
    return driver_rows(spark, [tuple(row.get(name) for name in struct.names) for row in rows], struct)


def commits_read(spark: SparkSession, clusters: Iterable[str]) -> DataFrame:
    """A row for each cluster: its commits were read without a gap."""
    return driver_rows(
        spark, [(cluster, "read", 0) for cluster in clusters], "cluster string, kind string, log_partition int"
    )


def null_filled(spark: SparkSession, file: Path, rows: Iterable[dict[str, Any]], **rest: str) -> DataFrame:
    """A frame of plain columns, by way of a file; `rest` are columns that are null throughout, with their types."""
    pd.DataFrame(list(rows)).to_parquet(file, coerce_timestamps="us", allow_truncated_timestamps=True)
    nulls = {column: f.lit(None).cast(kind) for column, kind in ({"gap": "string"} | rest).items()}
    return spark.read.parquet(str(file)).withColumns(nulls)
