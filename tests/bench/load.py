"""The way into the warehouse: an hour of a million rows replaced through Spark, and by bare ADBC, in the same run."""

from __future__ import annotations

import os
import time
import uuid
from datetime import UTC, datetime

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.catalog import SparkApp
from streamwarden.base.config import WAREHOUSE_ENV
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.store.migrate import migrate

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.load import replace_hour
from spark_apps.runtime.session import start_session
from tests.bench.metric import Metric

ROWS = 1_000_000
HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
TABLE = "metrics.broker_sample"


def measure() -> list[Metric]:
    """Seconds of both, and their ratio; the hour's first million comes while nothing is warm."""
    url = embedded_url(PROJECT_ROOT / "var" / "bench-postgres", f"b{uuid.uuid4().hex[:8]}")
    os.environ[WAREHOUSE_ENV] = url
    warehouse = engine(url)
    migrate(warehouse)
    spark = start_session("bench", master="local[2]")
    try:
        rows = _rows(spark).persist()
        rows.count()
        cold = _replace(spark, rows, url)
        bare = _bare(rows, url)
        ours = min(_replace(spark, rows, url) for _ in range(2))
    finally:
        spark.stop()
        warehouse.dispose()
    return [
        Metric("1 M rows in place of 1 M by bare ADBC, in an indexed table", bare, "s"),
        Metric("1 M rows through staging into an empty hour, cold", cold, "s"),
        Metric("1 M rows through staging in place of an hour's 1 M", ours, "s"),
        Metric("the hour against bare ADBC", ours / bare, "times", 3.0),
    ]


def _rows(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS, numPartitions=4).select(
        f.lit("c").alias("cluster"),
        f.concat(f.lit("http://broker-"), f.col("id") % 30).alias("endpoint"),
        f.lit("bytes_in").alias("metric"),
        f.concat(f.lit('{"topic": "t'), f.col("id"), f.lit('"}')).alias("labels"),
        f.lit(HOUR).alias("at"),
        f.lit("counter").alias("kind"),
        f.col("id").cast("double").alias("value"),
        f.lit(HOUR).alias("process_started_at"),
    )


def _bare(rows: DataFrame, url: str) -> float:
    """Once into an empty table, then, and this is what counts, once more in its place."""
    table = rows.toArrow().append_column("hour", pa.array([HOUR] * ROWS, pa.timestamp("us", "UTC")))
    with engine(url).begin() as connection:
        connection.exec_driver_sql(f"create table public.bare (like {TABLE} including all)")
    for _ in range(2):
        started = time.monotonic()
        with adbc.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("delete from public.bare")
            cursor.adbc_ingest("bare", table, mode="append", db_schema_name="public")
            connection.commit()
    return time.monotonic() - started


def _replace(spark: SparkSession, rows: DataFrame, url: str) -> float:
    coverage = driver_rows(
        spark,
        [("bench", "all", "complete", None)],
        "source string, resource_name string, status string, message string",
    )
    started = time.monotonic()
    replace_hour(engine(url), SparkApp("bench", "", (), (TABLE,)), HOUR, {TABLE: rows}, coverage, datetime.now(UTC))
    return time.monotonic() - started
