"""Series of exporters that have names of their own, which no attribute of the MBEANS gives: tables.

- `jmx`: of the JMX exporter, what stands in a label;
- `jvm`: of Prometheus' client library, which every exporter in a JVM has;
- `micrometer`: Spring Boot;
- `microprofile`: Open Liberty, Payara, WildFly (https://download.eclipse.org/microprofile/microprofile-metrics-4.0);
- `otel`: OpenTelemetry. The JVM by its semantic conventions (https://opentelemetry.io/docs/specs/semconv/runtime/
  jvm-metrics), before 1.22 those under `process.runtime.jvm`, and by the JMX Metric Gatherer; Kafka's brokers by the
  rules of the Java agent (`kafka-broker.yaml` of opentelemetry-java-instrumentation), of the JMX scraper
  (`kafka.yaml` of opentelemetry-java-contrib), and by the conventions under `messaging.kafka`. How they
  stand in Prometheus is up to who writes them: with the unit and `_total` after them or without;
- `container`: cAdvisor;
- `node`: node exporter.

Strimzi Metrics Reporter, Bitnami, Confluent: their names follow from MBEANS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from spark_apps.sources.jmx_mbeans import Reading

Table = Literal["mbean", "jmx", "jvm", "micrometer", "microprofile", "otel", "container", "node"]
TABLES: tuple[Table, ...] = ("mbean", "jmx", "jvm", "micrometer", "microprofile", "otel", "container", "node")
"""In this order a metric is taken from them; `mbean` is no table: names that follow from MBEANS."""
STARTED = "process_start_seconds"
UPTIME = "process_uptime_ms"
"""Readings besides METRICS: start time and uptime of the process (or host)."""
RESIDENT = "resident_bytes"
CONTAINER = {"periods_total": "cpu_periods_total", "throttled_periods_total": "throttled_periods_total"}
"""No MBean has these."""


@dataclass(frozen=True)
class Series:
    """A series that is not an attribute of MBEANS."""

    table: Table
    name: str
    reading: Reading
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels that it must have; `*` is any value."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label of the series → our label."""
    constant: Mapping[str, str] = field(default_factory=dict)
    """Labels of ours that it gets."""
    parts: tuple[str, ...] = ()
    """Labels besides those that distinguish the series to add up, as in MBean."""
    pool: str | None = None
    """The label of a memory pool, where a metric of the whole heap is exposed by pool."""
    number: str | None = None
    """The label that has the value."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Other names → the attribute that it is."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Names → the attribute that it is."""
        return {self.name: self.reading.attribute, **self.also}

    @property
    def queries(self) -> set[tuple[str, str]]:
        """Regular expressions of its names, in lower case: the first word and the rest."""
        spaced = (re.sub(r"[^a-z0-9]", ".?", name.lower()) for name in self.attributes)
        return {(f"{first}.?", rest) for first, _, rest in (name.partition(".?") for name in spaced)}


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
) -> Iterator[Series]:
    """An instrument by each name that it may have; `units`: what may stand behind its own."""
    name, *others = (f"{of.prefix}{name}{unit}" for unit in units)
    yield Series("otel", name, Reading("Value", metric, factor), also=dict.fromkeys(others, "Value"), **more)


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


def _gathered() -> Iterator[Series]:
    """A JVM by OpenTelemetry's JMX Metric Gatherer."""
    memory = {
        "heap.used": ("heap_used_bytes", {}),
        "heap.max": ("heap_max_bytes", {}),
        "nonheap.used": ("non_heap_used_bytes", {}),
        "pool.used": ("memory_pool_used_bytes", {"name": "pool"}),
    }
    for name, (metric, labels) in memory.items():
        also = {f"jvm.memory.{name}.bytes": "Value"}
        yield Series("otel", f"jvm.memory.{name}", Reading("Value", metric), labels=labels, also=also)
    for unit in ("", "_total", "_milliseconds_total", "_milliseconds"):
        name, labels = f"jvm.gc.collections.elapsed{unit}", {"name": "collector"}
        yield Series("otel", name, Reading("Value", "gc_seconds_total", 1e-3), labels=labels)
    count, also = "jvm.gc.collections.count", {"jvm.gc.collections.count.total": "Value"}
    yield Series("otel", count, Reading("Value", "gc_collections_total"), labels={"name": "collector"}, also=also)


def _kafka(
    names: str, reading: Reading, unit: str = "", is_counter: bool = False, also: Mapping[str, str] | None = None,
    **more: Any,
) -> Series:  # fmt: skip
    """An instrument of a broker by each name that it may have (parted by blanks)."""
    written = _with_units(names, unit, is_counter)
    return Series(
        "otel", written[0], reading, also={**dict.fromkeys(written, reading.attribute), **(also or {})}, **more
    )


def _with_units(names: str, unit: str, is_counter: bool) -> list[str]:
    total = ("", "_total") if is_counter else ("",)
    return [f"{name}{u}{t}" for name in names.split() for u in dict.fromkeys(("", unit)) for t in total]


def _otel_gauges() -> Iterator[Series]:
    """Those of brokers that have no attributes."""
    for names, metric in {
        "kafka.request.queue messaging.kafka.requests.queue": "request_queue",
        "kafka.partition.count messaging.kafka.partitions.all": "partitions",
        "kafka.partition.offline messaging.kafka.partitions.offline": "offline_partitions",
        "kafka.partition.under_replicated messaging.kafka.partitions.under-replicated": "under_replicated_partitions",
        "kafka.controller.active.count messaging.kafka.controllers.active": "active_controllers",
        "kafka.leader.count": "leaders",
        "kafka.request.handler.idle.1m kafka.request.handler.idle.1m_ratio": "request_handler_idle_ratio",
    }.items():
        yield _kafka(names, Reading("Value", metric))


def _otel_counters() -> Iterator[Series]:
    def counter(names: str, metric: str, unit: str = "", **more: Any) -> Series:
        return _kafka(names, Reading("Value", metric), unit, is_counter=True, **more)

    yield counter("kafka.message.count messaging.kafka.messages", "messages_in_total", labels={"topic": "topic"})
    unclean = "kafka.leader.election.unclean.count kafka.unclean.election.rate messaging.kafka.leader.unclean-elections"
    yield counter(unclean, "unclean_elections_total")
    yield counter("kafka.logs.flush.count", "log_flushes_total", "_milliseconds")  # the agent gives it a time's unit
    failed = "kafka.request.failed messaging.kafka.requests.failed"
    yield counter(failed, "failed_produces_total", where={"type": "produce"})
    for kind, metric in {"fetch": "fetch_requests_total", "produce": "produce_requests_total"}.items():
        yield counter("kafka.request.count", metric, where={"type": kind})
    for key in ("direction", "state"):
        for way in ("in", "out"):
            where = {key: way}
            network = "kafka.network.io messaging.kafka.network.io"
            yield counter(network, f"bytes_{way}_total", "_bytes", where=where, labels={"topic": "topic"})


def _otel_requests() -> Iterator[Series]:
    """Times of requests, by type. What is called their total time is their number: the rules take Count for it."""
    number = _with_units("kafka.request.time.total kafka.request.time", "_milliseconds", is_counter=True)
    numbers = dict.fromkeys(number, "Count")
    for request in ("Produce", "FetchConsumer", "FetchFollower"):
        for written in (request, request.lower()):
            of: dict[str, Any] = {"where": {"type": written}, "constant": {"request": request}}
            yield Series("otel", number[0], Reading("Count", "requests_total"), also=numbers, **of)
            mean = Reading("Mean", "request_ms_total", times="Count")
            yield _kafka("kafka.request.time.avg", mean, "_milliseconds", also=numbers, **of)
            yield _kafka("kafka.request.time.50p", Reading("Value", "request_median_ms"), "_milliseconds", **of)
            yield _kafka("kafka.request.time.99p", Reading("Value", "request_p99_ms"), "_milliseconds", **of)


_HEAP, _NON_HEAP = {"area": "heap"}, {"area": "nonheap"}
_BY_ID: dict[str, Any] = {"parts": ("id",), "pool": "id"}
"""By Micrometer; Prometheus' client library has the same names without pools."""
_PAUSES: dict[str, Any] = {"labels": {"gc": "collector"}, "parts": ("action", "cause")}


def _microprofile() -> Iterator[Series]:
    """MicroProfile Metrics (Open Liberty, Payara, WildFly, Helidon): the scope in the name, since 5.0 in a label."""
    for prefix, where in (("base.", {}), ("vendor.", {}), ("", {"mp_scope": "*"})):
        for name, metric, factor, labels in (
            ("memory.used.heap.bytes", "heap_used_bytes", 1, {}),
            ("memory.max.heap.bytes", "heap_max_bytes", 1, {}),
            ("memory.used.non.heap.bytes", "non_heap_used_bytes", 1, {}),
            ("thread.count", "threads", 1, {}),
            ("cpu.available.processors", "processors", 1, {}),
            ("cpu.process.cpu.time.seconds", "cpu_seconds_total", 1, {}),
            ("gc.time.seconds", "gc_seconds_total", 1, {"name": "collector"}),
            ("gc.total", "gc_collections_total", 1, {"name": "collector"}),
            ("jvm.uptime.seconds", UPTIME, 1e3, {}),
        ):
            also = dict.fromkeys((f"{prefix}{other}" for other in _MICROPROFILE_ALSO.get(name, ())), "Value")
            reading = Reading("Value", metric, factor)
            yield Series("microprofile", f"{prefix}{name}", reading, where=where, labels=labels, also=also)


_MICROPROFILE_ALSO = {
    "gc.time.seconds": ("gc.time.total.seconds", "gc.time.seconds.total"),
    "cpu.process.cpu.time.seconds": ("cpu.process.cpu.time.seconds.total",),
}
_PAUSES_COUNT = {"jvm_gc_pause_milliseconds_count": "Value"}
_CGROUP = ("container", "pod", "namespace", "id", "name", "image")
_BROKER_ID: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("kafka_server_app_info_starttimems", "id", {"id": "*"}),
    ("kafka_server_app_info_start_time_ms", "client_id", {"client_id": "*"}),
    ("kafka_server_quota_start_time_ms", "client_id", {"resource": "app-info", "client_id": "*"}),
)
SERIES: tuple[Series, ...] = (
    # Text attributes are not exposed (so there is no streams_version): the broker id is a label of another metric.
    *(
        Series("jmx", name, Reading("Value", "broker_info", presence=True), where, {label: "broker_id"})
        for name, label, where in _BROKER_ID
    ),
    *(
        Series("jmx", name, Reading("Value", "streams_info", presence=True), {label: "*"}, {label: label})
        for name, label in (
            ("kafka_streams_stream_metrics_client_state", "application_id"),
            ("kafka_stream_client_state", "application_id"),  # Micrometer
        )
    ),
    Series("jmx", "java_lang_runtime_uptime", Reading("Value", UPTIME)),
    # Rules that make a text a label (Confluent).
    *(
        Series(
            "jmx", "kafka_streams_stream_metrics", Reading("Value", metric, presence=True), {label: "*"}, {label: ours}
        )
        for label, metric, ours in (
            ("application_id", "streams_info", "application_id"),
            ("state", "streams_state", "state"),
            ("version", "streams_version", "version"),
        )
    ),
    Series(
        "jmx",
        "kafka_streams_stream_metrics",
        Reading("Value", "stream_threads_alive"),
        {"alive_stream_threads": "*"},
        parts=("client_id",),
        number="alive_stream_threads",
    ),
    # A rate that Confluent's rules call a total.
    Series(
        "jmx",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
        Reading("Value", "request_handler_idle_ratio", most=2),
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
    _micrometer("jvm_threads_live_threads", "threads", also={"jvm_threads_live": "Value"}),  # the latter before 1.1
    _micrometer("jvm_gc_pause_seconds_sum", "gc_seconds_total", **_PAUSES),
    _micrometer("jvm_gc_pause_milliseconds_sum", "gc_seconds_total", 1e-3, **_PAUSES),  # through OTLP
    _micrometer("jvm_gc_pause_seconds_count", "gc_collections_total", also=_PAUSES_COUNT, **_PAUSES),
    _micrometer("process_cpu_time_ns_total", "cpu_seconds_total", 1e-9),
    _micrometer("system_cpu_count", "processors"),
    _micrometer("system_cpu_usage", "system_cpu_ratio"),
    _micrometer("process_files_open_files", "open_file_descriptors", also={"process_files_open": "Value"}),
    _micrometer("process_files_max_files", "max_file_descriptors", also={"process_files_max": "Value"}),
    _micrometer("hikaricp_connections", "pool_connections", parts=("pool",)),
    _micrometer("hikaricp_connections_active", "pool_connections_in_use", parts=("pool",)),
    _micrometer("hikaricp_connections_pending", "pool_threads_waiting", parts=("pool",)),
    *_microprofile(),
    *(series for convention in _CONVENTIONS for series in _otel_memory(convention)),
    *(series for convention in _CONVENTIONS for series in _otel_others(convention)),
    *_gathered(),
    *_otel_gauges(),
    *_otel_counters(),
    *_otel_requests(),
    # cAdvisor's, next to the JVM's own in a Prometheus server; without a container's name it is the pod's sum.
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
