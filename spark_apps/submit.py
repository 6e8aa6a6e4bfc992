"""Entry point of spark-submit: `submit.py APP --hour 2026-11-21T05:00` extracts, transforms, and loads one app.

`submit.py together …` runs all apps that wrote few rows the last time concurrently in one driver. A failed app
prints one line to stderr, gives exit code 1, and does not stop the other apps.

The module can be imported as well: `streamwarden run` calls `run_app` for every app within one session.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce

import sqlalchemy as sa
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.addresses import masked
from streamwarden.base.catalog import APPS, TOGETHER
from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import parse_hour
from streamwarden.base.warehouse import open_warehouse

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.kept import in_one_task, kept
from spark_apps.runtime.load import last_rows, record_failure, replace_hour
from spark_apps.runtime.session import master_for, session_for, start_session

ALONE_FROM_ROWS = 50_000
"""An app that writes at least this many rows an hour gets its own driver, with all of its memory."""
_COVERAGE_SCHEMA = "source string, resource_name string, status string, message string"


def run_app(spark: SparkSession, name: str, hour: datetime, config: Config) -> dict[str, int]:
    """Runs one app for one hour; returns the number of rows by table.

    Several apps may run at the same time in threads of one session.

    Raises:
        Exception: any failure of a source, Spark, or the warehouse, after it was recorded in detect.load.
    """
    started_at = datetime.now(UTC)
    warehouse = open_warehouse(config)
    try:
        if APPS[name].only_adds and APPS[name].not_configured(config):
            return replace_hour(warehouse, APPS[name], hour, {}, None, started_at)
        spark = session_for(spark, last_rows(warehouse, name))
        module = importlib.import_module(f"spark_apps.apps.{name}")
        # Persisted: a source is queried once, however many tables are computed from it. Not as serialized bytes
        # (MEMORY_AND_DISK): Spark holds each task's share of them until the task ends, although it counts it as freed.
        sources = {source: kept(frame) for source, frame in module.extract(spark, hour, config).items()}
        with ThreadPoolExecutor(1) as reader:
            coverage = kept(coverage_of(spark, sources))
            reading = reader.submit(coverage.count)
            frames = module.transform(sources, hour, config)  # planned while the sources are read
            reading.result()
        # Gaps besides the tables: data that was read but could not be used for any table.
        gaps = {name: frames.pop("gaps")} if "gaps" in frames else {}
        all_coverage = coverage.unionByName(coverage_of(spark, gaps)) if gaps else coverage
        rows = replace_hour(warehouse, APPS[name], hour, frames, all_coverage, started_at)
    except Exception as error:
        with suppress(Exception):  # the warehouse may be the reason: the first error is reported
            record_failure(warehouse, name, hour, one_line(error), started_at)
        raise
    for frame in (*sources.values(), coverage):
        frame.unpersist()
    return rows


def small_apps(warehouse: sa.Engine) -> list[str]:
    """Apps that wrote fewer than `ALONE_FROM_ROWS` rows in their newest hour, or never ran."""
    return [name for name in APPS if last_rows(warehouse, name) < ALONE_FROM_ROWS]


def coverage_of(spark: SparkSession, sources: dict[str, DataFrame]) -> DataFrame:
    """Responses of sources, from the frames with a `gap` column: source, resource_name, status, message.

    `gap` is null for a response, otherwise `<status>: <message>`, with status late, failed, or missing. Rows without
    a `resource` repeat what another row of the same resource says. A resource that failed in part has failed: `missing`
    is known only after a response.
    """
    responses = [
        frame.filter("resource is not null").select(f.lit(source).alias("source"), "resource", "gap")
        for source, frame in sources.items()
        if "gap" in frame.columns
    ]
    if not responses:
        return driver_rows(spark, [], _COVERAGE_SCHEMA)
    # Reduces millions of rows to a few before the sort.
    return (
        in_one_task(reduce(DataFrame.unionByName, responses))
        .distinct()
        .groupBy("source", "resource")
        .agg(f.max(f.struct(f.col("gap").startswith("failed:"), "gap"))["gap"].alias("gap"))
        .select(
            "source",
            f.col("resource").alias("resource_name"),
            f.when(f.col("gap").isNull(), "complete").otherwise(f.substring_index("gap", ":", 1)).alias("status"),
            f.trim(f.expr("substr(gap, instr(gap, ':') + 1)")).alias("message"),
        )
    )


def one_line(error: BaseException) -> str:
    """The error message on one line, at most 500 characters, without stack trace and credentials."""
    if isinstance(error, StreamwardenError):
        return str(error)[:500]
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return "Spark's JVM has ended: it crashed, or was killed (out of memory?)"
    if isinstance(error, PySparkException):
        lines = [
            line.strip() for line in str(error).splitlines() if line.strip() and not line.lstrip().startswith("at ")
        ]
        python = [line for line in lines if "Error" in line or "Exception" in line]
        return masked((python or lines or [type(error).__name__])[-1])[:500]
    return masked(f"{type(error).__name__}: {' '.join(str(error).split())}")[:500]


def main() -> int:
    """Entry point of spark-submit; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("app", choices=[*sorted(APPS), TOGETHER])
    parser.add_argument("--hour", required=True, help="start of the hour, UTC, e.g. 2026-11-21T05:00")
    arguments = parser.parse_args()
    try:
        config, hour = load_config(), parse_hour(arguments.hour)
        warehouse = open_warehouse(config)  # before Spark starts: a bad address fails immediately
        if arguments.app != TOGETHER:
            return _run(start_session(arguments.app, config=config), arguments.app, hour, config)
        if not (small := small_apps(warehouse)):
            print("every app is large: each runs in its own driver")
            return 0
        spark = start_session(TOGETHER, master=master_for(len(small)), config=config)
        with ThreadPoolExecutor(len(small)) as pool:
            return max(pool.map(lambda name: _run(spark, name, hour, config), small))
    except Exception as error:
        return _failed(arguments.app, error)


def _run(spark: SparkSession, name: str, hour: datetime, config: Config) -> int:
    """Runs an app and prints its rows or its error; returns the exit code."""
    try:
        rows = run_app(spark, name, hour, config)
    except Exception as error:
        return _failed(name, error)
    print(f"{name} {hour:%Y-%m-%dT%H:%MZ}: " + ", ".join(f"{table} {n}" for table, n in rows.items()), flush=True)
    return 0


def _failed(name: str, error: Exception) -> int:
    print(f"streamwarden {name}: {one_line(error)}", file=sys.stderr)
    if os.environ.get("STREAMWARDEN_DEBUG"):
        traceback.print_exception(error)
    return 1


if __name__ == "__main__":
    sys.exit(main())
