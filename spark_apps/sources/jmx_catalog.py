"""Metrics read from JVMs and their hosts: Streamwarden's name, the kind, and the MBean attribute.

`METRICS` is the vocabulary: names with units, and a kind, independent of JMX. Namespaces map to it: `MBEANS` is that
of JMX object names (Jolokia, RMI). The names of the same attributes in the Prometheus exposition format are derived
from it (`spark_apps.sources.jmx_series`), where the names for hosts are too. Negative, NaN, and null readings mean
"unknown" in JMX: they are stored as null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["counter", "gauge", "percentile"]
Role = Literal["broker", "app", "node"]
When = Literal["each", "ends", "last"]
"""In which samples of a run an MBean is read: wide ones (one MBean per topic) only where their values are needed."""

METRICS: Mapping[str, Kind] = {
    # Every JVM
    "heap_used_bytes": "gauge",
    "heap_max_bytes": "gauge",
    "non_heap_used_bytes": "gauge",
    "memory_pool_used_bytes": "gauge",
    "memory_pool_used_after_gc_bytes": "gauge",  # heap pools only
    "direct_buffer_bytes": "gauge",
    "threads": "gauge",
    "resident_bytes": "gauge",  # no MBean has it
    "gc_seconds_total": "counter",
    "gc_collections_total": "counter",
    "cpu_seconds_total": "counter",
    "processors": "gauge",
    "physical_memory_bytes": "gauge",  # inside a container: its limit
    "open_file_descriptors": "gauge",
    "max_file_descriptors": "gauge",
    # Brokers
    "broker_info": "gauge",  # 1, with the labels broker_id and version
    "bytes_in_total": "counter",
    "bytes_out_total": "counter",  # to consumers: followers are counted in replication_bytes_out_total
    "messages_in_total": "counter",
    "replication_bytes_in_total": "counter",
    "replication_bytes_out_total": "counter",
    "reassignment_bytes_in_total": "counter",  # a part of replication_bytes_in_total
    "reassignment_bytes_out_total": "counter",
    "failed_produces_total": "counter",  # partitions; without the errors that are expected during leader elections
    "bytes_rejected_total": "counter",  # batches rejected as too large
    "fetch_requests_total": "counter",  # partitions: each fetch of a partition, by consumers and followers
    "produce_requests_total": "counter",  # partitions: each part of a request for one partition
    "produce_responses_total": "counter",  # by error; NONE: success
    "log_flushes_total": "counter",
    "log_flush_ms_total": "counter",
    "log_flush_p95_ms": "percentile",
    "log_flush_p999_ms": "percentile",
    "requests_total": "counter",
    "request_ms_total": "counter",
    "request_median_ms": "percentile",
    "request_p99_ms": "percentile",
    "request_queue": "gauge",
    "request_handler_idle_ratio": "gauge",
    "active_controllers": "gauge",
    "unclean_elections_total": "counter",  # in KRaft each controller counts all of them, with ZooKeeper the active one
    "offline_partitions": "gauge",
    "under_replicated_partitions": "gauge",
    "under_min_isr_partitions": "gauge",
    "reassigning_partitions": "gauge",  # partitions that it leads
    "partitions": "gauge",
    "leaders": "gauge",
    "log_bytes": "gauge",
    "log_segments": "gauge",
    "dead_cleaner_threads": "gauge",
    "uncleanable_partitions": "gauge",
    "uncleanable_bytes": "gauge",
    "cleaner_last_run_seconds": "gauge",
    "client_fetch_bytes_per_second": "gauge",  # over the last seconds; only clients with a quota
    "client_connections": "gauge",  # by client software, its version, and the listener
    # Applications
    "system_cpu_ratio": "gauge",  # since the previous reading; of the host, or of the container if it has a limit
    # Kafka Streams
    "streams_version": "gauge",  # 1, with the label version
    "streams_info": "gauge",  # 1, with the label application_id
    "streams_state": "gauge",  # 1, with the label state
    "stream_threads_alive": "gauge",
    "stream_threads_failed": "gauge",
    "poll_latency_max_ms": "gauge",
    "poll_ratio": "gauge",
    "process_latency_mean_ms": "gauge",
    "process_latency_max_ms": "gauge",
    "records_processed_total": "counter",
    "records_dropped_total": "counter",
    "records_to_restore": "gauge",
    "producer_wait_seconds_total": "counter",  # waiting for buffer space or metadata
    # Their clients, by client id. A mean covers at most the last minute.
    "producer_records_total": "counter",
    "producer_record_errors_total": "counter",  # records that failed
    "producer_buffer_exhausted_total": "counter",  # sends that failed because the buffer had no room in time
    "producer_requests_total": "counter",  # of every kind
    "producer_batch_mean_bytes": "gauge",  # compressed
    "producer_queue_mean_ms": "gauge",  # of a batch, until it is sent
    "producer_queue_max_ms": "gauge",
    "producer_compression_ratio": "gauge",  # of a batch; 1: not compressed
    "producer_throttle_mean_ms": "gauge",  # of a request, by brokers' quotas
    "consumer_fetches_total": "counter",
    "consumer_records_total": "counter",
    "consumer_bytes_total": "counter",  # uncompressed
    "consumer_throttle_mean_ms": "gauge",
    "consumer_poll_gap_max_ms": "gauge",
    "consumer_network_in_bytes_total": "counter",  # of all responses, as on the wire
    # The same by topic
    "producer_topic_records_total": "counter",
    "producer_topic_bytes_total": "counter",  # compressed
    "producer_topic_record_errors_total": "counter",
    "consumer_topic_records_total": "counter",
    "consumer_topic_bytes_total": "counter",
    # Of a node, over at most the last minute: age of records when they reach it. Negative: clock skew.
    "record_age_min_ms": "gauge",
    "record_age_mean_ms": "gauge",
    "record_age_max_ms": "gauge",
    "reads_topic": "gauge",  # 1, with the labels node and topic
    "holds_back": "gauge",  # 1, with the label task: it aggregates windows, or suppresses updates
    "memtable_bytes": "gauge",
    "memtable_unflushed_bytes": "gauge",
    "block_cache_usage_bytes": "gauge",
    "block_cache_pinned_bytes": "gauge",
    "block_cache_capacity_bytes": "gauge",
    "table_readers_bytes": "gauge",
    "sst_bytes": "gauge",
    "keys": "gauge",
    # Database connection pools, all pools of a JVM
    "pool_connections": "gauge",
    "pool_connections_in_use": "gauge",
    "pool_threads_waiting": "gauge",  # for a connection
    # Containers with a CPU limit; no MBean has them
    "cpu_periods_total": "counter",
    "throttled_periods_total": "counter",  # of those: periods in which the container was throttled
    # Hosts; physical_memory_bytes too
    "available_memory_bytes": "gauge",  # the kernel's estimate: free memory, and page cache that can be reclaimed
    "page_cache_bytes": "gauge",
    "load_1m": "gauge",
    "machine_cpu_seconds_total": "counter",  # by mode, all cores
    "disk_read_bytes_total": "counter",
    "disk_written_bytes_total": "counter",
    "disk_reads_total": "counter",
    "disk_writes_total": "counter",
    "disk_busy_seconds_total": "counter",
    "file_system_bytes": "gauge",
    "file_system_available_bytes": "gauge",
    "file_system_read_only": "gauge",  # 1: mounted read-only
}


PRESENCES = ("broker_info", "streams_info", "streams_state", "streams_version", "reads_topic", "holds_back")
"""Metrics with the value 1, whatever the state of the JVM."""
STREAMS_STATES = ("CREATED", "REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING", "PENDING_ERROR", "ERROR")
"""State of a Kafka Streams client, in the order of its enum; later ones are worse."""


@dataclass(frozen=True)
class Reading:
    """One attribute of an MBean, and its metric."""

    attribute: str
    """JMX attribute; `HeapMemoryUsage.used` is an item of a composite."""
    metric: str
    factor: float = 1
    times: str | None = None
    """Attribute to multiply by: Yammer's Mean covers all calls so far, so Mean × Count is an exact counter."""
    label: str | None = None
    """The attribute is a text: it becomes the value of this label, and the metric is 1."""
    words: tuple[str, ...] = ()
    """Texts for the numbers 0, 1, …, where the attribute is a number."""
    presence: bool = False
    """Only the presence of the attribute counts: the value is 1."""
    signed: bool = False
    """Negative values are valid rather than unknown."""
    most: float | None = None
    """Above this it is unknown."""


@dataclass(frozen=True)
class MBean:
    """A family of MBeans. Those that differ only in keys that are not labels are added up."""

    pattern: str
    """Object name without the closing `,*`."""
    readings: tuple[Reading, ...]
    roles: tuple[Role, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    """Key property → our label."""
    constant: Mapping[str, str] = field(default_factory=dict)
    """Labels for every MBean of the family."""
    without: tuple[str, ...] = ()
    """Key properties of MBeans to exclude."""
    parts: tuple[str, ...] = ()
    """Key properties besides labels that distinguish the MBeans to add up. No other property does: a label that is
    not listed comes from the scraper."""
    when: When = "each"

    @property
    def attributes(self) -> list[str]:
        """Attributes to request."""
        wanted = [name.split(".")[0] for r in self.readings for name in (r.attribute, r.times) if name]
        return list(dict.fromkeys(wanted))


_ANY: tuple[Role, ...] = ("broker", "app")
_BROKER: tuple[Role, ...] = ("broker",)
_APP: tuple[Role, ...] = ("app",)


def _topic_counter(name: str, metric: str) -> MBean:
    pattern = f"kafka.server:type=BrokerTopicMetrics,name={name}"
    return MBean(pattern, (Reading("Count", metric),), _BROKER, labels={"topic": "topic"}, when="ends")


def _value(pattern: str, metric: str, **more: Any) -> MBean:
    return MBean(pattern, (Reading("Value", metric),), _BROKER, **more)


def _of_logs(name: str, metric: str) -> MBean:
    """MBeans of logs. A replica that is being moved to another disk (is-future) is not a second one."""
    pattern = f"kafka.log:type=Log,name={name}"
    return _value(pattern, metric, labels={"topic": "topic"}, parts=("partition",), without=("is-future",), when="last")


def _request(request: str) -> MBean:
    return MBean(
        f"kafka.network:type=RequestMetrics,name=TotalTimeMs,request={request}",
        (
            Reading("Count", "requests_total"),
            Reading("Mean", "request_ms_total", times="Count"),
            Reading("50thPercentile", "request_median_ms"),
            Reading("99thPercentile", "request_p99_ms"),
        ),
        _BROKER,
        labels={"request": "request"},
    )


def _client(kind: str, *readings: Reading) -> MBean:
    """MBeans of each client; the same type has MBeans of its topics and partitions."""
    pattern = f"kafka.{kind.partition('-')[0]}:type={kind},client-id=*"
    return MBean(pattern, readings, _APP, {"client-id": "client"}, without=("topic", "partition"), when="ends")


def _client_topic(kind: str, *readings: Reading) -> MBean:
    pattern = f"kafka.{kind.partition('-')[0]}:type={kind},client-id=*,topic=*"
    labels = {"client-id": "client", "topic": "topic"}
    return MBean(pattern, readings, _APP, labels, without=("partition",), when="last")


def _rocksdb(key: str, kind: str) -> MBean:
    return MBean(
        f"kafka.streams:type=stream-state-metrics,{key}=*",
        (
            Reading("size-all-mem-tables", "memtable_bytes"),
            Reading("cur-size-all-mem-tables", "memtable_unflushed_bytes"),
            Reading("block-cache-usage", "block_cache_usage_bytes"),
            Reading("block-cache-pinned-usage", "block_cache_pinned_bytes"),
            Reading("block-cache-capacity", "block_cache_capacity_bytes"),
            Reading("estimate-table-readers-mem", "table_readers_bytes"),
            Reading("total-sst-files-size", "sst_bytes"),
            Reading("estimate-num-keys", "keys"),
        ),
        _APP,
        labels={key: "store", "task-id": "task"},
        parts=("thread-id",),
        constant={"kind": kind},
    )


MBEANS: tuple[MBean, ...] = (
    MBean(
        "java.lang:type=Memory",
        (
            Reading("HeapMemoryUsage.used", "heap_used_bytes"),
            Reading("HeapMemoryUsage.max", "heap_max_bytes"),
            Reading("NonHeapMemoryUsage.used", "non_heap_used_bytes"),
        ),
        _ANY,
    ),
    MBean(
        "java.lang:type=MemoryPool",
        (
            Reading("Usage.used", "memory_pool_used_bytes"),
            Reading("CollectionUsage.used", "memory_pool_used_after_gc_bytes"),
        ),
        _APP,
        labels={"name": "pool"},
    ),
    # Mapped buffers are left out: they are files, and the kernel reclaims their pages.
    MBean("java.nio:type=BufferPool,name=direct", (Reading("MemoryUsed", "direct_buffer_bytes"),), _APP),
    MBean("java.lang:type=Threading", (Reading("ThreadCount", "threads"),), _APP),
    MBean(
        "java.lang:type=GarbageCollector",
        (Reading("CollectionTime", "gc_seconds_total", 1e-3), Reading("CollectionCount", "gc_collections_total")),
        _APP,
        labels={"name": "collector"},
    ),
    MBean(
        "java.lang:type=OperatingSystem",
        (
            Reading("ProcessCpuTime", "cpu_seconds_total", 1e-9),
            Reading("AvailableProcessors", "processors"),
            Reading("TotalPhysicalMemorySize", "physical_memory_bytes"),
            Reading("OpenFileDescriptorCount", "open_file_descriptors"),
            Reading("MaxFileDescriptorCount", "max_file_descriptors"),
        ),
        _ANY,
    ),
    MBean("java.lang:type=OperatingSystem", (Reading("SystemCpuLoad", "system_cpu_ratio"),), _APP),
    MBean(
        "kafka.server:type=app-info,id=*",
        (Reading("Version", "broker_info", label="version"),),
        _BROKER,
        labels={"id": "broker_id"},
    ),
    _topic_counter("BytesInPerSec", "bytes_in_total"),
    _topic_counter("BytesOutPerSec", "bytes_out_total"),
    _topic_counter("MessagesInPerSec", "messages_in_total"),
    _topic_counter("TotalFetchRequestsPerSec", "fetch_requests_total"),
    _topic_counter("TotalProduceRequestsPerSec", "produce_requests_total"),
    _topic_counter("FailedProduceRequestsPerSec", "failed_produces_total"),  # of a topic only after a failure
    _topic_counter("BytesRejectedPerSec", "bytes_rejected_total"),
    _topic_counter("ReplicationBytesInPerSec", "replication_bytes_in_total"),
    _topic_counter("ReplicationBytesOutPerSec", "replication_bytes_out_total"),
    # Never by topic.
    _topic_counter("ReassignmentBytesInPerSec", "reassignment_bytes_in_total"),
    _topic_counter("ReassignmentBytesOutPerSec", "reassignment_bytes_out_total"),
    MBean(
        "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
        (
            Reading("Count", "log_flushes_total"),
            Reading("Mean", "log_flush_ms_total", times="Count"),
            Reading("95thPercentile", "log_flush_p95_ms"),
            Reading("999thPercentile", "log_flush_p999_ms"),
        ),
        _BROKER,
    ),
    _request("Produce"),
    MBean(
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=Produce",
        (Reading("Count", "produce_responses_total"),),
        _BROKER,
        labels={"error": "error"},
    ),
    _request("FetchConsumer"),
    _request("FetchFollower"),
    _value("kafka.network:type=RequestChannel,name=RequestQueueSize", "request_queue"),
    MBean(
        "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        (Reading("OneMinuteRate", "request_handler_idle_ratio"),),
        _BROKER,
    ),
    _value("kafka.controller:type=KafkaController,name=ActiveControllerCount", "active_controllers"),
    MBean(
        "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
        (Reading("Count", "unclean_elections_total"),),
        _BROKER,
    ),
    _value("kafka.controller:type=KafkaController,name=OfflinePartitionsCount", "offline_partitions"),
    _value("kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions", "under_replicated_partitions"),
    _value("kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount", "under_min_isr_partitions"),
    _value("kafka.server:type=ReplicaManager,name=ReassigningPartitions", "reassigning_partitions"),
    _value("kafka.server:type=ReplicaManager,name=PartitionCount", "partitions"),
    _value("kafka.server:type=ReplicaManager,name=LeaderCount", "leaders"),
    _value("kafka.log:type=LogCleaner,name=DeadThreadCount", "dead_cleaner_threads"),
    # One per log directory.
    _value(
        "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
        "uncleanable_partitions",
        parts=("logDirectory",),
    ),
    _value("kafka.log:type=LogCleanerManager,name=uncleanable-bytes", "uncleanable_bytes", parts=("logDirectory",)),
    MBean(
        "kafka.log:type=LogCleanerManager,name=time-since-last-run-ms",
        (Reading("Value", "cleaner_last_run_seconds", 1e-3),),
        _BROKER,
    ),
    _of_logs("Size", "log_bytes"),
    _of_logs("NumLogSegments", "log_segments"),
    MBean(
        "kafka.server:type=Fetch",
        (Reading("byte-rate", "client_fetch_bytes_per_second"),),
        _BROKER,
        labels={"client-id": "client", "user": "user"},
        when="last",
    ),
    # One per network thread. Clients before Kafka 2.4 do not report their software: unknown.
    MBean(
        "kafka.server:type=socket-server-metrics,clientSoftwareName=*,clientSoftwareVersion=*",
        (Reading("connections", "client_connections"),),
        _BROKER,
        labels={"clientSoftwareName": "client", "clientSoftwareVersion": "version", "listener": "listener"},
        parts=("networkProcessor",),
        when="last",
    ),
    MBean(
        "kafka.streams:type=stream-metrics",
        (
            Reading("application-id", "streams_info", label="application_id"),
            Reading("version", "streams_version", label="version"),
            Reading("state", "streams_state", label="state"),
            Reading("client-state", "streams_state", label="state", words=STREAMS_STATES),  # as a number: since 4.0
            Reading("alive-stream-threads", "stream_threads_alive"),
            Reading("failed-stream-threads", "stream_threads_failed"),
        ),
        _APP,
        parts=("client-id",),
    ),
    MBean(
        "kafka.streams:type=stream-thread-metrics,thread-id=*",
        (
            Reading("poll-latency-max", "poll_latency_max_ms"),
            Reading("poll-ratio", "poll_ratio"),
            Reading("process-latency-avg", "process_latency_mean_ms"),
            Reading("process-latency-max", "process_latency_max_ms"),
            Reading("process-total", "records_processed_total"),
        ),
        _APP,
        labels={"thread-id": "thread"},
    ),
    MBean(
        "kafka.streams:type=stream-task-metrics,task-id=*",
        (Reading("dropped-records-total", "records_dropped_total"),),
        _APP,
        labels={"task-id": "task", "thread-id": "thread"},
    ),
    MBean(
        "kafka.streams:type=stream-task-metrics,task-id=*",
        (Reading("restore-remaining-records-total", "records_to_restore"),),
        _APP,
        parts=("thread-id",),
    ),
    MBean(
        "kafka.producer:type=producer-metrics,client-id=*",
        (
            Reading("bufferpool-wait-time-ns-total", "producer_wait_seconds_total", 1e-9),
            Reading("metadata-wait-time-ns-total", "producer_wait_seconds_total", 1e-9),
        ),
        _APP,
    ),
    _client(
        "producer-metrics",
        Reading("record-send-total", "producer_records_total"),
        Reading("record-error-total", "producer_record_errors_total"),
        Reading("buffer-exhausted-total", "producer_buffer_exhausted_total"),
        Reading("request-total", "producer_requests_total"),
        Reading("batch-size-avg", "producer_batch_mean_bytes"),
        Reading("record-queue-time-avg", "producer_queue_mean_ms"),
        Reading("record-queue-time-max", "producer_queue_max_ms"),
        Reading("compression-rate-avg", "producer_compression_ratio"),
        Reading("produce-throttle-time-avg", "producer_throttle_mean_ms"),
    ),
    _client(
        "consumer-fetch-manager-metrics",
        Reading("fetch-total", "consumer_fetches_total"),
        Reading("records-consumed-total", "consumer_records_total"),
        Reading("bytes-consumed-total", "consumer_bytes_total"),
        Reading("fetch-throttle-time-avg", "consumer_throttle_mean_ms"),
    ),
    _client(
        "consumer-metrics",
        Reading("time-between-poll-max", "consumer_poll_gap_max_ms"),
        Reading("incoming-byte-total", "consumer_network_in_bytes_total"),
    ),
    _client_topic(
        "producer-topic-metrics",
        Reading("record-send-total", "producer_topic_records_total"),
        Reading("byte-total", "producer_topic_bytes_total"),
        Reading("record-error-total", "producer_topic_record_errors_total"),
    ),
    _client_topic(
        "consumer-fetch-manager-metrics",
        Reading("records-consumed-total", "consumer_topic_records_total"),
        Reading("bytes-consumed-total", "consumer_topic_bytes_total"),
    ),
    MBean(
        "com.zaxxer.hikari:type=Pool (*)",
        (
            Reading("TotalConnections", "pool_connections"),
            Reading("ActiveConnections", "pool_connections_in_use"),
            Reading("ThreadsAwaitingConnection", "pool_threads_waiting"),
        ),
        _APP,
    ),
    # Only source nodes and terminal nodes of a subtopology have these.
    MBean(
        "kafka.streams:type=stream-processor-node-metrics,task-id=*",
        (
            Reading("record-e2e-latency-min", "record_age_min_ms", signed=True),
            Reading("record-e2e-latency-avg", "record_age_mean_ms", signed=True),
            Reading("record-e2e-latency-max", "record_age_max_ms", signed=True),
            # One per windowed aggregation; whether it emits when a window closes is exposed only at level debug.
            Reading("window-aggregate-final-emit-total", "holds_back", presence=True),
        ),
        _APP,
        labels={"processor-node-id": "node", "task-id": "task"},
        parts=("thread-id",),
    ),
    MBean(
        "kafka.streams:type=stream-topic-metrics",
        (Reading("records-consumed-total", "reads_topic", presence=True),),
        _APP,
        labels={"processor-node-id": "node", "topic": "topic"},
        when="last",
    ),
    MBean(
        "kafka.streams:type=stream-state-metrics,in-memory-suppression-state-id=*",
        (Reading("suppression-buffer-count-max", "holds_back", presence=True),),
        _APP,
        labels={"task-id": "task"},
        when="last",
    ),
    _rocksdb("rocksdb-state-id", "key_value"),
    _rocksdb("rocksdb-window-state-id", "window"),
    _rocksdb("rocksdb-session-state-id", "session"),
)


def beans_of(role: Role, sample: int, samples: int) -> tuple[MBean, ...]:
    """MBeans to read from a JVM in sample number `sample` (from 0) of `samples`."""
    first, last = sample == 0, sample == samples - 1
    return tuple(
        bean
        for bean in MBEANS
        if role in bean.roles and (bean.when == "each" or last or (first and bean.when == "ends"))
    )


def readings_of(bean: MBean, found: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """Metric, labels, and value of all MBeans found: object name → {attribute: value}."""
    return sums_of(bean, ((key_properties(name), attributes) for name, attributes in found.items()))


def sums_of(
    bean: MBean, found: Iterable[tuple[Mapping[str, str], Any]]
) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """The same, from key properties and attributes."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float | None] = {}
    for keys, attributes in found:
        if not isinstance(attributes, Mapping) or any(key in keys for key in bean.without):
            continue
        labels = {**{label: keys[key] for key, label in bean.labels.items() if key in keys}, **bean.constant}
        labels_of_bean = tuple(sorted(labels.items()))
        for reading in bean.readings:
            if reading.attribute not in attributes and reading.attribute.split(".")[0] not in attributes:
                continue
            own, value = _value_of(reading, attributes, labels)
            series = (reading.metric, labels_of_bean if own is labels else tuple(sorted(own.items())))
            # An unknown part makes the sum unknown; equal texts are the same text, however often they occur.
            if reading.label or reading.presence or series not in sums:
                sums[series] = value
            else:
                known = sums[series]
                sums[series] = None if value is None or known is None else known + value
    for (metric, labels_of_series), value in sums.items():
        yield metric, dict(labels_of_series), value


def _value_of(
    reading: Reading, attributes: Mapping[str, Any], labels: dict[str, str]
) -> tuple[dict[str, str], float | None]:
    raw: Any = attributes
    for part in [reading.attribute] if reading.attribute in attributes else reading.attribute.split("."):
        raw = raw.get(part) if isinstance(raw, Mapping) else None
    if reading.label:
        raw = _word(reading.words, raw) if reading.words else raw
        is_text = isinstance(raw, str) and not raw.startswith("ERROR:")  # Jolokia's text for a failed attribute
        return ({**labels, reading.label: raw}, 1.0) if is_text else (labels, None)
    if reading.presence:
        return labels, 1.0
    value = number(raw, signed=reading.signed)
    value = None if value is not None and reading.most is not None and value > reading.most else value
    other = number(attributes.get(reading.times)) if reading.times else 1.0
    return labels, None if value is None or other is None else value * reading.factor * other


def _word(words: tuple[str, ...], raw: Any) -> str | None:
    place = number(raw)
    return words[int(place)] if place is not None and place < len(words) else None


def number(raw: Any, *, signed: bool = False) -> float | None:
    """The reading as a number; null if the JVM does not know it."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        value = float(raw)
    except OverflowError:  # an integer with hundreds of digits
        return None
    return value if math.isfinite(value) and (signed or value >= 0) else None


def key_properties(name: str) -> dict[str, str]:
    """Key properties of an object name, unquoted: `d:type=Log,topic=a` → {type: Log, topic: a}."""
    pairs = re.findall(r'([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)', name.partition(":")[2])
    return {key: re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value for key, value in pairs}
