"""Exporters' pages: naming dialects, invalid numbers, and invalid pages. Values equal those over Jolokia."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import demo
import httpx
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.jar_set import ensure
from demo.jars import JOLOKIA, STREAMS, classpath
from demo.process import Jvm, free_port
from pydantic import ValidationError
from streamwarden.base.config import CONFIG_ENV, JmxEndpoint
from streamwarden.base.hours import start_of_hour

from spark_apps.sources.jmx import Jmx
from spark_apps.sources.jmx_endpoint import Refused
from spark_apps.sources.jmx_metrics import METRICS
from spark_apps.sources.jmx_series import names_of, readings_of
from spark_apps.sources.prometheus import _started_at, series_of
from tests.spark_apps.sources.agents import PAGE, Agents, running_agents, without_coverage
from tests.spark_apps.sources.exporter_rules import EXAMPLE
from tests.spark_apps.sources.jmx_exporter import WITHOUT_RULES, exposed_and_asked, in_jvms_started_here
from tests.spark_apps.sources.node_page import BOOTED_AT, node_page


@pytest.fixture
def agents() -> Iterator[Agents]:
    with running_agents() as running:
        yield running


def ask(
    *addresses: str,
    protocol: str = "prometheus",
    role: str = "broker",
    timeout_seconds: float = 60,
    section: str = "jmx",
    **options: Any,
) -> list[dict[str, Any]]:
    """Rows of the source, read here instead of in a Spark task."""
    endpoints = [
        {
            "cluster": "demo",
            "role": role,
            "app": None,
            "protocol": protocol,
            "address": address,
            "has_credentials": "locked" in address,
            "timeout_seconds": timeout_seconds,
            "section": section,
        }
        for address in addresses
    ]
    given = {"samples": 2, "sample_seconds": 0.1, "partitions": 1, **options}
    given |= {"endpoints": json.dumps(endpoints), "hour": start_of_hour(datetime.now(UTC)).isoformat()}
    source = Jmx({key: str(value) for key, value in given.items()})
    reader = source.reader(source.schema())
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return without_coverage(pa.Table.from_batches(batches).to_pylist())


def gap_of(rows: list[dict[str, Any]], address: str) -> str | None:
    gaps = {row["gap"] for row in rows if row["endpoint"] == address and row["gap"]}
    assert len(gaps) <= 1
    return gaps.pop() if gaps else None


def values_of(page: str, role: Any = "broker") -> dict[tuple[str, str], float | None]:
    """(metric, labels) → value of a page's last sample."""
    names = names_of(role, 1, 2)
    found = list(readings_of(names, series_of(page.encode(), names)))
    values = {
        (metric, ",".join(f"{k}={v}" for k, v in sorted(labels.items()))): value for metric, labels, value in found
    }
    assert len(values) == len(found), "a series was exposed twice"
    return values


def test_a_page_is_read_in_every_sample(agents: Agents) -> None:
    rows = ask(agents.url("good"))
    assert gap_of(rows, agents.url("good")) is None and agents.asked == ["/good", "/good"]
    values = {(row["metric"], row["labels"]): row["value"] for row in rows}
    assert values["bytes_in_total", "{}"] == 700 and values["bytes_in_total", '{"topic": "a"}'] == 300
    assert (
        values["log_bytes", '{"topic": "a"}'] == 11
    )  # sum over partitions, without the future replica on another disk
    assert values["heap_used_bytes", "{}"] == 90567656 and values["cpu_seconds_total", "{}"] == 2
    assert values["heap_max_bytes", "{}"] is None  # -1
    assert values["under_replicated_partitions", "{}"] is None and values["under_min_isr_partitions", "{}"] is None
    assert {row["kind"] for row in rows if row["metric"] == "bytes_in_total"} == {"counter"}
    assert {row["process_started_at"] for row in rows} == {datetime.fromtimestamp(1795255175.6, UTC)}
    assert sum(row["metric"] == "log_bytes" for row in rows) == 1  # many attributes: in the last sample only
    assert "process_start_seconds" not in {row["metric"] for row in rows}


def test_a_truncated_page_that_http_does_not_detect(agents: Agents) -> None:
    rows = ask(agents.url("half"))
    assert gap_of(rows, agents.url("half")) == "failed: the response ends in the middle of a line"
    assert [row["metric"] for row in rows] == [None]


@pytest.mark.parametrize("failed", ["jmx_scrape_error 1.0", 'jmx_scrape_error{job="a",} 1', "jmx_scrape_error 1.0\r"])
def test_a_page_of_an_exporter_that_could_not_read_all_mbeans(failed: str) -> None:
    page, names = "jvm_threads_current 3\n%s\n", names_of("app", 0, 1)
    assert list(series_of((page % "jmx_scrape_error 0.0").encode(), names))
    with pytest.raises(Refused, match="the exporter could not read all MBeans"):
        list(series_of((page % failed).encode(), names))


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n\xff", "the response is not text"),
        (b"", "the response is not in the Prometheus exposition format"),
        (b"{}", "the response is not in the Prometheus exposition format"),
        (b"# only\n# comments\n", "the response is not in the Prometheus exposition format"),
        (b"node_load1 0.5\n", "the page has no expected metrics"),
        (PAGE.replace('topic="a",} 300.0', 'topic="a').encode(), "line 9 of the response"),
        (PAGE.replace("4.0", "four").encode(), "line 6 of the response"),
        (PAGE.replace("4.0", "4.0 5.0 6.0").encode(), "line 6 of the response"),
    ],
)
def test_invalid_pages(agents: Agents, page: bytes, reason: str) -> None:
    address = agents.serve(page)
    rows = ask(address)
    assert (gap_of(rows, address) or "").startswith(f"failed: {reason}")
    assert [row["metric"] for row in rows] == [None]


def test_all_syntax_of_the_exposition_format() -> None:
    page = (
        "\r\n# a comment\n#\n"
        'kafka_log_log_size { topic = "a b,c}" , partition="0" , }\t7 1795255179000\r\n'
        'kafka_log_log_size{topic="q\\"u\\\\o\\nte",partition="0"} 8\n'
        "jvm_threads_current 5\n"  # not a metric of brokers
        'process_open_fds 1 # {trace="x"} 1\n'
        "# EOF\n"
    )
    assert values_of(page) == {
        ("log_bytes", "topic=a b,c}"): 7,
        ("log_bytes", 'topic=q"u\\o\nte'): 8,
        ("open_file_descriptors", ""): 1,
    }


def test_names_of_the_exporter_s_example_rules() -> None:
    page = """kafka_server_brokertopicmetrics_bytesin_total 700
kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 300
kafka_log_log_size{partition="0",topic="a"} 5
kafka_log_log_numlogsegments{partition="0",topic="a"} 2
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 18
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 36
kafka_network_requestmetrics_totaltimems{request="Metadata",quantile="0.99"} 99
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 3
kafka_log_logflushstats_logflushrateandtimems{quantile="0.95"} 12
kafka_server_replicamanager_underreplicatedpartitions 2
"""
    assert values_of(page) == {
        ("bytes_in_total", ""): 700,
        ("bytes_in_total", "topic=a"): 300,
        ("log_bytes", "topic=a"): 5,
        ("log_segments", "topic=a"): 2,
        ("request_median_ms", "request=Produce"): 18,
        ("request_p99_ms", "request=Produce"): 36,
        ("requests_total", "request=Produce"): 3,
        ("log_flush_p95_ms", ""): 12,
        ("under_replicated_partitions", ""): 2,
    }


def test_kafka_streams_by_the_jmx_exporter() -> None:
    page = """kafka_streams_stream_metrics_client_state{application_id="orders",client_id="c",process_id="p"} 2
kafka_streams_stream_metrics_alive_stream_threads{client_id="c"} 2
kafka_streams_stream_state_metrics_block_cache_usage{rocksdb_state_id="s",task_id="0_1",thread_id="t1"} 26608
kafka_streams_stream_state_metrics_block_cache_usage{rocksdb_window_state_id="w",task_id="0_1",thread_id="t1"} 88
kafka_streams_stream_state_metrics_put_rate{rocksdb_window_state_id="w",task_id="0_1",thread_id="t1"} NaN
kafka_producer_producer_metrics_batch_size_avg{client_id="p"} 512.5
kafka_consumer_consumer_fetch_manager_metrics_records_consumed_total{client_id="c"} 60
kafka_consumer_consumer_fetch_manager_metrics_records_consumed{client_id="c",topic="t"} 40
kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id="c",topic="t",partition="0"} 5
"""
    assert values_of(page, "app") == {
        ("producer_batch_mean_bytes", "client=p"): 512.5,
        ("consumer_records_total", "client=c"): 60,
        ("consumer_topic_records_total", "client=c,topic=t"): 40,
        ("streams_info", "application_id=orders"): 1,
        ("streams_state", "state=RUNNING"): 1,
        ("stream_threads_alive", ""): 2,
        ("block_cache_usage_bytes", "kind=key_value,store=s,task=0_1"): 26608,
        ("block_cache_usage_bytes", "kind=window,store=w,task=0_1"): 88,
    }


def test_micrometer() -> None:
    page = """jvm_memory_used_bytes{application="x",area="heap",id="G1 Eden Space"} 10
jvm_memory_used_bytes{application="x",area="heap",id="G1 Old Gen"} 20
jvm_memory_used_bytes{application="x",area="nonheap",id="Metaspace"} 7
jvm_memory_max_bytes{application="x",area="heap",id="G1 Eden Space"} -1
jvm_memory_max_bytes{application="x",area="heap",id="G1 Old Gen"} 1000
jvm_gc_pause_seconds_sum{action="end of minor GC",cause="Allocation"} 0.5
jvm_gc_pause_seconds_sum{action="end of major GC",cause="Ergonomics"} 0.25
process_cpu_time_ns_total 3.0E9
system_cpu_usage 0.25
kafka_stream_state_size_all_mem_tables{rocksdb_state_id="s",task_id="0_1",thread_id="t"} 5
kafka_stream_alive_stream_threads{client_id="c"} 4
kafka_stream_client_state{application_id="orders",client_id="c",process_id="p"} 5
kafka_producer_bufferpool_wait_time_ns_total{client_id="c-producer",kafka_version="4.3.1"} 2.0E9
kafka_producer_metadata_wait_time_ns_total{client_id="c-producer",kafka_version="4.3.1"} 5.0E8
kafka_producer_record_error_total{client_id="c-producer",kafka_version="4.3.1"} 7
kafka_producer_topic_byte_total{client_id="c-producer",kafka_version="4.3.1",topic="t"} 900
kafka_consumer_incoming_byte_total{client_id="c-consumer",kafka_version="4.3.1"} 4000
kafka_consumer_fetch_manager_fetch_total{client_id="c-consumer",kafka_version="4.3.1"} 30
kafka_consumer_fetch_manager_records_consumed_total{client_id="c-consumer",kafka_version="4.3.1",topic="t"} 50
kafka_consumer_fetch_manager_records_lag{client_id="c-consumer",kafka_version="4.3.1",partition="0",topic="t"} 5
hikaricp_connections{pool="HikariPool-1"} 10
hikaricp_connections{pool="HikariPool-2"} 5
hikaricp_connections_active{pool="HikariPool-1"} 10
hikaricp_connections_pending{pool="HikariPool-1"} 3
hikaricp_connections_max{pool="HikariPool-1"} 20
"""
    assert values_of(page, "app") == {
        ("heap_used_bytes", ""): 30,
        ("non_heap_used_bytes", ""): 7,
        ("heap_max_bytes", ""): 1000,
        ("memory_pool_used_bytes", "pool=G1 Eden Space"): 10,
        ("memory_pool_used_bytes", "pool=G1 Old Gen"): 20,
        ("memory_pool_used_bytes", "pool=Metaspace"): 7,
        ("gc_seconds_total", ""): 0.75,
        ("cpu_seconds_total", ""): 3,
        ("system_cpu_ratio", ""): 0.25,
        ("memtable_bytes", "kind=key_value,store=s,task=0_1"): 5,
        ("stream_threads_alive", ""): 4,
        ("streams_info", "application_id=orders"): 1,
        ("streams_state", "state=PENDING_ERROR"): 1,
        ("producer_wait_seconds_total", ""): 2.5,
        ("producer_record_errors_total", "client=c-producer"): 7,
        ("producer_topic_bytes_total", "client=c-producer,topic=t"): 900,
        ("consumer_network_in_bytes_total", "client=c-consumer"): 4000,
        ("consumer_fetches_total", "client=c-consumer"): 30,
        ("consumer_topic_records_total", "client=c-consumer,topic=t"): 50,
        ("pool_connections", ""): 15,
        ("pool_connections_in_use", ""): 10,
        ("pool_threads_waiting", ""): 3,
    }


def test_the_container_of_a_jvm_in_a_prometheus_server() -> None:
    page = """container_cpu_cfs_periods_total{pod="orders-0",container="orders"} 600
container_cpu_cfs_throttled_periods_total{pod="orders-0",container="orders"} 150
container_cpu_cfs_periods_total{pod="orders-0"} 900
process_cpu_seconds_total{pod="orders-0",container="orders"} 5
"""
    assert values_of(page, "app") == {
        ("cpu_periods_total", ""): 600,
        ("throttled_periods_total", ""): 150,
        ("cpu_seconds_total", ""): 5,
    }


def test_a_metric_in_two_dialects_counts_once() -> None:
    page = """java_lang_Memory_HeapMemoryUsage_used 10
jvm_memory_used_bytes{area="heap"} 11
jvm_memory_bytes_used{area="nonheap",} 12
process_cpu_seconds_total 5
java_lang_OperatingSystem_ProcessCpuTime 4.0E9
"""
    assert values_of(page, "app") == {
        ("heap_used_bytes", ""): 10,
        ("non_heap_used_bytes", ""): 12,
        ("cpu_seconds_total", ""): 4,
    }


def test_a_host_by_node_exporter(agents: Agents) -> None:
    values = values_of(node_page(), "node")
    assert values["physical_memory_bytes", ""] == 8 * 2**30 and values["available_memory_bytes", ""] == 2 * 2**30
    assert values["machine_cpu_seconds_total", "mode=idle"] == 1500  # of all processors
    assert values["disk_read_bytes_total", "device=nvme1n1"] == 1e9 and values["load_1m", ""] == 1.25
    assert values["file_system_bytes", "device=/dev/root,fstype=ext4,mountpoint=/"] == 8 * 2**30
    assert values["file_system_read_only", "device=/dev/root,fstype=ext4,mountpoint=/"] == 1
    rows = ask(agents.serve(node_page()), role="node")
    assert {row["process_started_at"].timestamp() for row in rows} == {
        BOOTED_AT
    }  # not the start of the exporter itself
    (gap,) = (row["gap"] for row in ask(agents.url("good"), role="node"))
    assert gap.startswith("failed: the page has no expected metrics")


def test_hosts_have_no_jolokia() -> None:
    with pytest.raises(ValidationError, match="a host is read by node exporter"):
        JmxEndpoint.model_validate({"role": "node", "cluster": "c", "url": "http://b"})


def test_a_truncated_line_of_a_catalog_metric_makes_the_page_invalid() -> None:
    names = names_of("broker", 1, 2)
    with pytest.raises(Refused, match="line 2"):
        list(series_of(b'x 1\nkafka_log_log_size{topic="a\nkafka_log_log_size{topic="b"} 1\n', names))


def test_the_start_time_is_converted_to_our_clock() -> None:
    at = datetime(2026, 1, 5, 10, tzinfo=UTC)
    ago = (at - timedelta(hours=1)).timestamp()
    assert _started_at(at, at + timedelta(seconds=1), ago, None) == at - timedelta(hours=1)
    assert _started_at(at, at + timedelta(minutes=7), ago + 7 * 60, None) == at - timedelta(hours=1)
    assert _started_at(at, None, ago, 60_000.0) == at - timedelta(minutes=1)
    assert _started_at(at, None, None, None) is None and _started_at(at, None, 1e300, None) is None


@pytest.mark.parametrize("section", ["jmx_files.0", "jmx_ec2.0"])
def test_discovered_targets_have_the_credentials_of_the_defaults_and_gaps_are_rows(
    agents: Agents, section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = {"role": "broker", "cluster": "demo", "user": "reader", "password": "${JMX_PASSWORD}"}
    config = {
        "kafka": [{"name": "demo", "bootstrap_servers": "b"}],
        "aws": [{"account": "123456789012", "regions": ["eu-west-1"]}],
        "jmx_files": [{"path": "none.json", "defaults": defaults}],
        "jmx_ec2": [{"account": "123456789012", "tags": {"a": "b"}, "port": 1, "defaults": defaults}],
    }
    (tmp_path / "streamwarden.yaml").write_text(json.dumps(config))
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "streamwarden.yaml"))
    monkeypatch.setenv("JMX_PASSWORD", "sesame")
    locked = agents.url("locked")
    rows = ask(locked, section=section, gaps=json.dumps([("targets of x.json", "missing: no such file")]))
    assert gap_of(rows, locked) is None and any(row["metric"] == "processors" for row in rows)
    (gap,) = (row for row in rows if row["gap"])
    assert (gap["resource"], gap["gap"]) == ("targets of x.json", "missing: no such file")
    assert gap["endpoint"] is None and "sesame" not in str(rows)
    (row,) = (row for row in ask(locked, section=section.replace("0", "7")) if row["gap"])
    assert row["gap"] == "failed: the credentials are not in the config of the Spark worker"


def last_of(rows: list[dict[str, Any]], address: str) -> dict[tuple[str, str], float | None]:
    """(metric, labels) → the newest value, without broker_info: its labels differ, because pages expose no strings."""
    assert gap_of(rows, address) is None
    ordered = sorted((row for row in rows if row["endpoint"] == address), key=lambda row: row["at"])
    return {(row["metric"], row["labels"]): row["value"] for row in ordered if row["metric"] != "broker_info"}


RESIDENT = ("resident_bytes", "{}")
"""No MBean exposes this metric."""
MISSING_IN_RULES = {
    "client_connections",
    "log_flush_ms_total",
    "request_ms_total",
    "request_handler_idle_ratio",
    "processors",
    "physical_memory_bytes",
}


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.parametrize(("config", "missing"), [(WITHOUT_RULES, set()), (EXAMPLE.to_yaml(), MISSING_IN_RULES)])
def test_a_real_broker_exposes_the_same_values_as_over_jolokia(tmp_path: Path, config: str, missing: set[str]) -> None:
    with in_jvms_started_here(tmp_path, config) as exporter:
        broker = Broker(tmp_path / "broker").start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("t", 3)])["t"].result(20)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(500):
            producer.produce("t", key=str(number), value=b"x" * 100)
        assert producer.flush(20) == 0
        httpx.get(exporter, timeout=60)  # the first page takes long
        rows = ask(broker.jolokia_url, protocol="jolokia", timeout_seconds=30) + ask(exporter, timeout_seconds=30)
    finally:
        broker.stop()

    by_jolokia, by_exporter = last_of(rows, broker.jolokia_url), last_of(rows, exporter)
    assert by_exporter.keys() - {RESIDENT} == {series for series in by_jolokia if series[0] not in missing}
    moving = {"heap_used_bytes", "non_heap_used_bytes", "cpu_seconds_total", "open_file_descriptors"}
    moving |= {metric for metric in METRICS if metric.startswith("log_flush")}  # includes the metadata log
    moving |= {"request_handler_idle_ratio", "cleaner_last_run_seconds"}
    in_both = by_exporter.keys() & by_jolokia.keys()
    steady = [s for s in in_both if s[0] not in moving and "__cluster_metadata" not in s[1]]
    assert {s: by_exporter[s] for s in steady} == pytest.approx({s: by_jolokia[s] for s in steady})
    assert by_exporter["messages_in_total", '{"topic": "t"}'] == 500
    assert '{"broker_id": "1"}' in {row["labels"] for row in rows if row["metric"] == "broker_info"}
    starts = {row["process_started_at"] for row in rows}
    assert max(starts) - min(starts) < timedelta(seconds=2)


@pytest.mark.rare
@pytest.mark.slow
def test_a_real_streams_application_exposes_the_same_values_as_over_jolokia(tmp_path: Path) -> None:
    port = free_port()
    arguments = [str(Path(demo.__path__[0]) / "OrdersApp.java"), "BROKER", str(tmp_path / "state"), "unbounded"]
    with Broker(tmp_path / "broker") as broker, in_jvms_started_here(tmp_path, WITHOUT_RULES) as exporter:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 2)])["orders"].result(20)
        arguments[1] = broker.bootstrap_servers
        app = Jvm(
            "orders",
            arguments,
            tmp_path,
            classpath=classpath(STREAMS),
            agent=ensure(JOLOKIA)[0],
            jolokia_port=port,
            options=["-Xmx160m"],
        )
        with app:
            jolokia = f"http://127.0.0.1:{port}/jolokia"
            wait_for_stores(jolokia, 4)
            httpx.get(exporter, timeout=60)  # the first page takes long
            by_exporter, by_jolokia = asked_in_turn(jolokia, exporter)
    assert by_exporter[RESIDENT] > by_exporter["heap_used_bytes", "{}"]  # type: ignore[operator]
    unlike = ("streams_version", "streams_state")  # a string, and metrics that may change between the two reads
    assert {s for s in known(by_exporter) if s[0] not in unlike} - {RESIDENT} == {
        s for s in known(by_jolokia) if s[0] not in unlike
    }
    steady = {"heap_max_bytes", "processors", "physical_memory_bytes", "max_file_descriptors", "streams_info"}
    steady |= {"stream_threads_alive", "stream_threads_failed", "block_cache_capacity_bytes", "keys", "sst_bytes"}
    assert {s: by_exporter[s] for s in by_exporter if s[0] in steady} == {
        s: by_jolokia[s] for s in by_jolokia if s[0] in steady
    }
    assert by_exporter["streams_info", '{"application_id": "orders"}'] == 1
    assert by_exporter["streams_state", '{"state": "RUNNING"}'] == 1


def asked_in_turn(jolokia: str, exporter: str) -> tuple[dict[tuple[str, str], float | None], ...]:
    """The last values of both, of the same series."""

    def said(address: str, protocol: str) -> dict[tuple[str, str], float | None]:
        return last_of(ask(address, protocol=protocol, role="app", timeout_seconds=30), address)

    return exposed_and_asked(partial(said, exporter, "prometheus"), partial(said, jolokia, "jolokia"), known)


def known(values: dict[tuple[str, str], float | None]) -> set[tuple[str, str]]:
    return {series for series, value in values.items() if value is not None}


def wait_for_stores(url: str, stores: int) -> None:
    """Waits until the application's stores are open."""
    query = f"{url}/read/kafka.streams:type=stream-state-metrics,*/estimate-num-keys"
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            if len(httpx.get(query, timeout=5).json().get("value", {})) == stores:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise AssertionError("the application's stores never opened")
