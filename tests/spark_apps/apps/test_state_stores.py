"""The app state_stores on a real broker: real changelogs, read, profiled, loaded and judged."""

from __future__ import annotations

import json
import struct
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from streamwarden.config import CONFIG_ENV, Config, load_config
from streamwarden.detectors import evaluate, load_detectors
from streamwarden.hours import start_of_hour

from spark_apps.submit import run_app

pytestmark = pytest.mark.slow
HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
Value = bytes | None


@pytest.fixture
def cluster(kafka_broker: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A config that names the broker's cluster, in force here and in Spark's tasks."""
    file = tmp_path / "streamwarden.yaml"
    settings = {
        "kafka": [{"name": "shop", "bootstrap_servers": kafka_broker.bootstrap_servers}],
        "gathering": {"show_example_values": True},
    }
    file.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv(CONFIG_ENV, str(file))
    monkeypatch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
    return load_config(file)


@pytest.fixture
def changelog(cluster: Config) -> Iterable[Callable[..., str]]:
    """Makes a changelog of an application of its own and writes values to it, in order, one a second by default."""
    servers = cluster.kafka[0].bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    made: list[str] = []

    def make(
        values: Iterable[Any],
        *,
        partitions: int = 2,
        start: datetime = HOUR,
        step_ms: int = 100,
        key: Callable[[int], bytes] = lambda i: f"k-{i}".encode(),
    ) -> str:
        topic = f"app{uuid.uuid4().hex[:6]}-latest-changelog"
        admin.create_topics([NewTopic(topic, partitions, 1, config={"cleanup.policy": "compact"})])[topic].result()
        made.append(topic)
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
        start_ms = int(start.timestamp() * 1000)
        for i, value in enumerate(values):
            raw = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            producer.produce(topic, raw, key(i), partition=i % partitions, timestamp=start_ms + i * step_ms)
            if i % 10_000 == 0:
                producer.poll(0)
        assert producer.flush(30) == 0
        return topic

    yield make
    for future in admin.delete_topics(made).values():
        future.result()
    # Deletion is asynchronous: the next test lists the topics again.
    deadline = time.monotonic() + 10
    while set(made) & set(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=5).topics):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def run_hour(spark: Any, cluster: Config, warehouse: sa.Engine) -> Callable[..., dict[str, dict[str, Any]]]:
    """Runs the app for an hour and judges it: the detector's rows by topic."""

    def run(hour: datetime = HOUR, config: Config = cluster) -> dict[str, dict[str, Any]]:
        run_app(spark, "state_stores", hour, config)
        detector = load_detectors()["state_store_schema_drift"]
        judgement = evaluate(warehouse, detector, hour, config)
        assert judgement.status == "judged", judgement.reason
        rows = select(warehouse, "select * from detect.evaluation where hour = :hour", hour=hour)
        return {row["resource"].split("/")[1]: row for row in rows}

    return run


def select(warehouse: sa.Engine, query: str, **binds: Any) -> list[dict[str, Any]]:
    with warehouse.connect() as connection:
        return [dict(row) for row in connection.execute(sa.text(query), binds).mappings()]


def order(i: int, **changed: Any) -> dict[str, Any]:
    return {"id": f"o-{i}", "quantity": i % 9, "address": {"city": "Köln", "postcode": f"{i:05d}"}, **changed}


def test_a_type_that_changes_within_the_hour_is_critical_and_named(
    changelog: Any, run_hour: Any, warehouse: sa.Engine
) -> None:
    old = [order(i) for i in range(400)]
    new = [order(i, quantity=str(i % 9), address={"city": "Köln"}) for i in range(400)]
    topic = changelog(old + new)
    found = run_hour()[topic]
    assert found["status"] == "alarm"
    assert found["severity"] == "critical"
    assert "$.quantity" in found["reason"]
    changes = select(warehouse, "select * from metrics.state_store_change_hourly order by path")
    assert [(c["path"], c["change"], c["old_type"], c["new_type"]) for c in changes] == [
        ("$.address.postcode", "field_removed", "string", None),
        ("$.quantity", "type_changed", "integer", "string"),
    ]
    quantity = changes[1]
    assert (quantity["old_count"], quantity["new_count"]) == (400, 400)
    assert (quantity["old_last_offset"], quantity["new_first_offset"]) == ("1:199", "0:200")
    assert quantity["new_first_at"] == HOUR + timedelta(seconds=40)
    assert (quantity["old_example"], quantity["new_example"]) == ("3", '"0"')
    [store] = select(warehouse, "select * from metrics.state_store_hourly")
    assert (store["format"], store["windowed"], store["versions"], store["records"]) == ("json", False, 2, 800)
    assert (store["application_id"], store["store"]) == (topic.removesuffix("-latest-changelog"), "latest")
