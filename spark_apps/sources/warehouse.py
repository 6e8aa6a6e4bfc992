"""The warehouse as a Spark data source `warehouse`: reads a query, or fills one staging table from parallel tasks.

Reading: `read_query(spark, "select …", schema)` (one partition).
Writing: `df.write.format("warehouse").mode("append")` with the options `url` and `staging`; `spark_apps.load` makes the
table and publishes it. Both speak Arrow over ADBC. Spark redacts the option `url` wherever it shows options.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.config import WAREHOUSE_ENV


class WarehouseStaging(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return "warehouse"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _QueryReader(self.options["url"], self.options["query"], schema)

    def writer(self, schema: StructType, overwrite: bool) -> _StagingWriter:  # type: ignore[override]
        return _StagingWriter(self.options["url"], self.options["staging"])


def read_query(spark: SparkSession, query: str, schema: str | StructType) -> DataFrame:
    """Rows of a warehouse query. Its columns must come in the order of `schema` and with types that cast to it."""
    reader = spark.read.format("warehouse").schema(schema).option("url", os.environ[WAREHOUSE_ENV])
    return reader.option("query", query).load()


class _QueryReader(DataSourceReader):
    def __init__(self, url: str, query: str, schema: StructType) -> None:
        self.url = url
        self.query = query
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        wanted = to_arrow_schema(self.schema)
        with adbc.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("set timezone to 'UTC'")
            cursor.execute(self.query)
            for batch in cursor.fetch_record_batch():
                yield from pa.Table.from_batches([batch]).rename_columns(wanted.names).cast(wanted).to_batches()


@dataclass
class RowsStaged(WriterCommitMessage):
    """Rows that one task has put into the staging table."""

    rows: int


class _StagingWriter(DataSourceArrowWriter):
    def __init__(self, url: str, staging: str) -> None:
        self.url = url
        self.staging = staging

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsStaged:
        """One COPY per task, in one transaction: a task that dies leaves nothing behind."""
        first = next(iterator, None)
        if first is None:
            return RowsStaged(0)
        rows = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            batch: pa.RecordBatch | None = first
            while batch is not None:
                rows += batch.num_rows
                yield batch
                batch = next(iterator, None)

        reader = pa.RecordBatchReader.from_batches(first.schema, counted())
        with adbc.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(self.staging, reader, mode="append", db_schema_name="staging")
            connection.commit()
        return RowsStaged(rows)
