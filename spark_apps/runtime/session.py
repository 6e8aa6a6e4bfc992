"""The Spark session of every app: UTC, Arrow, a start that takes seconds."""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Any

from pyspark import SparkConf
from pyspark.sql import SparkSession
from streamwarden.base.config import Config

from spark_apps.runtime.class_archive import driver_java_options
from spark_apps.runtime.executors import equip, is_local

COMPILED_FROM_ROWS = 5_000
"""An app that writes fewer rows an hour has plans that cost more to compile than to interpret."""
ROWS_PER_PIECE = 25_000
"""Of those that an app writes: a piece of the commits behind them, two dozen a row, takes some 50 MB."""
BROADCAST_UP_TO_ROWS = 500_000
"""Of those that an app writes. The planner takes what the warehouse is asked for to be small, and a copy of a large
hour's counters and positions for each join fills a JVM; what is small for certain says so itself."""
_PIECES = "streamwarden.pieces"


def master_for(apps: int) -> str | None:
    """The master for so many apps in one session: on this machine with slots for each, as tasks that wait for the next
    sample must not hold a core. Null: what it was submitted to."""
    slots = f"local[{apps * (os.cpu_count() or 1)}]"
    if submitted := SparkConf().get("spark.master"):
        return slots if submitted.startswith("local") else None
    return os.environ.get("STREAMWARDEN_SPARK_MASTER", slots)


def start_session(
    name: str, *, master: str | None = None, config: Config | None = None, compiled_well: bool = False
) -> SparkSession:
    """A session with our settings. Under spark-submit the master is the submitter's; pass one to run without.

    Args:
        master: `local[8]` on two cores is eight tasks at a time, for apps that mostly wait, but work is cut for two.
            See `master_for`.
        config: what the executors of a cluster are told (see `executors`).
        compiled_well: see `driver_java_options`; under spark-submit the submitter says it.

    Raises:
        StreamwardenError: the cluster's executors lack what they need.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    on_cluster = not (master or SparkConf().get("spark.master") or "local").startswith("local")
    if not on_cluster:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName(f"streamwarden {name}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # What an app keeps it reads a few times within a minute: compressing a row costs as much as to gather it.
        .config("spark.sql.inMemoryColumnarStorage.compressed", "false")
        # Of 10,000 rows, by default, a batch of each task makes a tenth of the JVM.
        .config("spark.sql.inMemoryColumnarStorage.batchSize", "2000")
        # A stream of what is kept holds so many batches before it forgets: 100, by default, fill a JVM.
        .config("spark.serializer.objectStreamReset", "1")
        # A task's sorts and joins begin with a page each: of 2 MB, by default, a long plan's have more than its share.
        .config("spark.buffer.pageSize", "256k")
        # What comes sorted is aggregated as it comes.
        .config("spark.sql.execution.replaceHashWithSortAgg", "true")
        # To note where in Python each column was made takes a twentieth of an app's CPU.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.sql.dataFrameQueryContext.enabled", "false")
        # What is broadcast may come from an API that takes its time: Spark's 300 s would end an app that only waits.
        .config("spark.sql.broadcastTimeout", "3600")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", driver_java_options(compiled_well=compiled_well))
        .config("spark.ui.showConsoleProgress", "false")
        # A cluster's executors come one by one: work is cut for all of them.
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    )
    if master:
        builder = builder.master(master)
    if not on_cluster:  # there our code comes after the daemon has begun
        builder = builder.config("spark.python.daemon.module", "spark_apps.runtime.python_daemon")
    if slots := re.fullmatch(r"local\[(\d+)\]", master or ""):
        builder = builder.config("spark.default.parallelism", min(int(slots[1]), os.cpu_count() or 1))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # When the JVM dies, the call that waits for it says so; the connections to it would add tracebacks.
    spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    logging.getLogger().addFilter(_isnt_py4js)
    _remember_classes(spark)
    if config:
        equip(spark, config)
    return _tuned(spark)


class _Remembered:
    """A class of the JVM whose members are looked up once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


def _remember_classes(spark: SparkSession) -> None:
    """pyspark asks the JVM for these classes and their methods again with each column: 14,000 times in a small hour."""
    jvm = spark.sparkContext._jvm
    for name in ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils"):
        if name not in vars(jvm):
            setattr(jvm, name, _Remembered(getattr(jvm, name)))


def _isnt_py4js(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


def session_for(spark: SparkSession, expected_rows: int) -> SparkSession:
    """A session of an app's own beside others on the same Spark, set for what it will write.

    To compile a plan costs 0.1 to 1 CPU seconds, and an hour of a small fleet has a hundred of a few rows each.
    """
    own = _tuned(spark.newSession())
    own.conf.set(_PIECES, max(spark.sparkContext.defaultParallelism, expected_rows // ROWS_PER_PIECE))
    if expected_rows > BROADCAST_UP_TO_ROWS:
        own.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    if expected_rows < COMPILED_FROM_ROWS:
        own.conf.set("spark.sql.codegen.wholeStage", "false")
        own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return own


def pieces(spark: SparkSession) -> int:
    """Into how many parts to cut what is far longer than the tables that are made of it, so that each fits in memory.

    For one shuffle, explicitly: as the default of all it would cost more than it saves.
    """
    return int(str(spark.conf.get(_PIECES, str(spark.sparkContext.defaultParallelism))))


def _tuned(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    if is_local(spark):
        # Planning each stage again costs more than it saves where a partition for each core is all there is.
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    return spark
