"""Readings of clients as hourly rows: differences of client versions and Micrometer, and the limit of topics."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_apps.models.client_hours import TOPICS_OF_A_CLIENT, client_hours, client_topic_hours
from spark_apps.models.counters import counts
from spark_apps.runtime.driver_rows import driver_rows

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
BEFORE, NOW = HOUR - timedelta(minutes=55), HOUR + timedelta(minutes=5)
SAMPLE = (
    "cluster string, app string, endpoint string, metric string, labels string, at timestamp, kind string,"
    " value double, process_started_at timestamp"
)
EARLIER = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
Reading = tuple[str, str, str | None, float | None]
"""Metric, client, topic, value."""


def hours(spark: Any, earlier: list[Reading], now: list[Reading]) -> tuple[list[Any], list[Any]]:
    """Rows of clients and of their topics, of two processes with equal readings."""

    def labels(client: str, topic: str | None) -> str:
        return json.dumps({"client": client} | ({"topic": topic} if topic else {}), sort_keys=True)

    samples: DataFrame = driver_rows(
        spark,
        [
            ("c", app, app, metric, labels(client, topic), NOW, kind_of(metric), value, HOUR - timedelta(days=1))
            for app in ("a", "b")
            for metric, client, topic, value in now
        ],
        SAMPLE,
    )
    before = driver_rows(
        spark,
        [
            ("c", app, metric, labels(client, topic), BEFORE, value)
            for app in ("a", "b")
            for metric, client, topic, value in earlier
        ],
        EARLIER,
    )
    gained = counts(samples, before, HOUR)
    clients, topics = (
        [row.asDict() for row in frame.collect()]
        for frame in (client_hours(samples, gained), client_topic_hours(samples, gained))
    )
    return [row for row in clients if row["app"] == "a"], [row for row in topics if row["app"] == "a"]


def kind_of(metric: str) -> str:
    return "counter" if metric.endswith("_total") else "gauge"


def test_counters_survive_a_recreated_client_and_a_client_id_may_be_of_both_kinds(spark: Any) -> None:
    earlier: list[Reading] = [
        ("producer_records_total", "x", None, 900.0),
        ("producer_record_errors_total", "x", None, 4.0),
        ("consumer_records_total", "x", None, 100.0),
        ("consumer_fetches_total", "x", None, 10.0),
    ]
    now: list[Reading] = [
        ("producer_records_total", "x", None, 30.0),
        ("producer_record_errors_total", "x", None, 6.0),
        ("producer_batch_mean_bytes", "x", None, None),
        ("producer_throttle_mean_ms", "x", None, 3.0),
        ("producer_requests_total", "new", None, 5.0),
        ("consumer_records_total", "x", None, 160.0),
        ("consumer_fetches_total", "x", None, 12.0),
        ("consumer_throttle_mean_ms", "x", None, 8.0),
        ("heap_used_bytes", "x", None, 1.0),
    ]
    clients, topics = hours(spark, earlier, now)
    rows = {(row["kind"], row["client_id"]): row for row in clients}
    assert rows.keys() == {("producer", "x"), ("consumer", "x"), ("producer", "new")} and not topics
    producer, consumer = rows["producer", "x"], rows["consumer", "x"]
    assert (producer["records"], producer["record_errors"], producer["throttle_mean_ms"]) == (30, 2, 3)
    assert producer["batch_mean_bytes"] is producer["fetches"] is producer["bytes"] is None
    assert (consumer["records"], consumer["fetches"], consumer["throttle_mean_ms"]) == (60, 2, 8)
    assert consumer["covered_seconds"] == 3600 and consumer["record_errors"] is None
    # Without an earlier reading of the metric there is no count.
    assert rows["producer", "new"]["requests"] is rows["producer", "new"]["covered_seconds"] is None


@pytest.mark.rare
def test_micrometer_exposes_records_of_topics_only(spark: Any) -> None:
    now: list[Reading] = [
        ("consumer_fetches_total", "x", None, 5.0),
        ("consumer_topic_records_total", "x", "t", 30.0),
        ("consumer_topic_records_total", "x", "u", 12.0),
        ("consumer_topic_bytes_total", "x", "t", 300.0),
    ]
    clients, topics = hours(spark, [(metric, client, topic, 0.0) for metric, client, topic, _ in now], now)
    assert [(row["records"], row["bytes"]) for row in clients] == [(42, 300)]
    assert sorted((row["topic"], row["records"], row["bytes"]) for row in topics) == [("t", 30, 300), ("u", 12, None)]


@pytest.mark.rare
def test_a_topic_that_a_consumer_exposes_by_two_names_counts_once(spark: Any) -> None:
    """A producer has topics of both names if it exposes both."""
    names = [("x", "a.b"), ("x", "a_b"), ("y", "a_b"), ("y", "c_d")]
    now: list[Reading] = [("consumer_topic_records_total", client, topic, 8.0) for client, topic in names]
    now += [("producer_topic_records_total", "x", topic, 5.0) for topic in ("a.b", "a_b")]
    # A client without any metric of its own has no row.
    now += [("consumer_fetches_total", "x", None, 1.0), ("producer_requests_total", "x", None, 1.0)]
    clients, topics = hours(spark, [(metric, client, topic, 0.0) for metric, client, topic, _ in now], now)
    found = sorted((row["kind"], row["client_id"], row["topic"]) for row in topics)
    assert found == [
        ("consumer", "x", "a.b"),
        ("consumer", "y", "a_b"),
        ("consumer", "y", "c_d"),
        ("producer", "x", "a.b"),
        ("producer", "x", "a_b"),
    ]
    assert {row["kind"]: row["records"] for row in clients} == {"consumer": 8, "producer": 10}


@pytest.mark.rare
def test_of_thousands_of_topics_those_with_most_bytes_are_kept_and_none_without_traffic(spark: Any) -> None:
    many = TOPICS_OF_A_CLIENT + 20
    now: list[Reading] = [("producer_requests_total", "x", None, 1.0)]
    for n in range(many):
        now += [
            ("producer_topic_records_total", "x", f"t{n}", 1.0),
            ("producer_topic_bytes_total", "x", f"t{n}", float(n)),
        ]
    now += [("producer_topic_records_total", "x", name, 0.0) for name in ("idle", "failing")]
    now += [("producer_topic_bytes_total", "x", "failing", 1000.0)]
    now += [("producer_topic_record_errors_total", "x", "failing", 3.0)]
    clients, topics = hours(spark, [(metric, client, topic, 0.0) for metric, client, topic, _ in now], now)
    assert {row["topic"] for row in topics} == {"failing", *(f"t{n}" for n in range(21, many))}
    assert [row["bytes"] for row in clients] == [sum(range(many)) + 1000]
    assert [row["record_errors"] for row in topics if row["topic"] == "failing"] == [3]
