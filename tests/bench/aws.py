"""CloudWatch: an hour of 1,000 volumes through the source, against bare boto3 with as many processes and threads.

An hour is asked with the quarter before it, by the minute: 75 points a series. The bare client leaves timestamps the
numbers that they are, as the source does, makes no rows of them and keeps to no pace; the source keeps to what AWS lets
an account ask. CPU is that of all processes on either side but the endpoint's.
"""

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

import botocore.session
import psutil
from demo.aws_endpoint import AwsEndpoint
from demo.world import EBS_METRICS, World
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import CONFIG_ENV
from streamwarden.base.hours import HOUR, start_of_hour

from spark_apps.apps.ebs_volumes.series import OVERLAP
from spark_apps.runtime.session import start_session
from spark_apps.sources.cloudwatch import CALLS_AT_ONCE, SERIES_PER_CALL, Span, read_metrics
from tests.bench.metric import Metric
from tests.bench.serving import serving

ACCOUNT, REGION = "123456789012", "eu-central-1"
VOLUMES, METRICS, TASKS = 1000, 10, 2
PERIOD_SECONDS, POINTS = 60, 75
POINTS_PER_SECOND = 180_000
"""That an account may ask in a region: CloudWatch User Guide, "CloudWatch service quotas"."""
NAMES = [name for name in EBS_METRICS if name.startswith("Volume")][:METRICS]
MOST_CPU = 2.5
"""Times: of every point the source makes a row in Spark, the bare client a number in a list."""
VOLUMES_EACH = 20  # of an instance
CALLS = VOLUMES * METRICS // SERIES_PER_CALL


def measure() -> list[Metric]:
    """Of either its best run, warm, one after the other; and the source's first one, cold."""
    end = start_of_hour(datetime.now(UTC))
    span = Span(end - HOUR - OVERLAP, end, PERIOD_SECONDS)
    with TemporaryDirectory() as folder, serving(_serve) as environment:
        endpoint = {process.pid for process in multiprocessing.active_children()}
        config = Path(folder) / "streamwarden.yaml"
        config.write_text(f"aws: [{{account: '{ACCOUNT}', regions: [{REGION}]}}]\n")
        os.environ |= environment | {CONFIG_ENV: str(config)}
        bare, bare_cpu = min(_bare(span, endpoint) for _ in range(3))
        spark = start_session("bench", master=f"local[{TASKS}]")
        try:
            (cold, cold_cpu), *warm = (_ours(spark, span, endpoint) for _ in range(4))
        finally:
            spark.stop()
    ours, cpu = min(warm)
    least = max(bare, VOLUMES * METRICS * POINTS / POINTS_PER_SECOND)
    return [
        Metric(f"{CALLS} GetMetricData calls, {VOLUMES:,} volumes × {METRICS} × {POINTS}, by bare boto3", bare, "s"),
        Metric("  CPU", bare_cpu, "s"),
        Metric("the same by the source, cold", cold, "s"),
        Metric("  CPU", cold_cpu, "s"),
        Metric("the same by the source, in a warm session", ours, "s"),
        Metric("  CPU", cpu, "s"),
        Metric("the source against bare boto3, or the pace that AWS allows", ours / least, "times", 1.5),
        Metric("CPU of the source against that of bare boto3", cpu / bare_cpu, "times", MOST_CPU),
    ]


def _ours(spark: SparkSession, span: Span, endpoint: set[int | None]) -> tuple[float, float]:
    """Seconds, and CPU seconds of Spark and its workers."""
    before, started = _cpu_seconds(endpoint), time.monotonic()
    output = (
        read_metrics(_series(spark), span)
        .selectExpr("count(at) as points", "sum(calls) as calls", "count(gap) as gaps")
        .collect()[0]
    )
    seconds, cpu = time.monotonic() - started, _cpu_seconds(endpoint) - before
    if tuple(output) != (VOLUMES * METRICS * POINTS, CALLS, 0):
        raise AssertionError(f"not what was asked: {output}")
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


def _cpu_seconds(endpoint: set[int | None]) -> float:
    """Of this process and all below it, with their ended children's, but for the endpoint's."""
    mine = psutil.Process()
    family = [mine, *(child for child in mine.children(recursive=True) if child.pid not in endpoint)]
    return float(sum(sum(process.cpu_times()[:4]) for process in family))


def _bare(span: Span, endpoint: set[int | None]) -> tuple[float, float]:
    """Seconds and CPU seconds of as many processes as tasks, each with its warm client and as many threads."""
    batches = [range(n, VOLUMES * METRICS, CALLS) for n in range(CALLS)]
    with ProcessPoolExecutor(TASKS, multiprocessing.get_context("spawn")) as pool:
        halves = [(batches[n::TASKS], span) for n in range(TASKS)]
        list(pool.map(_ask, [(half[:1], span) for half, _ in halves]))
        before, started = _cpu_seconds(endpoint), time.monotonic()
        found = sum(pool.map(_ask, halves))
        seconds, cpu = time.monotonic() - started, _cpu_seconds(endpoint) - before
    if found != VOLUMES * METRICS * POINTS:
        raise AssertionError(f"{found} points")
    return seconds, cpu


@cache
def _client() -> Any:
    session = botocore.session.Session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=lambda value: value)
    return session.create_client("cloudwatch")


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
    return {"Metric": metric, "Period": PERIOD_SECONDS, "Stat": "Sum"}


def _serve(output: Connection) -> None:
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
        output.send(endpoint.environment(ACCOUNT, REGION))
        output.recv()
