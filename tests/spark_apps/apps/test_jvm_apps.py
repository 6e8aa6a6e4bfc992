"""App jvm_apps on a real Kafka Streams application: heap, RocksDB metrics, and the detector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import demo
import pytest
import sqlalchemy as sa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.jar_set import ensure
from demo.jars import JOLOKIA, STREAMS, classpath
from demo.process import Jvm, free_port
from streamwarden.base.config import Config

from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources.jmx import read_jmx
from spark_apps.submit import run_app
from tests.clock import present_hour
from tests.spark_apps.jolokia import wait_until
from tests.variations import rare_after

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MIB = 2**20
PARTITIONS = 4
RECORDS = 90_000
"""Enough records that processing is still in progress when the metrics are read, also on a loaded host."""
SAMPLED = timedelta(seconds=2.5)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result(20)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce("orders", key=f"customer-{number % 500}", value='{"amount": 1.5}')
        assert producer.flush(30) == 0
        yield running


@pytest.fixture(params=rare_after(1, ["bounded", "unbounded"]))
def orders(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The demo's application with one shared cache or with RocksDB's defaults: (which, URL of its Jolokia agent)."""
    port = free_port()
    app = Jvm(
        request.param,
        [
            str(Path(demo.__path__[0]) / "OrdersApp.java"),
            broker.bootstrap_servers,
            str(tmp_path / "state"),
            request.param,
        ],
        tmp_path,
        classpath=classpath(STREAMS),
        agent=ensure(JOLOKIA)[0],
        jolokia_port=port,
        options=["-Xmx160m"],
    )
    url = f"http://127.0.0.1:{port}/jolokia"
    with app:
        wait_for_stores(url)
        yield request.param, url


def wait_for_stores(url: str) -> None:
    wait_until(
        url,
        "kafka.streams:type=stream-state-metrics,*/size-all-mem-tables",
        lambda stores: len(stores) == 2 * PARTITIONS and all(s["size-all-mem-tables"] > MIB / 4 for s in stores),
    )


def test_memory_of_a_streams_application(orders: tuple[str, str], warehouse: sa.Engine, spark: Any) -> None:
    which, url = orders
    hour = present_hour()
    config = Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": "unused:9092"}],
            "jmx": [
                {"role": "app", "app": which, "cluster": "demo", "url": url, "memory_limit_bytes": 1024 * MIB},
                {"role": "app", "app": "silent", "cluster": "demo", "url": "http://127.0.0.1:1/jolokia"},
            ],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.5},
        }
    )
    run_app(spark, "jvm_apps", hour, config)
    with warehouse.connect() as connection:
        apps = connection.execute(sa.text("select * from metrics.jvm_app_hourly")).mappings().all()
        stores = connection.execute(sa.text("select * from metrics.state_store_memory_hourly")).mappings().all()
        nodes = connection.execute(sa.text("select * from metrics.stream_node_hourly")).mappings().all()
        clients = connection.execute(sa.text("select * from metrics.client_hourly")).mappings().all()
        of_topics = connection.execute(sa.text("select * from metrics.client_topic_hourly")).mappings().all()
    app = next(row for row in apps if row["app"] == which)
    silent = next(row for row in apps if row["app"] == "silent")
    assert silent["samples"] is None and silent["heap_max_bytes"] is None and silent["store_instances"] is None
    assert app["samples"] == 2 and app["application_id"] == "orders" and app["memory_limit_bytes"] == 1024 * MIB
    assert 0 < app["heap_used_after_gc_bytes"] < app["heap_max_bytes"] <= 160 * MIB
    assert app["non_heap_used_bytes"] > 20 * MIB and app["threads"] > 5
    assert app["stream_threads_alive"] == 2 and app["stream_threads_failed"] == 0
    assert 0 <= app["gc_seconds"] < app["covered_seconds"] and 0 < app["cpu_ratio"] <= 1 and app["cpu_seconds"] > 0
    assert 0 < app["system_cpu_ratio"] <= 1
    assert 0 <= app["producer_wait_seconds"] < app["covered_seconds"]
    assert app["throttled_ratio"] is app["pool_connections"] is None  # neither cgroup metrics nor a pool are exposed
    assert app["records_dropped"] == app["records_to_restore"] == 0 and app["poll_latency_max_ms"] > 0
    if which == "bounded":  # the other one starts with all records processed
        assert 0 < app["records_processed"] <= RECORDS
        assert app["process_latency_max_ms"] >= app["process_latency_mean_ms"] >= app["record_latency_ms"] >= 0
        check_clients(clients, of_topics)
        check_nodes({row["node"]: row for row in nodes})
    assert 0 < app["poll_ratio"] <= 1
    assert app["resident_bytes"] is None  # no MBean exposes it
    assert app["store_instances"] == 2 * PARTITIONS
    assert {(row["store"], row["kind"], row["tasks"], row["segments"]) for row in stores} == {
        ("customer-latest", "key_value", PARTITIONS, 1),
        ("customer-revenue", "window", PARTITIONS, 3),
    }
    if which == "bounded":
        assert app["rocksdb_shared_cache"] is True
        assert app["rocksdb_expected_bytes"] == 32 * MIB  # one cache, which holds the write buffers too
        assert app["rocksdb_measured_bytes"] < 40 * MIB
    else:
        assert app["rocksdb_shared_cache"] is False
        assert app["rocksdb_expected_bytes"] == PARTITIONS * (1 + 3) * (50 + 3 * 16) * MIB
        assert app["rocksdb_measured_bytes"] < app["rocksdb_expected_bytes"]


def check_nodes(nodes: dict[str, Any]) -> None:
    """The source node of orders, and both terminal nodes, one of which aggregates windows."""
    source, latest, windows = (
        nodes[f"KSTREAM-{name}"] for name in ("SOURCE-0000000000", "REDUCE-0000000001", "AGGREGATE-0000000002")
    )
    assert len(nodes) == 3 and source["topics"] == ["orders"]
    for node in (source, latest, windows):
        assert node["holds_back"] and node["subtopology"] == "0"
        assert node["readings"] == len(node["ages_ms"]) == 2 * PARTITIONS
        assert 0 < node["age_min_ms"] <= node["age_mean_ms"] <= node["age_max_ms"] < 600_000
    assert latest["topics"] is windows["topics"] is None
    # Their means are read one after the other, and records are processed meanwhile.
    assert source["age_mean_ms"] <= latest["age_mean_ms"] * 1.01


def check_clients(clients: Sequence[Any], of_topics: Sequence[Any]) -> None:
    """Each of two threads has a consumer, a producer, and a restore consumer, which was idle."""
    by_name = {(row["kind"], row["client_id"]): row for row in clients}
    threads = [f"orders-1-StreamThread-{n}" for n in (1, 2)]
    consumers = [by_name["consumer", f"{thread}-consumer"] for thread in threads]
    producers = [by_name["producer", f"{thread}-producer"] for thread in threads]
    restores = [by_name["consumer", f"orders-1-StateUpdater-{n}-restore-consumer"] for n in (1, 2)]
    assert len(by_name) == 6 and all(row["records"] == row["bytes"] == 0 for row in restores)
    assert 0 < sum(row["records"] for row in consumers) <= RECORDS
    for row in consumers:
        assert row["app"] == "bounded" and 0 < row["covered_seconds"] < 3600 and row["fetches"] > 0
        assert row["bytes"] < row["network_in_bytes"]  # includes batch headers and group responses
        assert row["poll_gap_max_ms"] > 0 and row["throttle_mean_ms"] == 0
        assert row["requests"] is row["record_errors"] is row["batch_mean_bytes"] is None
    for row in producers:
        assert row["records"] > 0 and row["requests"] > 0 and row["record_errors"] == row["buffer_exhausted"] == 0
        assert 0 < row["batch_mean_bytes"] <= 16384 and row["compression_ratio"] == 1 and row["throttle_mean_ms"] == 0
        assert 0 <= row["queue_mean_ms"] <= row["queue_max_ms"] and row["fetches"] is row["poll_gap_max_ms"] is None
    changelogs = {f"orders-customer-{store}-changelog" for store in ("latest", "revenue")}
    for producer in producers:
        mine = [row for row in of_topics if (row["kind"], row["client_id"]) == ("producer", producer["client_id"])]
        assert {row["topic"] for row in mine} == changelogs and all(row["record_errors"] == 0 for row in mine)
        assert producer["bytes"] > 0  # read a moment before or after the bytes by topic
        assert sum(row["bytes"] for row in mine) == pytest.approx(producer["bytes"], rel=0.05)
    read = [row for row in of_topics if row["kind"] == "consumer"]
    assert {row["topic"] for row in read} == {"orders"} and all(row["record_errors"] is None for row in read)
    assert sum(row["records"] for row in read) <= RECORDS and all(row["bytes"] > row["records"] for row in read)


@pytest.mark.rare
def test_a_jvm_without_kafka_streams(broker: Broker, spark: Any) -> None:
    endpoint = {"role": "app", "app": "plain", "cluster": "demo", "url": broker.jolokia_url}
    config = Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": "unused:9092"}],
            "jmx": [endpoint],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.2},
        }
    )
    from spark_apps.apps import jvm_apps

    samples = read_jmx(spark, config, present_hour(), "app")
    empty = driver_rows(
        spark, [], "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
    )
    frames = jvm_apps.transform({"jmx": samples, "earlier_counters": empty}, datetime.now(UTC), config)
    (row,) = frames["metrics.jvm_app_hourly"].collect()
    assert row["application_id"] is None and row["store_instances"] is None and row["heap_max_bytes"] > 0
    assert frames["metrics.state_store_memory_hourly"].count() == frames["metrics.stream_node_hourly"].count() == 0
    assert frames["metrics.client_hourly"].count() == frames["metrics.client_topic_hourly"].count() == 0


def test_the_restore_rate_is_the_decrease_of_the_remaining_records(spark: Any) -> None:
    """No rate where the gauge rose, stayed, or fell to 0, nor from one sample: the time of the end is unknown."""
    from spark_apps.apps import jvm_apps

    left = {"falls": (9000, 8000, 6000), "rises": (10, 20), "stands": (7, 7), "done": (50, 0), "once": (5,), "none": ()}
    config = Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": "unused:9092"}],
            "jmx": [
                {"role": "app", "app": name, "cluster": "demo", "url": f"http://{name}:1/jolokia"} for name in left
            ],
        }
    )
    began = datetime(2026, 1, 5, 11, tzinfo=UTC)
    rows = [
        (
            "demo",
            "app",
            name,
            f"http://{name}:1/jolokia",
            "records_to_restore",
            "{}",
            began + n * SAMPLED,
            "gauge",
            value,
        )
        for name, values in left.items()
        for n, value in enumerate(map(float, values))
    ]
    columns = "cluster string, role string, app string, endpoint string, metric string, labels string, at timestamp"
    samples = driver_rows(spark, rows, f"{columns}, kind string, value double").selectExpr(
        "*", "cast(null as timestamp) as process_started_at"
    )
    empty = driver_rows(
        spark, [], "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
    )
    frames = jvm_apps.transform({"jmx": samples, "earlier_counters": empty}, began, config)
    found = {row["app"]: row for row in frames["metrics.jvm_app_hourly"].collect()}
    rates = {name: row["restored_records_per_second"] for name, row in found.items()}
    assert rates == {name: 600.0 if name == "falls" else None for name in left}
    assert found["falls"]["records_to_restore"] == 9000 and found["none"]["records_to_restore"] is None
