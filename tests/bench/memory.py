"""RocksDB memory of the demo's real Streams application: reported memory with full caches against the expected memory.

Records are produced until the block caches are full, once with one cache and write buffer manager for all stores, once
with the RocksDB defaults. For write buffers the configuration is only an upper bound: while flushes keep up, one of
three is used.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import demo
import httpx
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.jar_set import ensure
from demo.jars import JOLOKIA, STREAMS, classpath
from demo.process import Jvm, free_port
from pyspark.sql import Row, SparkSession
from streamwarden.base.config import Config
from streamwarden.base.hours import start_of_hour

from spark_apps.apps import jvm_apps
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.session import start_session
from spark_apps.sources.jmx import read_jmx
from tests.bench.metric import Metric

CUSTOMERS, RECORD_BYTES, RECORDS_PER_SECOND = 60_000, 2000, 8000
GROWS, STILL_SECONDS, FILL_SECONDS = 1.01, 30, 300
_EARLIER = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"


def measure() -> list[Metric]:
    """Deviations from the expected memory, in percent."""
    spark = start_session("bench", master="local[2]")
    try:
        with TemporaryDirectory() as folder, Broker(Path(folder) / "broker") as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            kept = {"retention.bytes": str(256 * 2**20), "segment.bytes": str(64 * 2**20)}
            admin.create_topics([NewTopic("orders", 1, config=kept)])["orders"].result(60)
            with _feeding(broker):
                shared, _ = _full(spark, broker, Path(folder) / "bounded", "bounded")
                own, stores = _full(spark, broker, Path(folder) / "unbounded", "unbounded")
    finally:
        spark.stop()
    store = next(s for s in stores if s["store"] == "customer-latest")
    cache = store["block_cache_capacity_bytes"] * store["tasks"]
    return [
        Metric(
            "RocksDB with a shared cache, full: reported against expected",
            _deviation(shared["rocksdb_measured_bytes"], shared["rocksdb_expected_bytes"]), "%", 10,
        ),
        Metric(
            "own block caches, full: reported against expected",
            _deviation(store["block_cache_usage_bytes"], cache), "%", 10,
        ),
        Metric(
            "RocksDB with own caches: reported, of a bound with all write buffers",
            100 * own["rocksdb_measured_bytes"] / own["rocksdb_expected_bytes"], "%", 100,
        ),
    ]  # fmt: skip


def _deviation(reported: float, expected: float) -> float:
    return abs(100 * reported / expected - 100)


def _full(spark: SparkSession, broker: Broker, folder: Path, memory: str) -> tuple[Row, list[Row]]:
    """Rows of the app `jvm_apps` for the process and its stores once its caches are full."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/jolokia"
    source = Path(demo.__path__[0]) / "OrdersApp.java"
    arguments = [str(source), broker.bootstrap_servers, str(folder / "state"), memory]
    config = Config.model_validate(
        {
            "kafka": [{"name": "c", "bootstrap_servers": broker.bootstrap_servers}],
            "jmx": [{"role": "app", "app": memory, "cluster": "c", "url": url}],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 1},
        }
    )
    with Jvm(
        memory, arguments, folder, classpath=classpath(STREAMS), agent=ensure(JOLOKIA)[0], jolokia_port=port,
        options=["-Xmx256m"],
    ):  # fmt: skip
        _wait_until_full(url)
        hour = start_of_hour(datetime.now(UTC))
        sources = {"jmx": read_jmx(spark, config, hour, "app"), "earlier_counters": driver_rows(spark, [], _EARLIER)}
        sources["jmx"].persist().count()
        frames = jvm_apps.transform(sources, hour, config)
        (process,) = frames["metrics.jvm_app_hourly"].collect()
        return process, frames["metrics.state_store_memory_hourly"].collect()


def _wait_until_full(url: str) -> None:
    """Waits until the used block cache of the store of orders no longer grows."""
    bean = f"{url}/read/kafka.streams:type=stream-state-metrics,rocksdb-state-id=customer-latest,*"
    most, since = 0.0, time.monotonic()
    deadline = since + FILL_SECONDS
    while time.monotonic() < deadline:
        try:
            for output in httpx.get(bean, timeout=5).json().get("value", {}).values():
                usage = output.get("block-cache-usage", 0.0)  # a store that is being opened hasn't any figure yet
                if usage > max(most * GROWS, output.get("block-cache-capacity", 0.0) / 2):
                    most, since = usage, time.monotonic()
        except httpx.HTTPError:
            pass  # the agent isn't listening yet
        if most and time.monotonic() - since > STILL_SECONDS:
            return
        time.sleep(1)
    raise AssertionError(f"the block cache still grew after {FILL_SECONDS} s: {most:,.0f} bytes")


@contextmanager
def _feeding(broker: Broker) -> Iterator[None]:
    """Produces large orders of random customers at a constant rate during the block."""
    stopping = threading.Event()

    def feed() -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20})
        chance, note = random.Random(1), "x" * RECORD_BYTES  # noqa: S311 test data
        while not stopping.wait(0.1):
            for _ in range(RECORDS_PER_SECOND // 10):
                order = f'{{"amount": 1.5, "note": "{note}"}}'
                producer.produce("orders", order, key=f"customer-{chance.randrange(CUSTOMERS)}")
            producer.flush(10)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
