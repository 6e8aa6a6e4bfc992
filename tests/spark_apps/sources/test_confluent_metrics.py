"""Confluent Cloud's Metrics API: an hour of topics, pages, throttling, and one plain gap per kind of failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config, load_config
from streamwarden.base.hours import HOUR
from streamwarden.cli.probe import services

from spark_apps.sources import confluent_metrics, rest_api
from spark_apps.sources.confluent_metrics import ConfluentMetrics
from spark_apps.submit import run_app
from tests.spark_apps.sources.confluent_api import CLUSTER, KEY, SECRET, Cloud, confluent_api
from tests.spark_apps.sources.reading import rows_of

LAST = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 2 * HOUR  # complete, whatever the minute
RATES = {
    "received_bytes": {"orders": 1000.0, "clicks": 10.0},
    "sent_bytes": {"orders": 3000.0},
    "received_records": {"orders": 5.0, "clicks": 1.0},
    "retained_bytes": {"orders": 7e6, "clicks": 500.0, "idle": 40.0},
}
Read = Callable[..., tuple[dict[str, dict[str, Any]], dict[str, str]]]


def entry(cloud: Cloud, **other: Any) -> dict[str, Any]:
    return {"cluster": "shop", "id": CLUSTER, "key": KEY, "secret": SECRET, "url": cloud.url} | other


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Rows by topic, and gaps by resource."""
    monkeypatch.setattr(rest_api.time, "sleep", lambda _: None)

    def rows(cloud: Cloud, hour: datetime = LAST, **other: Any) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        file = tmp_path / "streamwarden.yaml"
        file.write_text(yaml.safe_dump({"confluent": [entry(cloud, **other)]}))
        monkeypatch.setenv(CONFIG_ENV, str(file))
        found = rows_of(ConfluentMetrics({"clusters": '["shop"]', "hour": hour.isoformat()}), "shop")
        gaps = {row["resource"]: row["gap"] for row in found if row["gap"]}
        return {row["topic"]: row for row in found if row["topic"]}, gaps

    return rows


def test_counters_are_sums_of_the_hour_also_of_topics_without_traffic(read: Read) -> None:
    with confluent_api(rates=RATES) as cloud:
        topics, gaps = read(cloud)
    wanted = ("bytes_in", "bytes_out", "messages_in")
    assert {name: tuple(row[column] for column in wanted) for name, row in topics.items()} == {
        "orders": (60_000, 180_000, 300),
        "clicks": (600, 0, 60),
        "idle": (0, 0, 0),
    }
    assert {row["covered_seconds"] for row in topics.values()} == {3600}
    assert {(row["counted_from"], row["counted_to"]) for row in topics.values()} == {(LAST, LAST + HOUR)}
    assert len(cloud.queries) == 4
    assert gaps.keys() == {"shop brokers"}
    said = "missing: Confluent Cloud exposes no metrics of brokers, disks, and JVMs. Not evaluated here: "
    assert gaps["shop brokers"].startswith(said)
    assert "broker_slow" in gaps["shop brokers"] and "topic_abandoned" not in gaps["shop brokers"]


def test_pages_are_read_to_the_end_and_no_further_than_the_limit(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = RATES | {"received_bytes": {f"t{n:04}": float(n) for n in range(2500)}}
    with confluent_api(rates=rates) as cloud:
        topics, _ = read(cloud)
        assert topics["t2499"]["bytes_in"] == 60 * 2499 and len(topics) == 2503
        monkeypatch.setattr(confluent_metrics, "PAGES", 2)
        topics, gaps = read(cloud)
    assert not topics and gaps["shop topics"].endswith("has more than 2 pages of topics.")


def test_the_newest_minutes_of_the_current_hour_are_left_out(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        minute_now = 40

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return LAST + timedelta(minutes=cls.minute_now, seconds=20)

    monkeypatch.setattr(confluent_metrics, "datetime", Clock)
    with confluent_api(rates=RATES) as cloud:
        topics, _ = read(cloud)
        assert topics["orders"]["covered_seconds"] == 35 * 60 and topics["orders"]["bytes_in"] == 35_000
        Clock.minute_now = 5
        topics, gaps = read(cloud)
    assert not topics and gaps == {"shop topics": "missing: no minute of this hour is available yet."}


@pytest.mark.parametrize("throttled", [2, 3])
def test_throttled_twice_is_read_and_three_times_is_a_gap(read: Read, throttled: int) -> None:
    with confluent_api(rates=RATES, throttled=throttled, retry_after="2") as cloud:
        topics, gaps = read(cloud)
    assert bool(topics) == (throttled == 2)
    assert throttled == 2 or gaps == {
        "shop topics": f"failed: Confluent Cloud's Metrics API for cluster 'shop' ({CLUSTER}) throttled the requests"
        " (429)."
    }


def test_the_pause_is_the_requested_one_up_to_five_seconds(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    here, sleep = threading.get_ident(), time.sleep

    def noted(seconds: float) -> None:  # other threads of the test run sleep by the same function
        pauses.append(seconds) if threading.get_ident() == here else sleep(seconds)

    monkeypatch.setattr(rest_api.time, "sleep", noted)
    for wished in ("2", "600"):
        with confluent_api(rates=RATES, throttled=1, retry_after=wished) as cloud:
            assert read(cloud)[0]
    assert pauses == [2, 5]


@pytest.mark.parametrize(
    ("settings", "other", "reason"),
    [
        ({}, {"secret": "hunter2"}, "rejected the key: it must be a Cloud API key, not one of the cluster (401)."),
        ({}, {"id": "lkc-other"}, "denied access; grant the role MetricsViewer (403)."),
        ({"status": 503}, {}, "responds to POST /v2/metrics/cloud/query with status 503."),
        ({"body": b"<html>"}, {}, "responds to POST /v2/metrics/cloud/query with something other than JSON."),
        ({"body": b'{"data": [{"value": 1}]}'}, {}, "responds with something other than points of topics."),
        *(
            ({"body": b'{"data": [{"metric.topic": %s, "value": %s}]}' % point}, {}, "other than points of topics.")
            for point in ((b'"t"', b"1" + 400 * b"0"), (b'"t"', b"NaN"), (b'"t"', b"-5"), (b"null", b"1"), (b"5", b"1"))
        ),
        ({"body": b"[]"}, {}, "responds with something other than points of topics."),
        ({}, {"url": "http://127.0.0.1:1"}, "did not respond (ConnectError)."),
    ],
)
def test_each_failure_is_one_gap_without_the_secret(
    read: Read, settings: dict[str, Any], other: dict[str, Any], reason: str
) -> None:
    with confluent_api(rates=RATES, **settings) as cloud:
        topics, gaps = read(cloud, **other)
    [(resource, gap)] = gaps.items()
    assert not topics and resource == "shop topics"
    assert gap.startswith("failed: Confluent Cloud's Metrics API") and gap.endswith(reason)
    assert SECRET not in gap and "hunter2" not in gap


def test_the_probe_names_the_problem_and_the_action() -> None:
    with confluent_api(rates=RATES) as cloud:
        config = Config.model_validate({"confluent": [entry(cloud)]})
        [good] = [a for q in services.questions(config) if q.source == "confluent shop" for a in q.ask()]
        config = Config.model_validate({"confluent": [entry(cloud, key="CLUSTERKEY")]})
        [bad] = [a for q in services.questions(config) if q.source == "confluent shop" for a in q.ask()]
    assert good.answer == "2 topics with bytes in"
    assert bad.problem and "Cloud API key" in bad.problem and bad.action and "MetricsViewer" in bad.action


@pytest.mark.rare
@pytest.mark.slow
def test_an_hour_in_the_warehouse_beside_topics_of_jmx(
    spark: Any, warehouse: sa.Engine, warehouse_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "streamwarden.yaml"
    for name, value in {CONFIG_ENV: str(file), WAREHOUSE_ENV: warehouse_url}.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    with confluent_api(rates=RATES) as cloud:
        file.write_text(yaml.safe_dump({"confluent": [entry(cloud)]}))
        run_app(spark, "confluent", LAST, load_config())
        with warehouse.begin() as connection:
            connection.execute(
                sa.text("insert into metrics.topic_hourly (hour, cluster, topic, brokers) values (:hour, 'o', 't', 3)"),
                {"hour": LAST},
            )
        cloud.rates = RATES | {"sent_bytes": {"orders": 1.0}}
        run_app(spark, "confluent", LAST, load_config())
    with warehouse.connect() as connection:
        rows = connection.execute(
            sa.text("select cluster, topic, brokers, bytes_out from metrics.topic_hourly order by 1, 2")
        ).all()
        gap = connection.execute(sa.text("select message from detect.coverage where status = 'missing'")).scalar_one()
    assert [tuple(row) for row in rows] == [
        ("o", "t", 3, None), ("shop", "clicks", 0, 0), ("shop", "idle", 0, 0), ("shop", "orders", 0, 60),
    ]  # fmt: skip
    assert "no metrics of brokers" in gap
