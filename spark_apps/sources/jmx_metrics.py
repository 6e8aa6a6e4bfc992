"""Metrics read from JVMs and their hosts: names with units, and kinds, independent of JMX.

Namespaces map to these names: MBEANS is that of JMX object names (`spark_apps.sources.jmx_mbeans`). The names of the
same attributes in the Prometheus exposition format are derived from it (`spark_apps.sources.jmx_series`), where the
names for hosts are too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Kind = Literal["counter", "gauge", "percentile"]

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
    "remote_fetch_bytes_total": "counter",  # from tiered storage (KIP-405); a part of bytes_out_total
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
