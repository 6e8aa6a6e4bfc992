"""Columns that a metric of JVMs fills, and cases of detectors without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PER_REQUEST = ("produce", "fetch_consumer", "fetch_follower")
_BROKER, _TOPIC, _ON_BROKER = "metrics.broker_hourly", "metrics.topic_hourly", "metrics.broker_topic_sample"
_APP, _STORE, _NODE = "metrics.jvm_app_hourly", "metrics.state_store_memory_hourly", "metrics.stream_node_hourly"
_CLIENT, _CLIENT_TOPIC = "metrics.client_hourly", "metrics.client_topic_hourly"


def _of_requests(*names: str) -> dict[str, set[str]]:
    return {_BROKER: {f"{request}_{name}" for request in _PER_REQUEST for name in names}}


def _of_topics(name: str, in_broker: str | None = None) -> dict[str, set[str]]:
    in_broker = f"{name}_per_second" if in_broker is None else in_broker
    columns = {_TOPIC: {name}, _ON_BROKER: {name, f"{name}_total"}}
    return columns | ({_BROKER: {in_broker}} if in_broker else {})


_NAMED_ALIKE = (
    "log_flush_p95_ms", "log_flush_p999_ms", "active_controllers", "offline_partitions", "under_min_isr_partitions",
    "reassigning_partitions", "partitions", "leaders", "dead_cleaner_threads", "uncleanable_partitions",
    "uncleanable_bytes", "cleaner_last_run_seconds", "client_connections",
)  # fmt: skip
_OF_APPS = (
    "stream_threads_alive", "stream_threads_failed", "streams_state", "poll_latency_max_ms", "poll_ratio",
    "process_latency_max_ms", "records_to_restore", "resident_bytes", "pool_connections", "pool_connections_in_use",
    "pool_threads_waiting", "system_cpu_ratio", "non_heap_used_bytes",
)  # fmt: skip
COLUMNS: Mapping[str, Mapping[str, set[str]]] = {
    **{metric: {_BROKER: {metric}} for metric in _NAMED_ALIKE},
    **{metric: {_APP: {metric}} for metric in _OF_APPS},
    "bytes_in_total": _of_topics("bytes_in"),
    "bytes_out_total": _of_topics("bytes_out"),
    "messages_in_total": _of_topics("messages_in"),
    "remote_fetch_bytes_total": _of_topics("remote_fetch_bytes"),
    "failed_produces_total": _of_topics("failed_produces", "failed_produces"),
    "bytes_rejected_total": _of_topics("bytes_rejected", ""),
    "fetch_requests_total": _of_topics("fetch_requests", ""),
    "produce_requests_total": _of_topics("produce_requests", ""),
    "replication_bytes_in_total": {_BROKER: {"replication_bytes_in_per_second"}},
    "replication_bytes_out_total": {_BROKER: {"replication_bytes_out_per_second"}},
    "reassignment_bytes_in_total": {_BROKER: {"reassignment_bytes_in_per_second"}},
    "reassignment_bytes_out_total": {_BROKER: {"reassignment_bytes_out_per_second"}},
    "log_flushes_total": {
        _BROKER: {"log_flushes_per_second", "log_flush_mean_ms", "log_flush_p95_ms", "log_flush_p999_ms"}
    },
    "log_flush_ms_total": {_BROKER: {"log_flush_mean_ms"}},
    "requests_total": _of_requests("requests_per_second", "mean_ms", "median_ms", "p99_ms"),
    "request_ms_total": _of_requests("mean_ms"),
    "request_median_ms": _of_requests("median_ms"),
    "request_p99_ms": _of_requests("p99_ms"),
    "request_queue": {_BROKER: {"request_queue_max"}},
    "request_handler_idle_ratio": {_BROKER: {"request_handler_idle_min_ratio"}},
    "unclean_elections_total": {_BROKER: {"unclean_elections"}},
    "under_replicated_partitions": {_BROKER: {"under_replicated_partitions", "under_replicated_partitions_max"}},
    "log_bytes": {_BROKER: {"log_bytes"}, _TOPIC: {"log_bytes"}, _ON_BROKER: {"log_bytes"}},
    "log_segments": {_BROKER: {"segments"}, _ON_BROKER: {"segments"}},
    "heap_used_bytes": {_BROKER: {"heap_used_bytes"}, _APP: {"heap_used_bytes"}},
    "heap_max_bytes": {_BROKER: {"heap_max_bytes"}, _APP: {"heap_max_bytes"}},
    "cpu_seconds_total": {_BROKER: {"cpu_ratio"}, _APP: {"cpu_ratio", "cpu_seconds"}},
    "processors": {_BROKER: {"cpu_ratio"}, _APP: {"cpu_ratio"}},
    "open_file_descriptors": {_BROKER: {"open_file_descriptors"}, _APP: {"open_file_descriptors"}},
    "max_file_descriptors": {_BROKER: {"max_file_descriptors"}, _APP: {"max_file_descriptors"}},
    "memory_pool_used_after_gc_bytes": {_APP: {"heap_used_after_gc_bytes", "heap_survived_bytes"}},
    "direct_buffer_bytes": {_APP: {"direct_bytes"}},
    "threads": {_APP: {"threads", "thread_stack_bytes"}},
    "gc_seconds_total": {_APP: {"gc_seconds"}},
    "streams_info": {_APP: {"application_id"}},
    "process_latency_mean_ms": {_APP: {"process_latency_mean_ms", "record_latency_ms"}},
    "records_processed_total": {_APP: {"records_processed"}},
    "records_dropped_total": {_APP: {"records_dropped"}},
    "producer_wait_seconds_total": {_APP: {"producer_wait_seconds"}},
    "sst_bytes": {_STORE: {"sst_bytes"}},
    "keys": {_STORE: {"keys"}},
}
"""By metric and table; a metric without columns here is only stored, or only counts with others."""


OF_BROKERS = {_BROKER, _TOPIC, _ON_BROKER, "metrics.broker_sample"}


def without(case: dict[str, Any], role: str, metric: str) -> dict[str, Any] | None:
    """A case in which nothing is known of a metric of brokers, or of applications; None where it gives none of it."""
    columns, changed = COLUMNS[metric], False
    given: dict[str, list[dict[str, Any]]] = {}
    for table, rows in case["given"].items():
        if (table in OF_BROKERS) != (role == "broker"):
            given[table] = rows
            continue
        given[table] = []
        for row in rows or []:
            if table.endswith("_sample") and row.get("metric") == metric:
                changed = True
                continue
            known = {name for name in columns.get(table, ()) if row.get(name) is not None}
            changed |= bool(known)
            given[table].append({**row, **dict.fromkeys(known)})
    return {**case, "given": given} if changed else None
