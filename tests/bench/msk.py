"""Amazon MSK: an hour of 30 brokers and 2,000 topics with a consumer group each, from AWS into the warehouse, against
bare boto3 that fetches as many metrics of as many minutes and keeps none.

The app also discovers the clusters, evaluates four weeks of volume reads where it must, and loads seven tables.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import botocore.session
import sqlalchemy as sa
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.msk_world import MskCluster
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, load_config
from streamwarden.base.hours import HOUR, last_full_hour
from streamwarden.base.warehouse import engine, ensure_day
from streamwarden.store.migrate import migrate

from spark_apps.apps.ebs_volumes.series import OVERLAP
from spark_apps.apps.msk.series import LAG
from spark_apps.runtime.session import start_session
from spark_apps.sources.cloudwatch import CALLS_AT_ONCE, SERIES_PER_CALL
from spark_apps.submit import run_app
from tests.bench.metric import Metric
from tests.bench.serving import serving
from tests.conftest import a_database

ACCOUNT, REGION, NAME = "123456789012", "eu-central-1", "orders"
BROKERS, TOPICS = 30, 2000
MOST_SECONDS_MORE = 15.0
ASKED = "select calls, metrics_requested from metrics.cloudwatch_cost_hourly where app = 'msk'"


def measure() -> list[Metric]:
    """The app in a cold and in a warm session, and bare boto3 for what the app asked for."""
    hour = last_full_hour(datetime.now(UTC))
    with TemporaryDirectory() as folder, serving(_serve) as environment, a_database() as url:
        file = Path(folder) / "streamwarden.yaml"
        entry = {"account": ACCOUNT, "regions": [REGION], "connect": False, "open_monitoring": False}
        file.write_text(yaml.safe_dump({"msk": [entry], "gathering": {"settle_minutes": 0}}))
        os.environ |= environment | {CONFIG_ENV: str(file), WAREHOUSE_ENV: url}
        warehouse = engine(url)
        migrate(warehouse)
        ensure_day(warehouse, hour.date())
        spark = start_session("bench", master="local[2]")
        try:
            cold, warm = (_seconds(lambda: _ours(spark, hour)) for _ in range(2))
        finally:
            spark.stop()
        with warehouse.connect() as connection:
            calls, asked = connection.execute(sa.text(ASKED)).one()
        bare = min(_seconds(lambda: _bare(hour, asked)) for _ in range(2))
    return [
        Metric(f"{asked:,} metrics of {BROKERS} brokers and {TOPICS:,} topics in {calls} calls, bare boto3", bare, "s"),
        Metric("the same by the app, cold", cold, "s"),
        Metric("the same by the app, warm", warm, "s"),
        Metric("the app, cold, beyond bare boto3", cold - bare, "s", MOST_SECONDS_MORE),
    ]


def _seconds(run: Any) -> float:
    started = time.monotonic()
    run()
    return time.monotonic() - started


def _ours(spark: Any, hour: datetime) -> None:
    loaded = run_app(spark, "msk", hour, load_config())
    found = (loaded["metrics.broker_hourly"], loaded["metrics.msk_consumer_lag_hourly"])
    if found != (BROKERS, TOPICS):
        raise AssertionError(f"brokers, groups: {found}")


def _bare(hour: datetime, asked: int) -> None:
    """Fetches that many metrics: those of lag, again and again, as each exists for each topic."""
    client = botocore.session.Session().create_client("cloudwatch")
    batches = [range(start, min(start + SERIES_PER_CALL, asked)) for start in range(0, asked, SERIES_PER_CALL)]

    def ask(batch: range) -> int:
        queries = [{"Id": f"q{n}", "MetricStat": {"Metric": _lag(n), "Period": 60, "Stat": "Maximum"}} for n in batch]
        answer = client.get_metric_data(MetricDataQueries=queries, StartTime=hour - OVERLAP, EndTime=hour + HOUR)
        return sum(len(result["Values"]) for result in answer["MetricDataResults"])

    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        points = sum(pool.map(ask, batches))
    if points < asked * 60:
        raise AssertionError(f"{points} points of {asked} metrics")


def _lag(number: int) -> dict[str, Any]:
    topic = str(number // len(LAG) % TOPICS)
    named = {"Cluster Name": NAME, "Consumer Group": f"group-{topic}", "Topic": f"topic-{topic}"}
    dimensions = [{"Name": name, "Value": value} for name, value in named.items()]
    return {"Namespace": "AWS/Kafka", "MetricName": list(LAG.values())[number % len(LAG)], "Dimensions": dimensions}


def _serve(output: Connection) -> None:
    now = datetime.now(UTC)
    world = World(seed=1, now=lambda: now)
    cluster = MskCluster(ACCOUNT, REGION, NAME, brokers=BROKERS, level="PER_BROKER")
    world.msk.add(cluster, created_at=now - timedelta(days=2))
    for topic in range(TOPICS):
        for name in LAG.values():
            cluster.set(name, (f"group-{topic}", f"topic-{topic}"), now - timedelta(days=1), now + HOUR, 3)
    with AwsEndpoint(world, calls_per_second=1000) as endpoint:
        output.send(endpoint.environment(ACCOUNT, REGION))
        output.recv()
