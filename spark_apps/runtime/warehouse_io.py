"""Reads from and writes to the warehouse in Arrow batches over ADBC: tasks run a query, or fill a staging table.

Not a Spark data source: Spark 4.1 starts three Python planners for each, 1–4 CPU seconds per table, and an hour has
dozens. `mapInArrow` does the same work in the tasks alone. The address is part of the function, so no plan shows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.base.config import WAREHOUSE_ENV
from streamwarden.base.warehouse import with_session_options

from spark_apps.runtime.executors import address_for_tasks, address_of_warehouse
from spark_apps.runtime.kept import in_one_task, leaf
from spark_apps.runtime.schemas import struct_of


def _connected(carried: str | None) -> adbc.Connection:
    return adbc.connect(with_session_options(address_of_warehouse(carried)))


def read_query(spark: SparkSession, query: str, schema: str | StructType) -> DataFrame:
    """Rows of a warehouse query. Its columns must have the order of `schema`, and types that can be cast to it."""
    struct = struct_of(schema)
    carried = address_for_tasks(spark, os.environ[WAREHOUSE_ENV])

    def read(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = to_arrow_schema(struct)
        with _connected(carried) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                yield from pa.Table.from_batches([batch]).rename_columns(wanted.names).cast(wanted).to_batches()

    return leaf(spark.range(1, numPartitions=1).mapInArrow(read, struct))


def query_in_task(query: str, values: tuple[str, ...], carried: str | None) -> pa.Table:
    """In a task: rows of a warehouse query with these values for $1, $2, …; `carried` comes from
    `address_for_tasks`."""
    with _connected(carried) as connection, connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetch_arrow_table()


def fill_staging(frame: DataFrame, url: str, relation: str) -> int:
    """Appends the frame to `staging.<relation>`; returns the number of rows.

    Each task runs one COPY in one transaction: a task that dies leaves no rows, and one that is retried after it had
    finished has written its rows twice.
    """

    carried = address_for_tasks(frame.sparkSession, url)

    def write(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches, rows = iter(given), 0

        def counted(batch: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
            nonlocal rows
            while batch is not None:
                rows += batch.num_rows
                yield batch
                batch = next(batches, None)

        if first := next(batches, None):
            reader = pa.RecordBatchReader.from_batches(first.schema, counted(first))
            with _connected(carried) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest(relation, reader, mode="append", db_schema_name="staging")
                connection.commit()
        yield pa.RecordBatch.from_pydict({"rows": [rows]}, schema=pa.schema([("rows", pa.int64())]))

    return sum(task["rows"] for task in in_one_task(frame).mapInArrow(write, "rows long").collect())  # one row per task
