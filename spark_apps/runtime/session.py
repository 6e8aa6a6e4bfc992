"""The Spark session of every app: UTC, Arrow, and a start within seconds."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from streamwarden.base.config import Config

from spark_apps.runtime.class_archive import driver_java_options
from spark_apps.runtime.executors import equip, is_local
from spark_apps.runtime.kept import set_small

COMPILED_FROM_ROWS = 5_000
"""For an app that writes fewer rows an hour, compiling a plan costs more than interpreting it."""
LEAVES_UP_TO_ROWS = 20_000
"""For an app that writes fewer rows an hour, sources are leaves of later plans (see `kept`)."""
ROWS_PER_PIECE = 25_000
"""Rows that an app writes, per shuffle partition: the commits behind them, two dozen per row, take some 50 MB."""
BROADCAST_UP_TO_ROWS = 500_000
"""Rows that an app writes, up to which Spark may broadcast. The planner assumes that warehouse queries are small: in a
large hour, a copy of the counters and positions for each join fills the JVM. Frames that are always small have a
hint."""
_PIECES = "streamwarden.pieces"
_ONE_TASK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
"""Few rows are joined in the task that has them: a broadcast is a job of its own."""
MODULE_WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector"


def master_for(apps: int) -> str | None:
    """Master for so many apps in one session, with task slots for each: waiting for the next sample must not block a
    core.

    None: the master that the job was submitted to.
    """
    slots = f"local[{apps * (os.cpu_count() or 1)}]"
    if submitted := SparkConf().get("spark.master"):
        return slots if submitted.startswith("local") else None
    return os.environ.get("STREAMWARDEN_SPARK_MASTER", slots)


def start_session(
    name: str, *, master: str | None = None, config: Config | None = None, compiled_well: bool = False
) -> SparkSession:
    """Creates or returns a session with our settings. Under spark-submit the submitter sets the master.

    Args:
        name: appears in Spark's application name.
        master: `local[8]` on two cores runs eight tasks at a time, for apps that mostly wait; work is partitioned for
            two. See `master_for`.
        config: sent to the executors of a cluster (see `executors`).
        compiled_well: see `driver_java_options`; under spark-submit the submitter sets it.

    Raises:
        StreamwardenError: the cluster's executors do not have what they need.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    on_cluster = not (master or SparkConf().get("spark.master") or "local").startswith("local")
    if not on_cluster:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName(f"streamwarden {name}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # A persisted frame is read a few times within a minute: compressing it costs as much as computing it.
        .config("spark.sql.inMemoryColumnarStorage.compressed", "false")
        # With the default batch of 10,000 rows, the batches of all tasks take a tenth of the JVM's memory.
        .config("spark.sql.inMemoryColumnarStorage.batchSize", "2000")
        # Serialization streams keep references until a reset: the default of 100 batches fills the JVM.
        .config("spark.serializer.objectStreamReset", "1")
        # Each sort and join of a task allocates a page: with the default of 2 MB, long plans exceed their memory share.
        .config("spark.buffer.pageSize", "256k")
        # Sorted input is aggregated without a hash table.
        .config("spark.sql.execution.replaceHashWithSortAgg", "true")
        # Recording the Python call site of each column takes a twentieth of an app's CPU.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.sql.dataFrameQueryContext.enabled", "false")
        # Spark's check of each change that its optimizer makes is its most expensive rule on short plans.
        .config("spark.sql.lightweightPlanChangeValidation", "false")
        # A broadcast may wait for a slow API: with Spark's default of 300 s, an app that only waits would fail.
        .config("spark.sql.broadcastTimeout", "3600")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", driver_java_options(compiled_well=compiled_well))
        .config("spark.ui.showConsoleProgress", "false")
        # Executors of a cluster register one by one: work is partitioned for all of them.
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    )
    if master:
        builder = builder.master(master)
    if not on_cluster:  # on a cluster our code arrives after the daemon has started
        builder = builder.config("spark.python.daemon.module", "spark_apps.runtime.python_daemon")
    if slots := re.fullmatch(r"local\[(\d+)\]", master or ""):
        builder = builder.config("spark.default.parallelism", min(int(slots[1]), os.cpu_count() or 1))
    with _without_module_warning():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # When the JVM dies, the waiting call reports it; the other connections to it would add tracebacks.
    spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    logging.getLogger().addFilter(_isnt_py4js)
    _remember_classes(spark)
    if config:
        equip(spark, config)
    return _tuned(spark)


@contextmanager
def _without_module_warning() -> Iterator[None]:
    """While Spark starts a JVM, its stderr passes through a thread of ours, which leaves one line out.

    Spark itself asks for that module (vectorized BLAS), and Java has no option that silences the warning.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:  # the JVM runs already
        yield
        return
    screen = os.dup(2)
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    Thread(target=_forward, args=(source, screen), name="stderr of the JVM", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(screen, 2)


def _forward(source: int, screen: int) -> None:
    """Copies lines until the JVM ends, except for the module warning; both file descriptors are closed then."""
    with suppress(OSError), open(source, "rb") as lines, open(screen, "wb", buffering=0) as out:
        for line in lines:
            if line.strip() != MODULE_WARNING:
                out.write(line)


class _Remembered:
    """A class of the JVM that looks up each member only once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


def _remember_classes(spark: SparkSession) -> None:
    """Caches JVM classes that pyspark looks up, with their methods, for each column: 14,000 times in a small hour."""
    jvm = spark.sparkContext._jvm
    for name in ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils"):
        if name not in vars(jvm):
            setattr(jvm, name, _Remembered(getattr(jvm, name)))


def _isnt_py4js(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


def session_for(spark: SparkSession, expected_rows: int) -> SparkSession:
    """A session for one app that shares Spark with others, with settings for the number of rows it will write.

    Compiling a plan costs 0.1 to 1 CPU seconds, and an hour of a small fleet has a hundred plans of a few rows each.
    """
    own = _tuned(spark.newSession())
    own.conf.set(_PIECES, max(spark.sparkContext.defaultParallelism, expected_rows // ROWS_PER_PIECE))
    if expected_rows > BROADCAST_UP_TO_ROWS:
        own.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    if expected_rows < COMPILED_FROM_ROWS:
        own.conf.set("spark.sql.codegen.wholeStage", "false")
        own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    if expected_rows < LEAVES_UP_TO_ROWS and is_local(spark):  # a leaf is lost with the executor that has it
        # An app that never ran may have many rows.
        one_task = 0 < expected_rows < COMPILED_FROM_ROWS
        set_small(own, one_task=one_task)
        for name, value in (_ONE_TASK if one_task else {}).items():
            own.conf.set(name, value)
    return own


def pieces(spark: SparkSession) -> int:
    """Number of shuffle partitions for data far larger than the resulting tables, so that each partition fits in
    memory.

    Used for single shuffles: as the default of all shuffles it would cost more than it saves.
    """
    return int(str(spark.conf.get(_PIECES, str(spark.sparkContext.defaultParallelism))))


def _tuned(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    if is_local(spark):
        # Adaptive planning of each stage costs more than it saves where there is only one partition per core.
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    return spark
