"""Reads a Python data source without Spark's planner processes.

Our sources are Spark data sources: once registered (see `spark_apps.sources.register`), `spark.read.format("jmx")`
reads them too. But for each such call Spark 4.1 starts three Python processes (look up, create, plan), 2–4 CPU
seconds, and an hour has a dozen sources. `read_source` plans in the driver, which is Python anyway, and reads in the
tasks as Spark would: one task per partition. Readers yield Arrow batches of the source's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

from spark_apps.runtime.kept import leaf
from spark_apps.runtime.schemas import struct_of


def read_source(spark: SparkSession, source: DataSource) -> DataFrame:
    """The rows of a data source, as `spark.read.format(…).load()` returns them."""
    schema = struct_of(source.schema())
    reader = source.reader(schema)
    partitions = list(reader.partitions())

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Reads the partitions of one task."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from cast(Iterator[pa.RecordBatch], reader.read(partitions[number]))

    numbers = spark.range(len(partitions), numPartitions=max(len(partitions), 1))
    return leaf(numbers.mapInArrow(read, schema), len(partitions))
