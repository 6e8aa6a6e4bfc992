"""App brokers on a real broker: exact counts, a restart within the hour, a broker that does not respond, a rerun."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from demo.broker import Broker
from pyspark.sql import functions as f
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config, JmxEndpoint
from streamwarden.base.hours import HOUR
from streamwarden.detectors import findings, load_detectors

from spark_apps.apps import brokers
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.submit import run_app
from tests.clock import present_hour
from tests.spark_apps.apps.tiered_storage import TIERED, tiered_broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPIC = "payments"
DEAD = "http://127.0.0.1:1/jolokia"
A_WHILE = timedelta(seconds=5)
"""Tolerance of a start time: it is computed as response time minus uptime, and a busy host responds late."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 3)])[TOPIC].result(20)
        yield running


def config_for(broker: Broker) -> Config:
    return Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": broker.bootstrap_servers}],
            "jmx": [
                {"role": "broker", "cluster": "demo", "url": broker.jolokia_url, "instance_id": "i-1"},
                {"role": "broker", "cluster": "demo", "url": DEAD, "broker_id": 7},
            ],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.5},
        }
    )


def produce(broker: Broker, records: int, topic: str = TOPIC) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(records):
        producer.produce(topic, key=str(number), value=b"x" * 100)
    assert producer.flush(20) == 0


def consume(broker: Broker, records: int) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    got = 0
    while got < records:
        got += len(consumer.consume(records - got, timeout=20))
    consumer.close()


def row(warehouse: sa.Engine, query: str, **binds: Any) -> sa.RowMapping:
    with warehouse.connect() as connection:
        return connection.execute(sa.text(query), binds).mappings().one()


def cpu_seconds(broker: Broker) -> float:
    """CPU seconds per processor that the JVM has used since its start."""
    bean = f"{broker.jolokia_url}/read/java.lang:type=OperatingSystem/ProcessCpuTime,AvailableProcessors"
    value = httpx.get(bean).json()["value"]
    return float(value["ProcessCpuTime"] / 1e9 / value["AvailableProcessors"])


BROKER_ROW = "select * from metrics.broker_hourly where hour = :hour and endpoint = :endpoint"
READ_AS_APP = """
    insert into metrics.jvm_app_sample
      (hour, cluster, app, endpoint, metric, labels, at, kind, value, process_started_at)
    select hour, cluster, 'any-jvm', endpoint, metric, labels, at, kind, value, process_started_at
    from metrics.broker_sample
    where metric = 'cpu_seconds_total' and hour < (select max(hour) from metrics.broker_sample)"""
TOPIC_ROW = "select * from metrics.topic_hourly where hour = :hour and topic = :topic"


def test_hours_join_exactly_and_a_restart_counts_from_the_start(
    broker: Broker, warehouse: sa.Engine, spark: Any
) -> None:
    hour = present_hour()
    config = config_for(broker)
    produce(broker, 1000)
    run_app(spark, "brokers", hour - HOUR, config)

    produce(broker, 300)
    consume(broker, 1300)
    run_app(spark, "brokers", hour, config)
    topic = row(warehouse, TOPIC_ROW, hour=hour, topic=TOPIC)
    assert topic["messages_in"] == pytest.approx(300)  # exactly the records between the two runs
    assert topic["bytes_out"] > 1300 * 100 > topic["bytes_in"] > 300 * 100
    assert topic["log_bytes"] > 1300 * 100 and topic["brokers"] == 1
    on_broker = row(warehouse, TOPIC_ROW.replace("topic_hourly", "broker_topic_sample"), hour=hour, topic=TOPIC)
    assert (on_broker["messages_in"], on_broker["messages_in_total"]) == (pytest.approx(300), 1300)
    assert row(warehouse, "select count(*) as n from metrics.broker_sample where labels like '%topic%'")["n"] == 0
    first = row(warehouse, BROKER_ROW, hour=hour - HOUR, endpoint=broker.jolokia_url)
    second = row(warehouse, BROKER_ROW, hour=hour, endpoint=broker.jolokia_url)
    assert second["broker_id"] == 1 and second["instance_id"] == "i-1" and second["samples"] == 2
    assert second["messages_in_per_second"] * second["covered_seconds"] >= 300
    assert second["produce_requests_per_second"] * second["covered_seconds"] >= 1
    assert second["fetch_follower_requests_per_second"] == 0
    assert second["active_controllers"] == 1 and second["under_replicated_partitions"] == 0
    assert second["unclean_elections"] == 0
    assert second["remote_fetch_bytes_per_second"] is topic["remote_fetch_bytes"] is None  # no tiered storage
    assert second["partitions"] == second["leaders"] >= 3
    assert 0 < second["cpu_ratio"] <= 1 and second["log_bytes"] >= topic["log_bytes"]
    assert on_broker["segments"] == 3  # one of each partition
    assert second["segments"] >= second["partitions"]
    assert second["produce_p99_ms"] >= 0 and second["fetch_consumer_mean_ms"] > 0
    assert second["fetch_follower_p99_ms"] is None  # without a follower the metric is null
    assert abs(first["process_started_at"] - second["process_started_at"]) < A_WHILE

    broker.kill()
    broker.start()
    produce(broker, 50)
    run_app(spark, "brokers", hour, config)
    topic = row(warehouse, TOPIC_ROW, hour=hour, topic=TOPIC)
    assert topic["messages_in"] == pytest.approx(50)
    again = row(warehouse, BROKER_ROW, hour=hour, endpoint=broker.jolokia_url)
    assert abs(topic["counted_from"] - again["process_started_at"]) < A_WHILE
    assert again["process_started_at"] > first["process_started_at"]

    with warehouse.begin() as connection:  # as if it had been read as an application too
        connection.execute(sa.text(READ_AS_APP))
    before = cpu_seconds(broker)
    any_jvm = JmxEndpoint(role="app", app="any-jvm", cluster="demo", url=broker.jolokia_url)
    run_app(spark, "jvm_apps", hour, config.model_copy(update={"jmx": [any_jvm]}))
    app = row(warehouse, "select * from metrics.jvm_app_hourly where hour = :hour", hour=hour)
    assert before <= app["cpu_ratio"] * app["covered_seconds"] <= cpu_seconds(broker)  # nothing of the previous process
    assert abs(app["process_started_at"] - again["process_started_at"]) < A_WHILE
    assert 0 < app["gc_seconds"] < app["covered_seconds"]


@pytest.mark.rare
def test_failed_produces_are_counted_by_error_and_topic(broker: Broker, warehouse: sa.Engine, spark: Any) -> None:
    """Rejected: batches that are too large, records without a key, an old timestamp. Other records are accepted."""
    hour, servers = present_hour(), broker.bootstrap_servers
    made = [
        NewTopic("small", 1, config={"max.message.bytes": "2000"}),
        NewTopic("keyed", 1, config={"cleanup.policy": "compact"}),
    ]
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics(made).values():
        future.result(20)
    run_app(spark, "brokers", hour - HOUR, config_for(broker))
    refused: Counter[str] = Counter()
    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 1, "max.in.flight": 1, "linger.ms": 0})
    for _ in range(60):
        for topic, size in ((TOPIC, 10), ("small", 5000), ("keyed", 10)):
            producer.produce(topic, b"x" * size, on_delivery=lambda e, m: refused.update([m.topic()] if e else []))
    assert producer.flush(30) == 0 and refused == {"small": 60, "keyed": 60}
    run_app(spark, "brokers", hour, config_for(broker))
    of_broker = row(warehouse, BROKER_ROW, hour=hour, endpoint=broker.jolokia_url)
    assert (of_broker["produce_errors"], of_broker["failed_produces"]) == (
        {"MESSAGE_TOO_LARGE": 60, "INVALID_RECORD": 60},
        60,
    )
    topics = {name: row(warehouse, TOPIC_ROW, hour=hour, topic=name) for name in (TOPIC, "keyed", "small")}
    assert {name: round(t["failed_produces"]) for name, t in topics.items()} == {TOPIC: 0, "keyed": 60, "small": 0}
    assert topics["small"]["bytes_rejected"] > 60 * 5000 and topics[TOPIC]["bytes_rejected"] == 0
    detector = load_detectors()["produce_failing"]
    with warehouse.connect() as connection:
        [found] = findings(connection, detector, hour, Config(), detector.params_in_force(Config()))
    assert (found.reason, found.metrics["rejected_requests"]) == ("rejected", 120)
    assert set(found.affected) == {"topic:demo/keyed", "topic:demo/small"}


class Reading:
    """A consumer of topics that polls on another thread."""

    def __init__(self, broker: Broker, group: str, *topics: str, **settings: Any) -> None:
        servers = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": group}
        self.consumer = Consumer(servers | settings)
        self.consumer.subscribe([*topics])
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._poll)

    def _poll(self) -> None:
        while not self.stopped.is_set():
            self.consumer.poll(0.1)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()
        self.consumer.close()


@pytest.mark.rare
def test_a_topic_polled_empty_differs_from_one_that_shares_a_fetch_session_with_a_busy_topic(
    broker: Broker, warehouse: sa.Engine, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetches with `fetch.max.wait.ms` of 0, fetches that wait, and fetches that return early for a busy topic."""
    hour, servers = present_hour(), broker.bootstrap_servers
    (tmp_path / "streamwarden.yaml").write_text(config_for(broker).model_dump_json(include={"kafka"}))
    for name, value in ((CONFIG_ENV, str(tmp_path / "streamwarden.yaml")), (WAREHOUSE_ENV, os.environ[WAREHOUSE_ENV])):
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(name, 4) for name in ("empty", "waits", "beside", "busy")]).values():
        future.result(20)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    with (
        Reading(broker, "hasty", "empty", **{"fetch.wait.max.ms": 1}),
        Reading(broker, "patient", "waits"),
        Reading(broker, "both", "beside", "busy"),
    ):
        time.sleep(8)  # until the groups are stable
        run_app(spark, "brokers", hour - HOUR, config_for(broker))
        for _ in range(500):
            producer.produce("busy", b"x")
            producer.poll(0.02)
        run_app(spark, "brokers", hour, config_for(broker))
        run_app(spark, "consumer_groups", hour, config_for(broker))
    topics = {name: row(warehouse, TOPIC_ROW, hour=hour, topic=name) for name in ("empty", "waits", "beside", "busy")}
    a_second = {name: topic["fetch_requests"] / topic["covered_seconds"] / 4 for name, topic in topics.items()}
    assert a_second["waits"] < 3 and a_second["empty"] > 50 and a_second["beside"] == pytest.approx(a_second["busy"])
    assert 0 < round(topics["busy"]["produce_requests"]) <= 500 and topics["empty"]["produce_requests"] == 0
    detector = load_detectors()["topic_polled_empty"]
    params = detector.params_in_force(Config()) | {"fetches": 5}  # on a loaded host the busy topic is slow
    with warehouse.connect() as connection:
        found = {one.resource.columns["topic"]: one for one in findings(connection, detector, hour, Config(), params)}
    assert {topic: one.reason for topic, one in found.items()} == {"empty": "polled", "beside": "busy_session"}
    assert (found["empty"].metrics["group_ids"], found["empty"].metrics["client_id"]) == ("hasty", "hasty")


@pytest.mark.rare
def test_a_log_that_the_cleaner_marked_uncleanable_is_reported(
    tmp_path: Path, warehouse: sa.Engine, spark: Any
) -> None:
    """A closed segment is corrupted on disk; before that the detector reports no finding."""
    hour = present_hour()
    with Broker(tmp_path, settings={"log.cleaner.backoff.ms": "500"}) as broker:
        config, admin = config_for(broker), AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        settings = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
        lag = {"min.compaction.lag.ms": "60000"}
        admin.create_topics([NewTopic("state", 1, config=settings | lag)])["state"].result(20)
        for _ in range(3):  # segments roll by time
            produce(broker, 50, "state")
            time.sleep(1.2)
        assert finding_of(broker, spark, warehouse, hour, config)["reason"] == "cleaner_running"
        segment = min(broker.log_folder.glob("state-0/*.log"))
        with segment.open("r+b") as file:
            file.seek(200)
            file.write(b"\xff" * 3000)
        topic = ConfigResource(ConfigResource.Type.TOPIC, "state", set_config=settings)
        admin.alter_configs([topic])[topic].result(20)
        bean = f"{broker.jolokia_url}/read/kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,*"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(
            attributes["Value"] for attributes in httpx.get(bean).json()["value"].values()
        ):
            time.sleep(0.5)
        found = finding_of(broker, spark, warehouse, hour, config)
    assert (found["reason"], found["uncleanable_partitions"], found["dead_cleaner_threads"]) == ("uncleanable", 1, 0)
    assert found["uncleanable_bytes"] > 5_000 and found["cleaner_last_run_seconds"] < 60


def finding_of(broker: Broker, spark: Any, warehouse: sa.Engine, hour: datetime, config: Config) -> dict[str, Any]:
    """The finding of compaction_stalled on the broker now."""
    run_app(spark, "brokers", hour, config)
    detector = load_detectors()["compaction_stalled"]
    with warehouse.connect() as connection:
        found = findings(connection, detector, hour, Config(), detector.params_in_force(Config()))
    return next({"reason": f.reason, **f.metrics} for f in found if f.metrics["endpoint"] == broker.jolokia_url)


@pytest.mark.rare
def test_a_broker_that_does_not_respond_has_a_row_of_nulls_and_a_gap(
    broker: Broker, warehouse: sa.Engine, spark: Any
) -> None:
    hour = present_hour()
    for _ in range(2):  # the second run adds no rows
        run_app(spark, "brokers", hour, config_for(broker))
    dead = row(warehouse, BROKER_ROW, hour=hour, endpoint=DEAD)
    assert dead["broker_id"] == 7 and dead["samples"] is None and dead["under_replicated_partitions"] is None
    gap = row(warehouse, "select * from detect.coverage where status <> 'complete'")
    assert (gap["status"], gap["message"]) == ("failed", "cannot connect (connection refused or unknown host)")
    assert row(warehouse, "select count(*) as n from metrics.broker_hourly")["n"] == 2


def test_a_past_hour_is_missing_not_empty(broker: Broker, warehouse: sa.Engine, spark: Any, tmp_path: Path) -> None:
    hour = present_hour() - 48 * HOUR
    rows = run_app(spark, "brokers", hour, config_for(broker))
    none = dict.fromkeys(("metrics.broker_sample", "metrics.broker_topic_sample", "metrics.topic_hourly"), 0)
    assert rows == none | {"metrics.broker_hourly": 0}, "which brokers there were then isn't known"
    coverage = row(
        warehouse, "select count(*) as n, min(status) as status, min(message) as message from detect.coverage"
    )
    assert (coverage["n"], coverage["status"]) == (2, "missing") and coverage["message"].startswith(
        "a JVM only knows the present"
    )


@pytest.mark.rare
def test_counters_of_brokers_over_different_times_are_summed_as_rates(spark: Any) -> None:
    """One broker restarted a minute before it was read: the covered time and bytes of the others stay the same."""
    began, read = datetime(2026, 1, 5, 10, tzinfo=UTC), datetime(2026, 1, 5, 11, tzinfo=UTC)
    restarted = read - timedelta(seconds=60)
    columns = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
    topic = '{"topic": "orders"}'
    now, before = [], []
    for endpoint, started, labels, value in (
        ("a", began - timedelta(days=9), "{}", 4_600_000.0),
        ("a", began - timedelta(days=9), topic, 4_600_000.0),
        ("b", restarted, "{}", 30_000.0),
        ("b", restarted, topic, 30_000.0),
    ):
        now.append(("c", endpoint, "bytes_out_total", labels, read, value, "counter", started))
        before.append(("c", endpoint, "bytes_out_total", labels, began, 1_000_000.0))
    sources = {
        "jmx": driver_rows(spark, now, f"{columns}, kind string, process_started_at timestamp"),
        "earlier_counters": driver_rows(spark, before, columns),
        "known_brokers": driver_rows(spark, [], "cluster string, endpoint string, known_broker_id int"),
    }
    [topic_row] = brokers.transform(sources, began, Config())["metrics.topic_hourly"].collect()
    assert (topic_row.covered_seconds, topic_row.bytes_out) == (3600, 3_600_000 + 60 * 30_000)


@pytest.mark.rare
def test_segments_and_connections_are_those_of_the_last_sample(spark: Any) -> None:
    """Summed by topic and by broker. A metric that a broker does not expose is null, not 0."""
    read = datetime(2026, 1, 5, 11, tzinfo=UTC)
    readings = [
        ("a", "log_segments", '{"topic": "orders"}', 7.0),
        ("a", "log_segments", '{"topic": "mails"}', 5.0),
        ("a", "client_connections", '{"client": "librdkafka", "listener": "PLAIN"}', 3.0),
        ("a", "client_connections", '{"client": "java", "listener": "PLAIN"}', 4.0),
        ("b", "log_bytes", '{"topic": "orders"}', 100.0),
    ]
    columns = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
    now = [("c", endpoint, metric, labels, read, value, "gauge", None) for endpoint, metric, labels, value in readings]
    sources = {
        "jmx": driver_rows(spark, now, f"{columns}, kind string, process_started_at timestamp"),
        "earlier_counters": driver_rows(spark, [], columns),
        "known_brokers": driver_rows(spark, [], "cluster string, endpoint string, known_broker_id int"),
    }
    jmx = [{"role": "broker", "cluster": "c", "url": f"http://{name}:1/jolokia"} for name in ("a", "b")]
    config = Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": "127.0.0.1:1"}], "jmx": jmx})
    sources["jmx"] = sources["jmx"].withColumn("endpoint", f.format_string("http://%s:1/jolokia", "endpoint"))
    made = brokers.transform(sources, read - HOUR, config)
    topics = {(row.endpoint[7], row.topic): row.segments for row in made["metrics.broker_topic_sample"].collect()}
    assert topics == {("a", "orders"): 7, ("a", "mails"): 5, ("b", "orders"): None}
    hourly = {
        row.endpoint[7]: (row.segments, row.client_connections) for row in made["metrics.broker_hourly"].collect()
    }
    assert hourly == {"a": (12, 7), "b": (None, None)}


@pytest.mark.rare
def test_bytes_read_from_tiered_storage_are_a_part_of_bytes_out(
    warehouse: sa.Engine, spark: Any, tmp_path: Path
) -> None:
    """Closed segments are only in the remote storage; the active one is on the disk."""
    hour, log = present_hour(), tmp_path / "broker" / "data" / f"{TOPIC}-0"
    with tiered_broker(tmp_path / "broker") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for made in admin.create_topics([NewTopic(TOPIC, 1, config=TIERED), NewTopic("local", 1)]).values():
            made.result(20)
        run_app(spark, "brokers", hour - HOUR, config_for(broker))
        for _ in range(30):
            produce(broker, 1000)  # requests are smaller than a segment
        produce(broker, 10, "local")
        deadline = time.monotonic() + 120
        while len([*log.glob("*.log")]) > 1:
            assert time.monotonic() < deadline, "closed segments are still on the disk"
            time.sleep(0.2)
        consume(broker, 30_000)
        run_app(spark, "brokers", hour, config_for(broker))
    here = row(warehouse, BROKER_ROW, hour=hour, endpoint=broker.jolokia_url)
    topic, local = (row(warehouse, TOPIC_ROW, hour=hour, topic=name) for name in (TOPIC, "local"))
    assert 2_000_000 < topic["remote_fetch_bytes"] < topic["bytes_out"] - 1000
    assert local["remote_fetch_bytes"] == 0
    assert here["remote_fetch_bytes_per_second"] * here["covered_seconds"] == pytest.approx(topic["remote_fetch_bytes"])
