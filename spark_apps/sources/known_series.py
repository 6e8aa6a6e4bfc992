"""Series in the Prometheus exposition format that are not attributes of MBEANS, by dialect.

OpenTelemetry's names follow its semantic conventions for the JVM
(https://opentelemetry.io/docs/specs/semconv/runtime/ jvm-metrics), before 1.22 those under `process.runtime.jvm`.
Exporters convert them differently: dots or underscores, with or without the unit and `_total` as suffixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from spark_apps.sources.jmx_catalog import Reading

Dialect = Literal["jmx", "rules", "jvm", "micrometer", "otel", "container", "node"]
DIALECTS: tuple[Dialect, ...] = ("jmx", "rules", "jvm", "micrometer", "otel", "container", "node")
STARTED = "process_start_seconds"
UPTIME = "process_uptime_ms"
"""Readings besides METRICS: start time and uptime of the process (or host)."""
RESIDENT = "resident_bytes"
CONTAINER = {"periods_total": "cpu_periods_total", "throttled_periods_total": "throttled_periods_total"}
"""No MBean has these."""


@dataclass(frozen=True)
class Series:
    """A series that is not an attribute of MBEANS."""

    dialect: Dialect
    name: str
    reading: Reading
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels that it must have; `*` is any value."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label of the series → our label."""
    parts: tuple[str, ...] = ()
    """Labels besides those that distinguish the series to add up, as in MBean."""
    pool: str | None = None
    """The label of a memory pool, if a metric of the whole heap is exposed by pool."""


def _jvm(name: str, metric: str, factor: float = 1, **more: Any) -> Series:
    return Series("jvm", name, Reading("Value", metric, factor), **more)


def _micrometer(name: str, metric: str, factor: float = 1, **more: Any) -> Series:
    return Series("micrometer", name, Reading("Value", metric, factor), **more)


class _Convention(NamedTuple):
    """Names of the JVM's metrics and attributes in a version of OpenTelemetry's conventions."""

    prefix: str
    memory_type: str
    pool: str
    buffer_pool: str
    gc: str
    gc_parts: tuple[str, ...]
    thread_parts: tuple[str, ...]
    bare_gc_factor: float
    """Seconds per unit of a GC's duration, if the name has no unit."""


_CONVENTIONS = (
    _Convention(
        "jvm.",
        "jvm_memory_type",
        "jvm_memory_pool_name",
        "jvm_buffer_pool_name",
        "jvm_gc_name",
        ("jvm_gc_action", "jvm_gc_cause"),
        ("jvm_thread_daemon", "jvm_thread_state"),
        1,
    ),
    _Convention("process.runtime.jvm.", "type", "pool", "pool", "gc", ("action", "cause"), ("daemon", "state"), 1e-3),
)


def _otel(
    of: _Convention, name: str, units: tuple[str, ...], metric: str, factor: float = 1, **more: Any
) -> list[Series]:
    """An instrument under each of its possible names; `units`: possible suffixes."""
    names = [f"{of.prefix}{name}{unit}" for unit in units]
    written = dict.fromkeys(each for dotted in names for each in (dotted.replace(".", "_"), dotted))
    return [Series("otel", each, Reading("Value", metric, factor), **more) for each in written]


def _otel_memory(of: _Convention) -> Iterator[Series]:
    """Memory is exposed by pool, heap and non-heap only in that way."""
    units = ("", "_bytes")
    heap, any_pool = {of.memory_type: "heap"}, {of.pool: "*"}
    sums: dict[str, Any] = {"parts": (of.pool,), "pool": of.pool}
    by_pool: dict[str, Any] = {"labels": {of.pool: "pool"}}
    for used in ("memory.used", "memory.usage"):
        yield from _otel(of, used, units, "heap_used_bytes", where=heap, **sums)
        yield from _otel(of, used, units, "non_heap_used_bytes", where={of.memory_type: "non_heap"}, **sums)
        yield from _otel(of, used, units, "memory_pool_used_bytes", where=any_pool, **by_pool)
        after_gc = f"{used}_after_last_gc"
        yield from _otel(of, after_gc, units, "memory_pool_used_after_gc_bytes", where=heap | any_pool, **by_pool)
    yield from _otel(of, "memory.limit", units, "heap_max_bytes", where=heap, **sums)
    for used in ("buffer.memory.used", "buffer.memory.usage", "buffer.usage"):
        yield from _otel(of, used, units, "direct_buffer_bytes", where={of.buffer_pool: "direct"})


def _otel_others(of: _Convention) -> Iterator[Series]:
    for threads in ("thread.count", "threads.count"):
        yield from _otel(of, threads, ("",), "threads", parts=of.thread_parts)
    by_collector: dict[str, Any] = {"labels": {of.gc: "collector"}, "parts": of.gc_parts}
    units = {"_seconds": 1, "_milliseconds": 1e-3, "": of.bare_gc_factor}
    for unit, factor in units.items():
        yield from _otel(of, "gc.duration", (f"{unit}_sum",), "gc_seconds_total", factor, **by_collector)
    counts = tuple(f"{unit}_count" for unit in units)
    yield from _otel(of, "gc.duration", counts, "gc_collections_total", **by_collector)
    yield from _otel(of, "cpu.time", ("_seconds_total", "_seconds", "_total", ""), "cpu_seconds_total")
    yield from _otel(of, "cpu.count", ("",), "processors")
    yield from _otel(of, "system.cpu.utilization", ("_ratio", ""), "system_cpu_ratio")
    yield from _otel(of, "file_descriptor.count", ("",), "open_file_descriptors")
    yield from _otel(of, "file_descriptor.limit", ("",), "max_file_descriptors")


_HEAP, _NON_HEAP = {"area": "heap"}, {"area": "nonheap"}
_BY_ID: dict[str, Any] = {"parts": ("id",), "pool": "id"}
"""By Micrometer; Prometheus' client library has the same names without pools."""
_PAUSES: dict[str, Any] = {"labels": {"gc": "collector"}, "parts": ("action", "cause")}
_CGROUP = ("container", "pod", "namespace", "id", "name", "image")
_BROKER_ID: tuple[tuple[Dialect, str, str, dict[str, str]], ...] = (
    ("jmx", "kafka_server_app_info_starttimems", "id", {"id": "*"}),
    ("rules", "kafka_server_app_info_start_time_ms", "client_id", {"client_id": "*"}),
    ("rules", "kafka_server_quota_start_time_ms", "clientid", {"resource": "app-info", "clientid": "*"}),
)
SERIES: tuple[Series, ...] = (
    # Text attributes are not exposed (so there is no streams_version): the broker id is a label of another metric.
    *(
        Series(dialect, name, Reading("Value", "broker_info", presence=True), where, {label: "broker_id"})
        for dialect, name, label, where in _BROKER_ID
    ),
    *(
        Series("jmx", name, Reading("Value", "streams_info", presence=True), {label: "*"}, {label: label})
        for name, label in (
            ("kafka_streams_stream_metrics_client_state", "application_id"),
            ("kafka_stream_client_state", "application_id"),  # Micrometer
        )
    ),
    Series("jmx", "java_lang_runtime_uptime", Reading("Value", UPTIME)),
    Series(
        "rules", "kafka_streams_alive_stream_threads", Reading("Value", "stream_threads_alive"), parts=("client_id",)
    ),
    Series(
        "rules", "kafka_streams_failed_stream_threads", Reading("Value", "stream_threads_failed"), parts=("client_id",)
    ),
    # Prometheus' client library: 1.x, and 0.x as in MSK
    _jvm("process_start_time_seconds", STARTED),
    *(
        series
        for used, limit, pool in (
            ("jvm_memory_used_bytes", "jvm_memory_max_bytes", "jvm_memory_pool_used_bytes"),
            ("jvm_memory_bytes_used", "jvm_memory_bytes_max", "jvm_memory_pool_bytes_used"),
        )
        for series in (
            _jvm(used, "heap_used_bytes", where=_HEAP, **_BY_ID),
            _jvm(used, "non_heap_used_bytes", where=_NON_HEAP, **_BY_ID),
            _jvm(limit, "heap_max_bytes", where=_HEAP, **_BY_ID),
            _jvm(pool, "memory_pool_used_bytes", labels={"pool": "pool"}),
        )
    ),
    _jvm("jvm_memory_pool_collection_used_bytes", "memory_pool_used_after_gc_bytes", labels={"pool": "pool"}),
    _jvm("jvm_buffer_pool_used_bytes", "direct_buffer_bytes", where={"pool": "direct"}),
    _jvm("jvm_threads_current", "threads"),
    _jvm("jvm_gc_collection_seconds_sum", "gc_seconds_total", labels={"gc": "collector"}),
    _jvm("jvm_gc_collection_seconds_count", "gc_collections_total", labels={"gc": "collector"}),
    _jvm("process_cpu_seconds_total", "cpu_seconds_total"),
    _jvm("process_resident_memory_bytes", RESIDENT),
    _jvm("process_open_fds", "open_file_descriptors"),
    _jvm("process_max_fds", "max_file_descriptors"),
    # Micrometer, where its names differ
    _micrometer("jvm_memory_used_bytes", "memory_pool_used_bytes", where={"id": "*"}, labels={"id": "pool"}),
    _micrometer("jvm_buffer_memory_used_bytes", "direct_buffer_bytes", where={"id": "direct"}),
    _micrometer("jvm_threads_live_threads", "threads"),
    _micrometer("jvm_gc_pause_seconds_sum", "gc_seconds_total", **_PAUSES),
    _micrometer("jvm_gc_pause_seconds_count", "gc_collections_total", **_PAUSES),
    _micrometer("process_cpu_time_ns_total", "cpu_seconds_total", 1e-9),
    _micrometer("system_cpu_count", "processors"),
    _micrometer("system_cpu_usage", "system_cpu_ratio"),
    _micrometer("process_files_open_files", "open_file_descriptors"),
    _micrometer("process_files_max_files", "max_file_descriptors"),
    _micrometer("hikaricp_connections", "pool_connections", parts=("pool",)),
    _micrometer("hikaricp_connections_active", "pool_connections_in_use", parts=("pool",)),
    _micrometer("hikaricp_connections_pending", "pool_threads_waiting", parts=("pool",)),
    *(series for convention in _CONVENTIONS for series in _otel_memory(convention)),
    *(series for convention in _CONVENTIONS for series in _otel_others(convention)),
    # cAdvisor's metrics, if a Prometheus server has them; without a container's name it is the sum of the pod.
    *(
        Series("container", f"container_cpu_cfs_{name}", Reading("Value", metric), {"container": "*"}, parts=_CGROUP)
        for name, metric in CONTAINER.items()
    ),
)


def _node(name: str, metric: str, *labels: str, parts: tuple[str, ...] = ()) -> Series:
    named = {label: label for label in labels}
    return Series("node", f"node_{name}", Reading("Value", metric), labels=named, parts=parts)


_FILE_SYSTEM = ("mountpoint", "device", "fstype")
NODE_SERIES: tuple[Series, ...] = (
    _node("boot_time_seconds", STARTED),
    _node("memory_memtotal_bytes", "physical_memory_bytes"),
    _node("memory_memavailable_bytes", "available_memory_bytes"),
    _node("memory_cached_bytes", "page_cache_bytes"),
    _node("load1", "load_1m"),
    _node("cpu_seconds_total", "machine_cpu_seconds_total", "mode", parts=("cpu",)),
    _node("disk_read_bytes_total", "disk_read_bytes_total", "device"),
    _node("disk_written_bytes_total", "disk_written_bytes_total", "device"),
    _node("disk_reads_completed_total", "disk_reads_total", "device"),
    _node("disk_writes_completed_total", "disk_writes_total", "device"),
    _node("disk_io_time_seconds_total", "disk_busy_seconds_total", "device"),
    _node("filesystem_size_bytes", "file_system_bytes", *_FILE_SYSTEM),
    _node("filesystem_avail_bytes", "file_system_available_bytes", *_FILE_SYSTEM),
    _node("filesystem_readonly", "file_system_read_only", *_FILE_SYSTEM),
)
