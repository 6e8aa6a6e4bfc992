"""Reads a source of a Kafka cluster in the test's process, without Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import DataType, DoubleType, IntegerType, StringType, StructField, StructType, TimestampType

from spark_apps.sources.kafka_client import ClusterPartition, ClusterSource

_TYPES: dict[str, DataType] = {
    "string": StringType(), "int": IntegerType(), "double": DoubleType(), "timestamp": TimestampType(),
}  # fmt: skip


def rows_of(source: ClusterSource, cluster: str) -> list[dict[str, Any]]:
    """All rows of the source for one cluster, gaps included. Its columns are strings, numbers, and timestamps."""
    fields = (column.split() for column in source.schema().split(","))
    reader = source.reader(StructType([StructField(name, _TYPES[kind]) for name, kind in fields]))
    return [row for batch in reader.read(ClusterPartition(cluster)) for row in batch.to_pylist()]  # type: ignore[union-attr]
