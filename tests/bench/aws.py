"""CloudWatch: an hour of 1,000 volumes through the source, against bare boto3 with as many processes and threads."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import psutil
from demo.aws_endpoint import AwsEndpoint
from demo.world import EBS_METRICS, World
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import HOUR, start_of_hour

from spark_apps.runtime.session import start_session
from spark_apps.sources.cloudwatch import CALLS_AT_ONCE, SERIES_PER_CALL, Span, read_metrics
from tests.bench.figure import Figure
from tests.bench.serving import serving

ACCOUNT, REGION = "123456789012", "eu-central-1"
VOLUMES, METRICS, POINTS, TASKS = 1000, 10, 12, 2
NAMES = [name for name in EBS_METRICS if name.startswith("Volume")][:METRICS]
VOLUMES_EACH = 20  # of an instance
CALLS = VOLUMES * METRICS // SERIES_PER_CALL


def measure() -> list[Figure]:
    """Seconds of both, warm, one after the other; what the source cost."""
    end = start_of_hour(datetime.now(UTC))
    span = Span(end - HOUR, end, 300)
    with TemporaryDirectory() as folder, serving(_serve) as environment:
        config = Path(folder) / "streamwarden.yaml"
        config.write_text(f"aws: [{{account: '{ACCOUNT}', regions: [{REGION}]}}]\n")
        os.environ |= environment | {CONFIG_ENV: str(config)}
        bare = min(_bare(span) for _ in range(3))
        spark = start_session("bench", master=f"local[{TASKS}]")
        try:
            runs = [_ours(spark, span) for _ in range(4)][1:]
        finally:
            spark.stop()
    ours, cpu = min(runs)
    return [
        Figure(f"{CALLS} GetMetricData calls, {VOLUMES:,} volumes × {METRICS} × {POINTS}, by bare boto3", bare, "s"),
        Figure("the same by the source, in a warm session", ours, "s"),
        Figure("the source against bare boto3", ours / bare, "times", 1.5),
        Figure("CPU of the source's processes", cpu, "s"),
    ]


def _ours(spark: SparkSession, span: Span) -> tuple[float, float]:
    """Seconds, and CPU seconds of Spark and its workers."""
    before, started = _cpu_seconds(), time.monotonic()
    told = (
        read_metrics(_series(spark), span)
        .selectExpr("count(at) as points", "sum(calls) as calls", "count(gap) as gaps")
        .collect()[0]
    )
    seconds, cpu = time.monotonic() - started, _cpu_seconds() - before
    if tuple(told) != (VOLUMES * METRICS * POINTS, CALLS, 0):
        raise AssertionError(f"not what was asked: {told}")
    return seconds, cpu


def _series(spark: SparkSession) -> DataFrame:
    volume = f.format_string("vol-%017x", "id")
    return spark.range(VOLUMES).select(
        f.lit(ACCOUNT).alias("account"),
        f.lit(REGION).alias("region"),
        volume.alias("resource_id"),
        f.explode(f.array(*map(f.lit, NAMES))).alias("metric"),
        f.lit("AWS/EBS").alias("namespace"),
        f.col("metric").alias("name"),
        f.create_map(f.lit("VolumeId"), volume).alias("dimensions"),
        f.lit("Sum").alias("stat"),
    )


def _cpu_seconds() -> float:
    mine = psutil.Process()
    servers = {process.pid for process in multiprocessing.active_children()}
    total = 0.0
    for process in (mine, *mine.children(recursive=True)):
        if process.pid not in servers:
            spent = process.cpu_times()
            total += spent.user + spent.system
    return total


def _bare(span: Span) -> float:
    """As many processes as tasks, each with its warm client and as many threads."""
    batches = [range(n, VOLUMES * METRICS, CALLS) for n in range(CALLS)]
    with ProcessPoolExecutor(TASKS, multiprocessing.get_context("spawn")) as pool:
        halves = [(batches[n::TASKS], span) for n in range(TASKS)]
        list(pool.map(_ask, [(half[:1], span) for half, _ in halves]))
        started = time.monotonic()
        found = sum(pool.map(_ask, halves))
        seconds = time.monotonic() - started
    if found != VOLUMES * METRICS * POINTS:
        raise AssertionError(f"{found} points")
    return seconds


@cache
def _client() -> Any:
    return boto3.client("cloudwatch")


def _ask(given: tuple[list[range], Span]) -> int:
    batches, span = given

    def ask(batch: range) -> int:
        queries = [{"Id": f"q{n}", "MetricStat": _metric(n)} for n in batch]
        answer = _client().get_metric_data(MetricDataQueries=queries, StartTime=span.start, EndTime=span.end)
        return sum(len(result["Values"]) for result in answer["MetricDataResults"])

    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        return sum(pool.map(ask, batches))


def _metric(number: int) -> dict[str, Any]:
    dimensions = [{"Name": "VolumeId", "Value": f"vol-{number // METRICS:017x}"}]
    metric = {"Namespace": "AWS/EBS", "MetricName": NAMES[number % METRICS], "Dimensions": dimensions}
    return {"Metric": metric, "Period": 300, "Stat": "Sum"}


def _serve(told: Connection) -> None:
    now = datetime.now(UTC)
    world = World(seed=1, now=lambda: now)
    for number in range(VOLUMES):
        instance = f"i-{number // VOLUMES_EACH:017x}"
        if instance not in world.instances:
            world.add_instance(ACCOUNT, REGION, instance, "m5.4xlarge")
        world.add_volume(
            ACCOUNT, REGION, f"vol-{number:017x}", "io1", 100, 1000, None, instance, created_at=now - timedelta(days=2)
        )
    with AwsEndpoint(world, calls_per_second=1000) as endpoint:
        told.send(endpoint.environment(ACCOUNT, REGION))
        told.recv()
