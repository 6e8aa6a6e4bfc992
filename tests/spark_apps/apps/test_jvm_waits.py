"""A real Kafka Streams application that calls another system per record, through a real connection pool."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.jar_set import JarSet, ensure
from demo.jars import JOLOKIA, STREAMS, classpath
from demo.process import Jvm, free_port
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR
from streamwarden.detectors import load_detectors
from streamwarden.detectors.evaluate import findings

from spark_apps.submit import run_app
from tests.clock import present_hour
from tests.spark_apps.jolokia import wait_until
from tests.sql.rows import insert_rows

pytestmark = [pytest.mark.slow, pytest.mark.rare]
FOLDER = Path(__file__).parent
POOL = JarSet("hikari", ("com.zaxxer:HikariCP:6.3.0",), transitive=False, lock=FOLDER / "hikari.lock")
RULE = load_detectors()["app_blocked_on_external_calls"]
RECORD_MS, USUAL_MS = 20, 2.0
RECORDS = 80
"""Records before the first sample, and the minimum that the detector needs."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for made in admin.create_topics([NewTopic("orders", 4), NewTopic("priced", 4)]).values():
            made.result(20)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for number in range(40_000):
            producer.produce("orders", key=str(number), value="{}")
        assert producer.flush(30) == 0
        yield running


@pytest.mark.parametrize(
    ("connections", "because"),
    [
        pytest.param(4, "external_wait", id="look-ups"),
        pytest.param(1, "connection_pool_exhausted", id="one connection for two threads"),
        pytest.param(0, "not_waiting", id="computes"),
    ],
)
def test_records_that_wait_for_external_calls(
    broker: Broker, warehouse: sa.Engine, spark: Any, tmp_path: Path, connections: int, because: str
) -> None:
    hour, port = present_hour(), free_port()
    url = f"http://127.0.0.1:{port}/jolokia"
    config = Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": "unused:9092"}],
            "jmx": [{"role": "app", "app": "pricing", "cluster": "demo", "url": url}],
            "gathering": {"jmx_samples": 3, "jmx_sample_seconds": 0.5},
        }
    )
    arguments = [broker.bootstrap_servers, str(tmp_path / "state"), str(RECORD_MS), str(connections)]
    app = Jvm(
        "pricing",
        [str(FOLDER / "LookUpApp.java"), *arguments],
        tmp_path,
        classpath=f"{classpath(STREAMS)}:{classpath(POOL)}",
        agent=ensure(JOLOKIA)[0],
        jolokia_port=port,
        options=["-Xmx160m"],
    )
    with app:
        wait_for_records(url, RECORDS)
        run_app(spark, "jvm_apps", hour - HOUR, config)
        wait_for_records(url, 3 * RECORDS)
        run_app(spark, "jvm_apps", hour, config)
    row, said = row_and_finding(
        warehouse, hour, url, {} if connections == 0 else {"full_cpu": 1.1, "least_waiting": 0.5}
    )
    assert row["records_processed"] >= RECORDS
    # Two threads that share a connection, or a processor of this host, alternate.
    assert row["record_latency_ms"] >= RECORD_MS * (2 if connections == 1 else 1) * 0.9
    assert 0 <= row["producer_wait_seconds"] < 0.1 * row["covered_seconds"] and row["throttled_ratio"] is None
    cpu_ms = 1000 * row["cpu_seconds"] / row["records_processed"]
    assert cpu_ms >= RECORD_MS if connections == 0 else cpu_ms < RECORD_MS / 2
    assert row["pool_connections"] == (connections or None)
    # A computing thread may be short of CPU on this host; a waiting thread is not, whatever the load.
    assert said.reason == because or (connections == 0 and said.reason == "cpu_saturated"), said.reason
    if connections == 1:
        # Of three samples, one may fall between two uses of the connection, or while a thread polls.
        assert 0 < row["pool_connections_in_use"] <= 1 and 0 < row["pool_threads_waiting"] <= 2


def row_and_finding(warehouse: sa.Engine, hour: datetime, url: str, params: dict[str, float]) -> tuple[Any, Any]:
    """Gathered rows and the detector's finding on them, after days with fast records."""
    usually = {
        "cluster": "demo", "app": "pricing", "endpoint": url, "application_id": "pricing", "samples": 3,
        "records_processed": 1000, "record_latency_ms": USUAL_MS,
    }  # fmt: skip
    past = [hour - timedelta(hours=n) for n in range(2, 2 + RULE.params_in_force(Config())["least_hours"])]  # type: ignore[operator]
    with warehouse.begin() as connection:
        for day in {at.date() for at in past}:
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day})
        insert_rows(connection, "metrics.jvm_app_hourly", [usually | {"hour": at} for at in past])
        in_force = RULE.params_in_force(Config()) | {"least_records": RECORDS} | params
        (said,) = findings(connection, RULE, hour, Config(), in_force)
        query = sa.text("select * from metrics.jvm_app_hourly where hour = :hour")
        row = connection.execute(query, {"hour": hour}).mappings().one()
    return row, said


def wait_for_records(url: str, records: int) -> None:
    """Waits until the application has processed so many records."""
    wait_until(
        url,
        "kafka.streams:type=stream-thread-metrics,*/process-total",
        lambda threads: sum(thread["process-total"] for thread in threads) >= records,
    )
