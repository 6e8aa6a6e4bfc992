"""The Spark session of every app: UTC, Arrow, a start that takes seconds."""

from __future__ import annotations

import os
import re
import sys

from pyspark.sql import SparkSession

from spark_apps.runtime.class_archive import driver_java_options


def start_session(name: str, *, master: str | None = None) -> SparkSession:
    """A session with our settings. Under spark-submit the master is the submitter's; pass one to run without.

    `local[8]` on two cores: eight tasks at a time, for apps that mostly wait, but work is cut for two.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName(f"streamwarden {name}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # What an app keeps it reads a few times within a minute: compressing a row costs as much as to gather it.
        .config("spark.sql.inMemoryColumnarStorage.compressed", "false")
        .config("spark.python.daemon.module", "spark_apps.runtime.python_daemon")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", driver_java_options())  # only where this call starts the JVM
        .config("spark.ui.showConsoleProgress", "false")
    )
    if master:
        builder = builder.master(master)
    if slots := re.fullmatch(r"local\[(\d+)\]", master or ""):
        builder = builder.config("spark.default.parallelism", min(int(slots[1]), os.cpu_count() or 1))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # When the JVM dies, the call that waits for it says so; this connection would add a traceback.
    spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    if (spark.sparkContext.master or "").startswith("local"):
        # Planning each stage anew costs more than it saves where a partition for each core is all there is.
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    return spark
