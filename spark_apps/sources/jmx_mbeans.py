"""The MBean attributes that are read for each metric, by Jolokia or RMI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spark_apps.sources.jmx_metrics import STREAMS_STATES

Role = Literal["broker", "app", "node"]
When = Literal["each", "ends", "last"]
"""In which samples of a run an MBean is read: wide ones (one MBean per topic) only where their values are needed."""


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
    # Only with remote.log.storage.system.enable; of a topic only after a remote read.
    _topic_counter("RemoteFetchBytesPerSec", "remote_fetch_bytes_total"),
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
