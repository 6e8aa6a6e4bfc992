"""The catalog: MBeans to metrics; values that are not numbers are null."""

from __future__ import annotations

import re

import pytest

from spark_apps.sources.jmx_mbeans import MBEANS
from spark_apps.sources.jmx_metrics import METRICS
from spark_apps.sources.jmx_readings import beans_of, key_properties, number, readings_of
from spark_apps.sources.known_series import CONTAINER, NODE_SERIES, RESIDENT, STARTED

ROCKSDB = next(bean for bean in MBEANS if "rocksdb-state-id" in bean.pattern)
FLUSH = next(bean for bean in MBEANS if "LogFlushStats" in bean.pattern)
STREAMS = next(bean for bean in MBEANS if bean.pattern.endswith("type=stream-metrics"))
LOG = next(bean for bean in MBEANS if "type=Log," in bean.pattern)
FETCH = next(bean for bean in MBEANS if bean.pattern.endswith("type=Fetch"))
MEMORY = next(bean for bean in MBEANS if bean.pattern.endswith("type=Memory"))
CLIENTS = next(bean for bean in MBEANS if "clientSoftwareName" in bean.pattern)
NODES = next(bean for bean in MBEANS if "stream-processor-node-metrics" in bean.pattern)
PRODUCERS = next(bean for bean in MBEANS if bean.pattern.startswith("kafka.producer:"))
POOLS = next(bean for bean in MBEANS if "hikari" in bean.pattern)
TOPICS = next(bean for bean in MBEANS if "stream-topic-metrics" in bean.pattern)


def test_readings_and_metrics_of_the_catalog_are_the_same() -> None:
    read = {reading.metric for bean in MBEANS for reading in bean.readings}
    read |= {series.reading.metric for series in NODE_SERIES} - {STARTED} | {RESIDENT, *CONTAINER.values()}
    assert read == set(METRICS)


def test_metric_names_contain_their_units() -> None:
    for name, kind in METRICS.items():
        assert kind != "counter" or name.endswith("_total"), name
        assert kind != "percentile" or name.endswith("_ms"), name


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (3, 3.0),
        (0, 0.0),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (None, None),
        (True, None),
        ("7", None),
    ],
)
def test_number(raw: object, value: float | None) -> None:
    assert number(raw) == value


def test_names_of_beans_may_be_quoted() -> None:
    name = r'kafka.server:type=Fetch,client-id="a,b=\"c\"",topic=x.y'
    assert key_properties(name) == {"type": "Fetch", "client-id": 'a,b="c"', "topic": "x.y"}


def test_a_mean_of_all_calls_times_their_number_is_a_counter() -> None:
    found = {"kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs": {"Count": 10, "Mean": 2.5, "95thPercentile": 9}}
    read = {metric: value for metric, _, value in readings_of(FLUSH, found)}
    assert read == {"log_flushes_total": 10, "log_flush_ms_total": 25, "log_flush_p95_ms": 9}


def test_segments_of_a_topic_are_added_up() -> None:
    bean = next(bean for bean in MBEANS if bean.pattern == "kafka.log:type=Log,name=NumLogSegments")
    found = {
        f"{bean.pattern},topic=a,partition=0": {"Value": 3},
        f"{bean.pattern},topic=a,partition=1": {"Value": 4},
        f"{bean.pattern},topic=a,partition=1,is-future=true": {"Value": 100},
    }
    assert list(readings_of(bean, found)) == [("log_segments", {"topic": "a"}, 7)]
    assert bean not in beans_of("broker", 0, 2) and bean in beans_of("broker", 1, 2)


def test_partitions_of_a_topic_are_added_up_and_an_unknown_one_makes_the_sum_unknown() -> None:
    found = {
        "kafka.log:type=Log,name=Size,topic=a,partition=0": {"Value": 5},
        "kafka.log:type=Log,name=Size,topic=a,partition=1": {"Value": 6},
        "kafka.log:type=Log,name=Size,topic=a,partition=2,is-future=true": {"Value": 100},
        "kafka.log:type=Log,name=Size,topic=b,partition=0": {"Value": None},
        "kafka.log:type=Log,name=Size,topic=b,partition=1": {"Value": 7},
    }
    read = {labels["topic"]: value for _, labels, value in readings_of(LOG, found)}
    assert read == {"a": 11, "b": None}


def test_strings_become_labels_and_failed_attributes_are_null() -> None:
    found = {
        "kafka.streams:type=stream-metrics,client-id=a": {
            "application-id": "orders",
            "state": "ERROR",
            "alive-stream-threads": 2,
            "failed-stream-threads": "ERROR: java.lang.IllegalStateException",
        },
        "kafka.streams:type=stream-metrics,client-id=a,process-id=p": {"client-state": 6},
        "kafka.streams:type=stream-metrics,client-id=b,process-id=p": {"client-state": 2},
    }
    assert list(readings_of(STREAMS, found)) == [
        ("streams_info", {"application_id": "orders"}, 1.0),
        ("streams_state", {"state": "ERROR"}, 1.0),
        ("stream_threads_alive", {}, 2.0),
        ("stream_threads_failed", {}, None),
        ("streams_state", {"state": "RUNNING"}, 1.0),
    ]


@pytest.mark.parametrize("number", [7, -1, None, "RUNNING"])
def test_an_unknown_client_state_number_is_null(number: object) -> None:
    found = {"kafka.streams:type=stream-metrics,client-id=a,process-id=p": {"client-state": number}}
    assert list(readings_of(STREAMS, found)) == [("streams_state", {}, None)]


def test_an_unlimited_heap_has_no_maximum() -> None:
    found = {"java.lang:type=Memory": {"HeapMemoryUsage": {"used": 5, "max": -1}, "NonHeapMemoryUsage": None}}
    read = {metric: value for metric, _, value in readings_of(MEMORY, found)}
    assert read == {"heap_used_bytes": 5, "heap_max_bytes": None, "non_heap_used_bytes": None}


def test_stores_are_distinguished_by_task_not_by_thread() -> None:
    found = {
        "kafka.streams:type=stream-state-metrics,thread-id=t1,task-id=0_1,rocksdb-state-id=s": {"estimate-num-keys": 4}
    }
    assert list(readings_of(ROCKSDB, found)) == [("keys", {"store": "s", "task": "0_1", "kind": "key_value"}, 4.0)]


def test_record_ages_are_negative_with_a_clock_ahead_and_nodes_expose_their_sources() -> None:
    """A response of a real application at recording level INFO: only windowed aggregations expose window metrics."""
    thread = "thread-id=t1,task-id=1_0,processor-node-id"
    found = {
        f"kafka.streams:type=stream-processor-node-metrics,{thread}=sink": {
            "record-e2e-latency-min": -40.0,
            "record-e2e-latency-avg": 12.5,
            "record-e2e-latency-max": None,
        },
        f"kafka.streams:type=stream-processor-node-metrics,{thread}=windows": {
            "window-aggregate-final-emit-total": 0.0
        },
    }
    of = {"task": "1_0", "node": "sink"}
    assert list(readings_of(NODES, found)) == [
        ("record_age_min_ms", of, -40.0),
        ("record_age_mean_ms", of, 12.5),
        ("record_age_max_ms", of, None),
        ("holds_back", {"task": "1_0", "node": "windows"}, 1.0),
    ]
    found = {
        "kafka.streams:type=stream-topic-metrics,task-id=0_0,processor-node-id=in,topic=a": {
            "records-consumed-total": 0
        },
        "kafka.streams:type=stream-topic-metrics,task-id=0_1,processor-node-id=in,topic=a": {
            "records-consumed-total": 7
        },
        "kafka.streams:type=stream-topic-metrics,task-id=0_0,processor-node-id=out,topic=b": {
            "records-produced-total": 7
        },
    }
    assert list(readings_of(TOPICS, found)) == [("reads_topic", {"node": "in", "topic": "a"}, 1.0)]


def test_wait_times_of_threads_are_summed_over_producers_and_pools() -> None:
    nanoseconds = {"bufferpool-wait-time-ns-total": 2e9, "metadata-wait-time-ns-total": 5e8}
    producers = {f"kafka.producer:type=producer-metrics,client-id={n}-producer": nanoseconds for n in (1, 2)}
    assert list(readings_of(PRODUCERS, producers)) == [("producer_wait_seconds_total", {}, pytest.approx(5))]
    pool = {"TotalConnections": 10, "ActiveConnections": 8, "ThreadsAwaitingConnection": 0, "IdleConnections": 2}
    pools = {f"com.zaxxer.hikari:type=Pool ({name})": pool for name in ("HikariPool-1", "prices")}
    assert {metric: value for metric, _, value in readings_of(POOLS, pools)} == {
        "pool_connections": 20, "pool_connections_in_use": 16, "pool_threads_waiting": 0,
    }  # fmt: skip


def test_mbeans_with_many_attributes_are_read_less_often() -> None:
    def topics(sample: int) -> list[str]:
        return [name for bean in beans_of("broker", sample, 3) for name in re.findall(r"name=(\w+)", bean.pattern)]

    assert "BytesInPerSec" in topics(0) and "Size" not in topics(0)
    assert "BytesInPerSec" not in topics(1) and "UnderReplicatedPartitions" in topics(1)
    assert "BytesInPerSec" in topics(2) and "Size" in topics(2)


def test_a_client_is_identified_by_client_id_and_user() -> None:
    found = {
        "kafka.server:type=Fetch": {"queue-size": 0.0},
        "kafka.server:type=Fetch,client-id=notebook": {"byte-rate": 5.0, "throttle-time": None},
        "kafka.server:type=Fetch,user=ann,client-id=notebook": {"byte-rate": 7.0},
    }
    assert list(readings_of(FETCH, found)) == [
        ("client_fetch_bytes_per_second", {"client": "notebook"}, 5.0),
        ("client_fetch_bytes_per_second", {"client": "notebook", "user": "ann"}, 7.0),
    ]


def test_client_software_is_summed_over_network_threads() -> None:
    name = "kafka.server:type=socket-server-metrics,clientSoftwareName={},clientSoftwareVersion={},listener=PUBLIC"
    java, unknown = name.format("apache-kafka-java", "3.2.0"), name.format("unknown", "unknown")
    found = {
        f"{java},networkProcessor=0": {"connections": 2},
        f"{java},networkProcessor=1": {"connections": 3},
        f"{unknown},networkProcessor=1": {"connections": 1},
    }
    listener = {"listener": "PUBLIC"}
    assert list(readings_of(CLIENTS, found)) == [
        ("client_connections", {"client": "apache-kafka-java", "version": "3.2.0"} | listener, 5.0),
        ("client_connections", {"client": "unknown", "version": "unknown"} | listener, 1.0),
    ]
