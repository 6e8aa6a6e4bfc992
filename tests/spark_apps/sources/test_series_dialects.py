"""A JVM's heap by memory pools and by OpenTelemetry's names, and duplicate series of a highly available pair."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spark_apps.sources.heap_pools import heap_max
from spark_apps.sources.jmx_series import names_of, readings_of
from spark_apps.sources.prometheus import series_of
from spark_apps.sources.series_forms import rendered

MIB = 2**20


def read(page: str, role: Any = "app") -> dict[tuple[str, str], float | None]:
    """(metric, labels) → value of a page's last sample."""
    names = names_of(role, 1, 2)
    found = list(readings_of(names, series_of(page.encode(), names)))
    values = {
        (metric, ",".join(f"{k}={v}" for k, v in sorted(labels.items()))): value for metric, labels, value in found
    }
    assert len(values) == len(found), "a reading stands there twice"
    return values


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({"ZGC Young Generation": 400, "ZGC Old Generation": 400}, 400),
        ({"ZHeap": 400}, 400),
        ({"Shenandoah": 400}, 400),
        ({"Shenandoah Young Gen": 400, "Shenandoah Old Gen": 400}, 400),
        ({"G1 Eden Space": -1, "G1 Survivor Space": -1, "G1 Old Gen": 400}, 400),
        ({"G1 Eden Space": 400, "G1 Survivor Space": 400, "G1 Old Gen": 400}, 400),
        ({"PS Eden Space": 100, "PS Survivor Space": 20, "PS Old Gen": 280}, 400),
        ({"Eden Space": 100, "Survivor Space": 20, "Tenured Gen": 280}, 400),
        ({"Par Eden Space": 100, "Par Survivor Space": 20, "CMS Old Gen": 280}, 400),
        ({"Par Eden Space": 100, "Par Survivor Space": 20, "Tenured Gen": 280}, 400),
        ({"Eden Space": 100, "Survivor Space": 20, "CMS Old Gen": 280}, 400),
        ({"eden space": 100, "survivor space": 20, "old generation space": 280}, 400),
        ({"G1 Eden Space": 2.0**63, "G1 Old Gen": 400}, 400),
        ({"ZHeap": 2.0**63}, -1),
        ({"PS-Eden-Space": 100, "PS-Survivor-Space": 20, "PS-Old-Gen": 280}, 400),
        ({"balanced-reserved": 400, "balanced-eden": 400, "balanced-survivor": 400, "balanced-old": 400}, 400),
        ({"nursery-allocate": 100, "nursery-survivor": 100, "tenured-SOA": 380, "tenured-LOA": 20}, 400),
        ({"JavaHeap": 400}, 400),
        ({"Epsilon Heap": 400}, 400),
        ({"G1 Eden Space": -1}, -1),
        ({"a pool of tomorrow": 400, "another of tomorrow": 400}, 400),
    ],
)
def test_the_maximum_of_a_heap_from_its_memory_pools(pools: dict[str, float], expected: float) -> None:
    assert heap_max(pools) == expected


@pytest.mark.parametrize(("name", "pool"), [("jvm_memory_max_bytes", "id"), ("jvm_memory_bytes_max", "id")])
def test_generational_zgc_by_micrometer(name: str, pool: str) -> None:
    page = f"""{name}{{area="heap",{pool}="ZGC Young Generation"}} {400 * MIB}
{name}{{area="heap",{pool}="ZGC Old Generation"}} {400 * MIB}
{name}{{area="nonheap",{pool}="Metaspace"}} -1
{name.replace("max", "used")}{{area="heap",{pool}="ZGC Young Generation"}} 10
{name.replace("max", "used")}{{area="heap",{pool}="ZGC Old Generation"}} 20
"""
    values = read(page)
    assert values["heap_max_bytes", ""] == 400 * MIB and values["heap_used_bytes", ""] == 30


def test_a_heap_is_not_added_to_its_own_pools() -> None:
    page = """jvm_memory_used_bytes{area="heap"} 30
jvm_memory_used_bytes{area="heap",id="G1 Old Gen"} 20
jvm_memory_max_bytes{area="heap"} 300
jvm_memory_max_bytes{area="heap",id="G1 Old Gen"} 400
"""
    values = read(page)
    assert values["heap_used_bytes", ""] == 30 and values["heap_max_bytes", ""] == 300


NEW = """jvm_memory_used{s}{{jvm_memory_type="heap",jvm_memory_pool_name="G1 Eden Space"}} 10
jvm_memory_used{s}{{jvm_memory_type="heap",jvm_memory_pool_name="G1 Old Gen"}} 20
jvm_memory_used{s}{{jvm_memory_type="non_heap",jvm_memory_pool_name="Metaspace"}} 7
jvm_memory_limit{s}{{jvm_memory_type="heap",jvm_memory_pool_name="G1 Old Gen"}} 1000
jvm_memory_used_after_last_gc{s}{{jvm_memory_type="heap",jvm_memory_pool_name="G1 Old Gen"}} 5
jvm_buffer_memory_used{s}{{jvm_buffer_pool_name="direct"}} 3
jvm_buffer_memory_used{s}{{jvm_buffer_pool_name="mapped"}} 9
jvm_thread_count{{jvm_thread_daemon="true",jvm_thread_state="runnable"}} 30
jvm_thread_count{{jvm_thread_daemon="false",jvm_thread_state="waiting"}} 10
jvm_gc_duration{t}_sum{{jvm_gc_name="G1 Young Generation",jvm_gc_action="end of minor GC",jvm_gc_cause="a"}} 0.5
jvm_gc_duration{t}_sum{{jvm_gc_name="G1 Young Generation",jvm_gc_action="end of minor GC",jvm_gc_cause="b"}} 0.25
jvm_gc_duration{t}_count{{jvm_gc_name="G1 Young Generation",jvm_gc_action="end of minor GC"}} 6
jvm_cpu_time{t}{c} 3
jvm_cpu_count 4
jvm_system_cpu_utilization{r} 0.25
"""
OLD = """process_runtime_jvm_memory_usage{s}{{type="heap",pool="G1 Eden Space"}} 10
process_runtime_jvm_memory_usage{s}{{type="heap",pool="G1 Old Gen"}} 20
process_runtime_jvm_memory_usage{s}{{type="non_heap",pool="Metaspace"}} 7
process_runtime_jvm_memory_limit{s}{{type="heap",pool="G1 Old Gen"}} 1000
process_runtime_jvm_memory_usage_after_last_gc{s}{{type="heap",pool="G1 Old Gen"}} 5
process_runtime_jvm_buffer_usage{s}{{pool="direct"}} 3
process_runtime_jvm_buffer_usage{s}{{pool="mapped"}} 9
process_runtime_jvm_threads_count{{daemon="true"}} 30
process_runtime_jvm_threads_count{{daemon="false"}} 10
process_runtime_jvm_gc_duration{t}_sum{{gc="G1 Young Generation",action="end of minor GC"}} 750
process_runtime_jvm_gc_duration{t}_count{{gc="G1 Young Generation",action="end of minor GC"}} 6
process_runtime_jvm_system_cpu_utilization{r} 0.25
"""
OTEL = {
    ("heap_used_bytes", ""): 30,
    ("non_heap_used_bytes", ""): 7,
    ("heap_max_bytes", ""): 1000,
    ("memory_pool_used_bytes", "pool=G1 Eden Space"): 10,
    ("memory_pool_used_bytes", "pool=G1 Old Gen"): 20,
    ("memory_pool_used_bytes", "pool=Metaspace"): 7,
    ("memory_pool_used_after_gc_bytes", "pool=G1 Old Gen"): 5,
    ("direct_buffer_bytes", ""): 3,
    ("threads", ""): 40,
    ("gc_seconds_total", "collector=G1 Young Generation"): 0.75,
    ("gc_collections_total", "collector=G1 Young Generation"): 6,
    ("system_cpu_ratio", ""): 0.25,
}
CPU = {("cpu_seconds_total", ""): 3, ("processors", ""): 4}


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (NEW.format(s="_bytes", t="_seconds", c="_total", r="_ratio"), OTEL | CPU),
        (NEW.format(s="", t="", c="", r=""), OTEL | CPU),
        (OLD.format(s="_bytes", t="_milliseconds", r="_ratio"), OTEL),
        (OLD.format(s="", t="", r=""), OTEL),
    ],
)
def test_opentelemetry(page: str, expected: dict[tuple[str, str], float]) -> None:
    assert read(page) == expected


def test_opentelemetry_s_limits_of_zgc() -> None:
    page = "".join(
        f'jvm_memory_limit_bytes{{jvm_memory_type="heap",jvm_memory_pool_name="ZGC {name} Generation"}} 400\n'
        for name in ("Young", "Old")
    )
    assert read(page) == {("heap_max_bytes", ""): 400}


MICROPROFILE = """{p}memory_usedHeap_bytes{{{s}}} 30
{p}memory_maxHeap_bytes{{{s}}} 400
{p}thread_count{{{s}}} 40
{p}gc_total{{{s}{c}name="G1 Young Generation"}} 6
{p}{gc}{{{s}{c}name="G1 Young Generation"}} 0.75
{p}gc_total{{{s}{c}name="G1 Old Generation"}} 0
{p}jvm_uptime_seconds{{{s}}} 60
"""


@pytest.mark.parametrize(
    ("prefix", "scope", "gc"),
    [
        ("base_", "", "gc_time_total_seconds"),
        ("base:", "", "gc_time_seconds"),
        ("", 'mp_scope="base"', "gc_time_seconds_total"),
    ],
)
def test_microprofile(prefix: str, scope: str, gc: str) -> None:
    values = read(MICROPROFILE.format(p=prefix, s=scope, c="," if scope else "", gc=gc))
    assert values["heap_used_bytes", ""] == 30 and values["heap_max_bytes", ""] == 400 and values["threads", ""] == 40
    assert values["gc_seconds_total", "collector=G1 Young Generation"] == 0.75
    assert values["gc_collections_total", "collector=G1 Old Generation"] == 0
    assert values["process_uptime_ms", ""] == 60_000


@pytest.mark.parametrize(
    "name",
    [
        "base:memory_used_heap_bytes",
        "base_memory_usedHeap_bytes",
        "gc_time_seconds_total",
        "jvm.memory.used",
        "jvm_gc_pause_milliseconds_sum",
    ],
)
def test_a_query_to_a_prometheus_server_selects_the_name(name: str) -> None:
    assert re.fullmatch(f"(?i:{rendered(names_of('app', 1, 2).queries)})", name)


def test_micrometer_before_1_1_and_through_otlp() -> None:
    page = """jvm_threads_live 40
process_files_open 5
process_files_max 500
jvm_gc_pause_milliseconds_sum{action="end of minor GC",cause="a"} 500
jvm_gc_pause_milliseconds_count{action="end of minor GC",cause="a"} 5
"""
    assert read(page) == {
        ("threads", ""): 40, ("open_file_descriptors", ""): 5, ("max_file_descriptors", ""): 500,
        ("gc_seconds_total", ""): 0.5, ("gc_collections_total", ""): 5,
    }  # fmt: skip


@pytest.mark.parametrize("label", ["prometheus_replica", "replica", "__replica__", "receive", "monitor"])
def test_series_of_two_replicas_are_one(label: str) -> None:
    lines = """jvm_memory_used_bytes{area="heap",id="G1 Old Gen"} 100
jvm_memory_max_bytes{area="heap",id="G1 Old Gen"} 400
jvm_threads_live_threads 40
jvm_gc_pause_seconds_sum{action="end of minor GC",cause="a"} 0.5
jvm_gc_pause_seconds_sum{action="end of minor GC",cause="b"} 0.5
hikaricp_connections{pool="HikariPool-1"} 10
hikaricp_connections{pool="HikariPool-2"} 5
kafka_stream_alive_stream_threads{client_id="c"} 4
kafka_stream_alive_stream_threads{client_id="d"} 4
kafka_producer_record_send_total{client_id="c"} 1000
kafka_producer_record_error_total{client_id="c"} 7
"""

    def of_replica(name: str, lines: str) -> str:
        labeled = [line if "{" in line else line.replace(" ", "{} ") for line in lines.splitlines()]
        return "".join(line.replace("}", f',{label}="{name}"}}').replace("{,", "{") + "\n" for line in labeled)

    ahead = lines.replace("1000", "1002").replace("live_threads 40", "live_threads 41")
    values = read(of_replica("a", ahead) + of_replica("b", lines))
    assert values["heap_used_bytes", ""] == 100 and values["heap_max_bytes", ""] == 400
    assert values["threads", ""] == 40  # the newest sample, which is the last one
    assert values["gc_seconds_total", ""] == 1 and values["pool_connections", ""] == 15
    assert values["stream_threads_alive", ""] == 8
    assert values["producer_records_total", "client=c"] == 1002  # the larger


def test_partial_metrics_of_brokers_are_summed_and_replicas_are_not() -> None:
    page = "".join(
        f"""kafka_log_Log_Value{{name="Size",topic="t",partition="0",{replica}}} 5
kafka_log_Log_Value{{name="Size",topic="t",partition="1",{replica}}} 6
kafka_log_Log_Value{{name="Size",topic="t",partition="1",is_future="true",{replica}}} 3
kafka_log_LogCleanerManager_Value{{name="uncleanable-bytes",logDirectory="/a",{replica}}} 1
kafka_log_LogCleanerManager_Value{{name="uncleanable-bytes",logDirectory="/b",{replica}}} 2
kafka_server_ReplicaManager_Value{{name="UnderReplicatedPartitions",{replica}}} 3
kafka_network_RequestMetrics_Count{{name="TotalTimeMs",request="Produce",{replica}}} 10
kafka_network_RequestMetrics_Mean{{name="TotalTimeMs",request="Produce",{replica}}} 2
"""
        for replica in ('prometheus_replica="a"', 'prometheus_replica="b"')
    )
    values = read(page, "broker")
    assert values["log_bytes", "topic=t"] == 11 and values["uncleanable_bytes", ""] == 3
    assert values["under_replicated_partitions", ""] == 3
    assert values["requests_total", "request=Produce"] == 10 and values["request_ms_total", "request=Produce"] == 20


def test_a_replica_without_data_hides_no_value() -> None:
    name = 'kafka_server_ReplicaManager_Value{name="UnderReplicatedPartitions",replica='
    assert read(f'{name}"a"}} 3\n{name}"b"}} NaN\n', "broker")["under_replicated_partitions", ""] == 3


def test_a_host_in_two_replicas() -> None:
    page = "".join(
        f"""node_cpu_seconds_total{{cpu="{cpu}",mode="idle",replica="{replica}"}} 10
node_filesystem_size_bytes{{device="/dev/{cpu}",fstype="ext4",mountpoint="/{cpu}",replica="{replica}"}} 7
node_load1{{replica="{replica}"}} 1
"""
        for cpu in (0, 1)
        for replica in "ab"
    )
    values = read(page, "node")
    assert values["machine_cpu_seconds_total", "mode=idle"] == 20 and values["load_1m", ""] == 1
    assert values["file_system_bytes", "device=/dev/1,fstype=ext4,mountpoint=/1"] == 7
