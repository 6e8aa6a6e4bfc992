"""JVMs by Prometheus' exposition: 30 brokers with 1,000 topics each, then 200 applications.

A run takes three samples, 5 s apart: 10 s of it are waiting.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

from pyspark.sql import SparkSession
from streamwarden.base.config import Config
from streamwarden.base.hours import start_of_hour

from spark_apps.runtime.session import start_session
from spark_apps.sources.jmx import read_jmx
from spark_apps.sources.jmx_mbeans import Role
from tests.bench.metric import Metric
from tests.bench.serving import serving

BROKERS, TOPICS, PARTITIONS, APPS = 30, 1000, 3, 200
_RATES = ("Count", "FifteenMinuteRate", "FiveMinuteRate", "MeanRate", "OneMinuteRate")
_OF_TOPIC = (
    "BytesInPerSec",
    "BytesOutPerSec",
    "MessagesInPerSec",
    "TotalFetchRequestsPerSec",
    "TotalProduceRequestsPerSec",
    "FetchMessageConversionsPerSec",
    "ProduceMessageConversionsPerSec",
    "BytesRejectedPerSec",
)
_OF_PARTITION = (
    ("log_Log", "Size", "LogStartOffset", "LogEndOffset", "NumLogSegments"),
    ("cluster_Partition", "UnderReplicated", "InSyncReplicasCount", "ReplicasCount", "AtMinIsr"),
)
_OTHERS = 10_000
"""Series of a broker that have nothing to do with topics: a real page has some eleven thousand."""


def measure() -> list[Metric]:
    """Seconds of both."""
    spark = start_session("bench", master="local[2]")
    try:
        with serving(_serve) as address:
            page_mb = len(_broker_page()) / 1e6
            _read(spark, "app", [f"{address}/app/warm"])
            brokers, rows = _read(spark, "broker", [f"{address}/broker/{n}" for n in range(BROKERS)])
            apps, _ = _read(spark, "app", [f"{address}/app/{n}" for n in range(APPS)])
    finally:
        spark.stop()
    return [
        Metric(f"{BROKERS} brokers × {TOPICS} topics ({page_mb:.0f} MB a page, {rows:,} rows)", brokers, "s", 20),
        Metric(f"{APPS} applications by the same way", apps, "s", 20),
    ]


def _read(spark: SparkSession, role: Role, urls: list[str]) -> tuple[float, int]:
    """Seconds and rows."""
    jvms = [
        {"role": role, "app": "a", "cluster": "c", "protocol": "prometheus", "url": url, "timeout_seconds": 10}
        for url in urls
    ]
    config = Config.model_validate({"kafka": [{"name": "c", "bootstrap_servers": "b"}], "jmx": jvms})
    started = time.monotonic()
    frame = read_jmx(spark, config, start_of_hour(datetime.now(UTC)), role)
    # The pages do not expose all metrics, which is a gap of its own: the others mean that a page was not read.
    output = frame.selectExpr(
        "count(metric) as rows", "count(distinct endpoint) as jvms", "min(if(gap like 'missing: %', null, gap)) as gap"
    ).collect()
    seconds = time.monotonic() - started
    if output[0]["gap"] or output[0]["jvms"] != len(urls):
        raise AssertionError(f"not all endpoints answered: {output[0]}")
    return seconds, output[0]["rows"]


def _serve(output: Connection) -> None:
    pages = {"broker": _broker_page(), "app": _app_page()}

    class Exporter(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            page = pages[self.path.split("/")[1]]
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Exporter)
    output.send(f"http://127.0.0.1:{server.server_port}")
    server.serve_forever()


def _broker_page() -> bytes:
    """As the JMX exporter writes it without rules."""
    topics = [f"orders.domain-{topic:04d}.events" for topic in range(TOPICS)]
    lines = [
        f'kafka_server_BrokerTopicMetrics_{rate}{{name="{name}",topic="{topic}"}} {number}.5E7'
        for rate in _RATES
        for name in _OF_TOPIC
        for number, topic in enumerate(topics)
    ]
    lines += [f'kafka_server_BrokerTopicMetrics_Count{{name="{name}"}} 1.0E12' for name in _OF_TOPIC]
    lines += [
        f'kafka_{family}_Value{{name="{name}",partition="{partition}",topic="{topic}"}} {partition}.0'
        for family, *names in _OF_PARTITION
        for name in names
        for topic in topics
        for partition in range(PARTITIONS)
    ]
    lines += [f'kafka_network_RequestMetrics_Max{{name="N{n}",request="Metadata"}} {n}.0' for n in range(_OTHERS)]
    return _app_page() + "\n".join([*lines, ""]).encode()


def _app_page() -> bytes:
    stores = [f'rocksdb_state_id="store-{store}",task_id="0_{task}"' for store in range(5) for task in range(8)]
    metrics = ("size_all_mem_tables", "block_cache_usage", "block_cache_capacity", "put_rate", "get_rate", "flush_rate")
    lines = [
        "process_start_time_seconds 1.7952551756E9",
        'jvm_memory_used_bytes{area="heap"} 9.0567656E7',
        'jvm_memory_max_bytes{area="heap"} 2.59522560E8',
        "java_lang_OperatingSystem_ProcessCpuTime 3.17E9",
        *(
            f'kafka_streams_stream_state_metrics_{metric}{{{store},thread_id="t"}} 1.0E6'
            for metric in metrics
            for store in stores
        ),
    ]
    return "\n".join([*lines, ""]).encode()
