"""Which detectors need which metrics of JVMs."""

from __future__ import annotations

from collections.abc import Mapping

NEEDED_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "broker": {
        "cpu_seconds_total": ("broker_requests_high",),
        "processors": ("broker_requests_high",),
        "open_file_descriptors": ("broker_file_descriptors_high",),
        "max_file_descriptors": ("broker_file_descriptors_high",),
        "bytes_in_total": (
            "broker_slow",
            "consumer_replaying",
            "consumer_trial_failed",
            "topic_compaction_wasteful",
            "topic_message_size_changed",
            "topic_overpartitioned",
            "topic_retention_wasteful",
        ),
        "bytes_out_total": ("changelog_abandoned", "consumer_rogue", "page_cache_small", "topic_abandoned"),
        "messages_in_total": (
            "consumer_replaying",
            "topic_compaction_wasteful",
            "topic_message_size_changed",
            "topic_underpartitioned",
        ),
        "fetch_requests_total": ("topic_polled_empty",),
        "log_flushes_total": ("broker_slow", "log_flush_slow"),
        "log_flush_ms_total": ("broker_slow",),
        "log_flush_p95_ms": ("broker_slow", "log_flush_slow"),
        "log_flush_p999_ms": ("broker_slow",),
        "requests_total": ("broker_requests_high", "produce_failing"),
        "active_controllers": ("consumer_replaying", "controllers_missing"),
        "unclean_elections_total": ("partitions_leaderless",),
        "under_replicated_partitions": ("page_cache_small", "partitions_under_replicated"),
        "partitions": ("broker_partitions_too_many", "broker_slow"),
        "log_bytes": ("topic_compaction_wasteful",),
    },
    "app": {
        "heap_max_bytes": ("app_memory_growing", "app_memory_heavy"),
        "gc_seconds_total": ("app_blocked_on_external_calls",),
        "streams_info": (
            "app_blocked_on_external_calls",
            "app_memory_heavy",
            "internal_topic_foreign_consumer",
            "latency_over_target",
            "state_store_growing",
            "state_store_restore_slow",
            "stream_threads_dead",
            "topic_compaction_wasteful",
            "topic_underpartitioned",
        ),
        "stream_threads_alive": ("app_blocked_on_external_calls", "stream_threads_dead"),
        "process_latency_mean_ms": ("app_blocked_on_external_calls", "topic_underpartitioned"),
        "records_processed_total": ("app_blocked_on_external_calls", "topic_underpartitioned"),
        "sst_bytes": ("state_store_growing", "topic_compaction_wasteful"),
        "keys": ("state_store_restore_slow", "topic_compaction_wasteful"),
        "cpu_seconds_total": ("app_blocked_on_external_calls",),
    },
}
"""By role and metric: detectors that, without it, find at most two of five faults of their cases; most find none.

`tests/sql/test_metric_uses.py` has it from the cases, with the columns emptied that the metric fills.
"""
