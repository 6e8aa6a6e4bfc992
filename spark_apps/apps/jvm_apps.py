"""App jvm_apps: JVMs of applications, and the hosts that JVMs run on.

Samples as read, then one row per process, store, topology node, client, host, and file system in an hour.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config

from spark_apps.models.client_hours import client_hours, client_topic_hours
from spark_apps.models.counters import counts, earlier_counters
from spark_apps.models.hourly_columns import counted, label, labels_are, reading
from spark_apps.models.nodes import NODE, file_system_hours, node_hours
from spark_apps.models.rocksdb_memory import APP, by_process, by_store, store_instances
from spark_apps.models.stream_nodes import stream_nodes
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.runtime.kept import kept
from spark_apps.sources.jmx import asked_in_time, endpoints_of, read_jmx
from spark_apps.sources.jmx_endpoint import name_of
from spark_apps.sources.jmx_metrics import STREAMS_STATES

_OF_THREADS = ("poll_latency_max_ms", "process_latency_mean_ms", "process_latency_max_ms")
THREAD_STACK_BYTES = 2**20
"""Default of -Xss on 64-bit Linux; JMX does not expose another value."""
CONCURRENT_COLLECTORS = "(?i)concurrent|cycles"
"""G1 Concurrent GC, ConcurrentMarkSweep, ZGC Cycles, Shenandoah Cycles: the application runs during these
collections."""


def extract(spark: SparkSession, hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Current readings of the JVMs and hosts, and their earlier counters."""
    of_apps, of_nodes = (earlier_counters(spark, f"metrics.{kind}_sample", hour) for kind in ("jvm_app", "node"))
    return {"jmx": read_jmx(spark, config, hour, "app", "node"), "earlier_counters": of_apps.unionByName(of_nodes)}


def transform(sources: dict[str, DataFrame], hour: datetime, config: Config) -> dict[str, DataFrame]:
    """Heap, off-heap, and other memory per process; RocksDB per store; record ages per node; and each host."""
    readings = sources["jmx"].where(f.col("metric").isNotNull())
    samples, of_nodes = readings.where(f.col("role") == "app"), readings.where(f.col("role") == "node")
    configured, nodes = (
        asked_in_time(rows(samples.sparkSession, config), sources["jmx"]) for rows in (_configured, _nodes)
    )
    # Persisted: several tables are computed from them, and planning them again for each costs more than reading them.
    instances = kept(store_instances(samples, configured.select(*APP, "write_buffers_bytes")))
    gained = kept(counts(readings, sources["earlier_counters"], hour))
    columns = ("metric", "labels", "at", "kind", "value", "process_started_at")
    return {
        "metrics.jvm_app_sample": samples.select(*APP, *columns),
        "metrics.jvm_app_hourly": _jvm_app_hourly(configured, samples, gained, instances),
        "metrics.state_store_memory_hourly": by_store(instances),
        "metrics.stream_node_hourly": stream_nodes(samples),
        "metrics.client_hourly": client_hours(samples, gained),
        "metrics.client_topic_hourly": client_topic_hours(samples, gained),
        "metrics.node_sample": of_nodes.select(*NODE, *columns),
        "metrics.node_hourly": node_hours(nodes, of_nodes, gained),
        "metrics.file_system_hourly": file_system_hours(nodes, of_nodes),
    }


def _jvm_app_hourly(configured: DataFrame, samples: DataFrame, gained: DataFrame, instances: DataFrame) -> DataFrame:
    """One row per configured process, including those that did not respond."""
    is_concurrent = f.coalesce(label("collector").rlike(CONCURRENT_COLLECTORS), f.lit(False))
    is_pause = (f.col("metric") == "gc_seconds_total") & ~is_concurrent
    rates = gained.groupBy("cluster", "endpoint").agg(
        f.max(f.when(labels_are(), f.col("covered_seconds"))).alias("covered_seconds"),
        f.sum(f.when(is_pause, f.col("counted"))).alias("gc_seconds"),
        counted("cpu_seconds_total").alias("cpu_seconds"),
        *(
            f.sum(f.when(f.col("metric") == f"{name}_total", f.col("counted"))).alias(name)
            for name in ("records_processed", "records_dropped")
        ),
        counted("producer_wait_seconds_total").alias("producer_wait_seconds"),
        f.try_divide(counted("throttled_periods_total"), counted("cpu_periods_total")).alias("throttled_ratio"),
    )
    gauges = _gauges(samples)
    joined = (
        configured.join(gauges, [*APP], "left")
        .join(rates, ["cluster", "endpoint"], "left")
        .join(_used_after_gc(samples), [*APP], "left")
        .join(_restored(samples), [*APP], "left")
        .join(by_process(instances), [*APP], "left")
        .join(_application_stores(instances, gauges), ["cluster", "application_id"], "left")
    )
    return joined.select(
        *APP,
        "instance_id",
        "application_id",
        f.date_trunc("second", "process_started_at").alias("process_started_at"),
        "samples",
        f.coalesce("configured_limit_bytes", "physical_memory_bytes").alias("memory_limit_bytes"),
        "heap_max_bytes",
        "heap_used_bytes",
        "heap_used_after_gc_bytes",
        "heap_survived_bytes",
        "non_heap_used_bytes",
        "direct_bytes",
        "resident_bytes",
        "threads",
        (f.col("threads") * THREAD_STACK_BYTES).alias("thread_stack_bytes"),
        "gc_seconds",
        "covered_seconds",
        "cpu_seconds",
        (f.col("cpu_seconds") / f.col("covered_seconds") / f.col("processors")).alias("cpu_ratio"),
        "open_file_descriptors",
        "max_file_descriptors",
        "stream_threads_alive",
        "stream_threads_failed",
        "streams_state",
        *_OF_THREADS,
        "record_latency_ms",
        "poll_ratio",
        "records_processed",
        "records_dropped",
        "records_to_restore",
        "producer_wait_seconds",
        "system_cpu_ratio",
        "throttled_ratio",
        "pool_connections",
        "pool_connections_in_use",
        "pool_threads_waiting",
        "restored_records_per_second",
        "store_instances",
        "application_stores",
        "rocksdb_measured_bytes",
        "rocksdb_expected_bytes",
        "rocksdb_expected_max_bytes",
        "rocksdb_shared_bytes",
        "rocksdb_shared_cache",
    )


def _application_stores(instances: DataFrame, gauges: DataFrame) -> DataFrame:
    """Stores × tasks of each Kafka Streams application over all its processes; standbys are not counted twice."""
    of_application = instances.join(gauges.select(*APP, "application_id"), [*APP])
    return of_application.groupBy("cluster", "application_id").agg(
        f.count_distinct("store", "kind", "task").cast("int").alias("application_stores")
    )


def _gauges(samples: DataFrame) -> DataFrame:
    return samples.groupBy(*APP).agg(
        f.count_distinct("at").cast("int").alias("samples"),
        f.max("process_started_at").alias("process_started_at"),
        f.max(f.when(f.col("metric") == "streams_info", label("application_id"))).alias("application_id"),
        f.max(reading("physical_memory_bytes")).alias("physical_memory_bytes"),
        f.max(reading("heap_max_bytes")).alias("heap_max_bytes"),
        f.avg(reading("heap_used_bytes")).alias("heap_used_bytes"),
        f.max(reading("non_heap_used_bytes")).alias("non_heap_used_bytes"),
        f.max(reading("direct_buffer_bytes")).alias("direct_bytes"),
        f.max(reading("threads")).alias("threads"),
        f.max(reading("resident_bytes")).alias("resident_bytes"),
        f.max(reading("processors")).alias("processors"),
        f.max(reading("open_file_descriptors")).alias("open_file_descriptors"),
        f.max(reading("max_file_descriptors")).alias("max_file_descriptors"),
        f.min(reading("stream_threads_alive")).alias("stream_threads_alive"),
        f.max(reading("stream_threads_failed")).alias("stream_threads_failed"),
        _streams_state().alias("streams_state"),
        *(f.max(_of_threads(name)).alias(name) for name in _OF_THREADS),
        f.avg(_of_threads("process_latency_mean_ms")).alias("record_latency_ms"),
        f.avg(_of_threads("poll_ratio")).alias("poll_ratio"),
        f.max(reading("records_to_restore")).alias("records_to_restore"),
        f.avg(reading("system_cpu_ratio")).alias("system_cpu_ratio"),
        f.max(reading("pool_connections")).alias("pool_connections"),
        f.avg(reading("pool_connections_in_use")).alias("pool_connections_in_use"),
        f.avg(reading("pool_threads_waiting")).alias("pool_threads_waiting"),
    )


def _of_threads(metric: str) -> Column:
    """As `reading`, for each stream thread."""
    return f.when(f.col("metric") == metric, f.col("value"))


def _streams_state() -> Column:
    """Latest reported state of a process' Kafka Streams clients, the worst if it has several."""
    state = label("state")
    rank = f.array_position(f.array(*map(f.lit, STREAMS_STATES)), state)
    return f.max_by(state, f.when(f.col("metric") == "streams_state", f.struct("at", rank)))


def _restored(samples: DataFrame) -> DataFrame:
    """Restore rate of each process; null if the restore ended within the run, because it may have ended long before."""
    left = samples.where(f.col("metric") == "records_to_restore").groupBy(*APP)
    ends = left.agg(
        f.min_by("value", "at").alias("first"),
        f.max_by("value", "at").alias("last"),
        (f.unix_micros(f.max("at")) - f.unix_micros(f.min("at"))).alias("micros"),
    )
    return ends.where("last > 0 and last < first").select(
        *APP, ((f.col("first") - f.col("last")) / f.col("micros") * 1_000_000).alias("restored_records_per_second")
    )


def _used_after_gc(samples: DataFrame) -> DataFrame:
    """Heap in use after the last collection of each pool, summed: as it was then, and as an estimate for now.

    The last collection of the old generation may be days ago, or there was none. Its result is used as the estimate
    while it is at least half of the current use; otherwise the current use is: an upper bound, so that advice based
    on it leaves enough heap.
    """
    pools = (
        samples.where(f.col("metric").isin("memory_pool_used_bytes", "memory_pool_used_after_gc_bytes"))
        .groupBy(*APP, label("pool").alias("pool"))
        .agg(
            f.max_by("value", f.when(f.col("metric") == "memory_pool_used_bytes", f.col("at"))).alias("used"),
            f.max_by("value", f.when(f.col("metric") == "memory_pool_used_after_gc_bytes", f.col("at"))).alias("kept"),
        )
        .where(f.col("kept").isNotNull())  # only heap pools have it
    )
    young = f.col("pool").rlike("(?i)eden|survivor")
    out_of_date = ~young & (f.col("kept") < f.col("used") / 2)
    return pools.groupBy(*APP).agg(
        f.sum(f.when(out_of_date, f.col("used")).otherwise(f.col("kept"))).alias("heap_used_after_gc_bytes"),
        f.sum("kept").alias("heap_survived_bytes"),
    )


def _configured(spark: SparkSession, config: Config) -> DataFrame:
    rows = [
        (
            e.cluster,
            e.app,
            name_of(e),
            e.instance_id,
            e.memory_limit_bytes,
            float(e.rocksdb_write_buffer_bytes * e.rocksdb_write_buffers),
        )
        for e in endpoints_of(config, "app")
    ]
    return driver_rows(
        spark,
        rows,
        "cluster string, app string, endpoint string, instance_id string, configured_limit_bytes bigint,"
        " write_buffers_bytes double",
    )


def _nodes(spark: SparkSession, config: Config) -> DataFrame:
    rows = [(e.cluster, name_of(e), e.instance_id) for e in endpoints_of(config, "node")]
    return driver_rows(spark, rows, "cluster string, endpoint string, instance_id string")
