"""Reads a Python data source without Spark's planner processes.

Our sources are ordinary Spark data sources: `spark.read.format("ec2")` works wherever one is registered. But for each
such call Spark 4.1 starts three Python processes (look up, create, plan), 2–4 CPU seconds, and an hour has a dozen
sources. `read_source` plans in the driver, which is Python anyway, and reads in the tasks as Spark would: one task per
partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

BATCH_ROWS = 10_000


def read_source(spark: SparkSession, source: DataSource) -> DataFrame:
    """The rows of a data source, as `spark.read.format(…).load()` gives them."""
    told = source.schema()
    schema = cast(StructType, StructType.fromDDL(told)) if isinstance(told, str) else told
    reader = source.reader(schema)
    partitions = list(reader.partitions())

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from records_to_arrow_batches(reader.read(partitions[number]), BATCH_ROWS, schema, source)

    numbers = spark.range(len(partitions), numPartitions=max(len(partitions), 1))
    return numbers.mapInArrow(read, schema)
