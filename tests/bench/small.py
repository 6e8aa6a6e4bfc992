"""A first try: `streamwarden run` on a cluster of 75 topics and 57 groups, with nothing else in the config.

The process is cold, as a user's. A line about the code cache in its output is an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from demo.broker import Broker, create_topics
from demo.fleet import seconds_until_room
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.hours import start_of_hour
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import engine
from streamwarden.store.migrate import migrate

from tests.bench.metric import Metric
from tests.conftest import a_database
from tests.spark_apps.offsets_log import commit

TOPICS, GROUPS, PARTITIONS_PER_TOPIC = 75, 57, 6
LIMIT_SECONDS, LONGEST_SECONDS = 25, 300
_STORED = sa.text("""
    select
      (select count(distinct topic) from metrics.partition_hourly where topic like 'topic-%' and hour = :hour),
      (select count(distinct group_id) from metrics.consumer_partition_hourly where hour = :hour)""")


def measure() -> list[Metric]:
    """Seconds of the first run, and of another one of the same hour."""
    time.sleep(seconds_until_room(datetime.now(UTC), LONGEST_SECONDS))
    with (
        TemporaryDirectory(dir=PROJECT_ROOT / "var") as folder,
        Broker(Path(folder), heap="512m") as broker,
        a_database() as url,
    ):
        _fill(broker.bootstrap_servers)
        hour = start_of_hour(datetime.now(UTC))
        config = Path(folder) / "streamwarden.yaml"
        cluster = {"name": "orders", "bootstrap_servers": broker.bootstrap_servers}
        config.write_text(yaml.safe_dump({"kafka": [cluster], "gathering": {"settle_minutes": 0}}))
        migrate(engine(url))
        first, second = (_seconds_of_run(hour, {CONFIG_ENV: str(config), WAREHOUSE_ENV: url}) for _ in range(2))
        with engine(url).connect() as connection:
            stored = connection.execute(_STORED, {"hour": hour}).one()
        if tuple(stored) != (TOPICS, GROUPS):
            raise AssertionError(f"topics, groups: {stored}")
    what = f"`streamwarden run`, {GROUPS} groups and {TOPICS} topics"
    return [
        Metric(f"{what}, the first time", first, "s", LIMIT_SECONDS),
        Metric(f"{what}, again", second, "s", LIMIT_SECONDS),
    ]


def _fill(servers: str) -> None:
    """Records in each partition; each group has read most of those of two topics."""
    topics = [f"topic-{n}" for n in range(TOPICS)]
    create_topics(servers, *(NewTopic(topic, PARTITIONS_PER_TOPIC, 1) for topic in topics))
    producer = Producer({"bootstrap.servers": servers})
    for topic in topics:
        for n in range(20 * PARTITIONS_PER_TOPIC):
            producer.produce(topic, b"x", partition=n % PARTITIONS_PER_TOPIC)
    if producer.flush(60):
        raise AssertionError("not all records were written")
    for n in range(GROUPS):
        places = [
            TopicPartition(topics[(n + k) % TOPICS], partition, 15)
            for k in range(2)
            for partition in range(PARTITIONS_PER_TOPIC)
        ]
        commit(servers, f"group-{n}", *places, seconds=60)


def _seconds_of_run(hour: datetime, environment: dict[str, str]) -> float:
    command = [Path(sys.executable).with_name("streamwarden"), "run", "--hour", f"{hour:%Y-%m-%dT%H:%M}"]
    started = time.monotonic()
    run = subprocess.run(
        command, env={**os.environ, **environment}, check=False, capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    seconds = time.monotonic() - started
    if run.returncode or "CodeCache" in run.stdout + run.stderr:
        raise AssertionError(f"exit code {run.returncode}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return seconds
