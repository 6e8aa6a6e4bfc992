"""Hours of MSK's brokers by CloudWatch, in the tables of brokers, instances, networks, and log directories."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.apps.ebs_volumes.hours import minutes
from spark_apps.apps.ebs_volumes.inventory import INSTANCE
from spark_apps.apps.ebs_volumes.series import samples
from spark_apps.apps.msk.series import BROKER, CLUSTER, HOST
from spark_apps.models.network import network_hours

LOG_DIR = "KafkaDataLogs"
"""Stands for the directory of brokers' logs; those that Kafka reports are paths."""
COLUMNS = [metric.column for metric in (*HOST, *BROKER, *CLUSTER)]
_LIMITS = ["baseline_bytes_per_second", "peak_bytes_per_second"]
_EXCEEDED = ("bw_in_exceeded", "bw_out_exceeded", "pps_exceeded", "conntrack_exceeded", "traffic_shaping")


def broker_samples(metrics: DataFrame) -> DataFrame:
    """One row per broker and minute, a column for each metric."""
    return samples(metrics, "instance_id", COLUMNS)


def _endpoint() -> Column:
    """Address of a broker whose JVM is not read."""
    return f.concat(f.lit("msk://"), "host")


def _cpu() -> Column:
    return f.col("cpu_user") + f.col("cpu_system")


def _memory_used() -> Column:
    """Percent. MemoryUsed is without buffers and cache."""
    total = f.col("memory_used") + f.col("memory_free") + f.col("memory_cached") + f.col("memory_buffered")
    return 100 * f.try_divide(f.col("memory_used"), total)


def hours_of(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """An hour of each broker that has a point: means, extremes, and last values."""
    of_hour = sources["broker_samples"].filter(f.col("at") >= f.lit(hour))

    def last(column: str) -> Column:
        return f.max_by(column, f.when(f.col(column).isNotNull(), f.col("at"))).alias(f"{column}_last")

    means = (
        "bytes_in", "bytes_out", "remote_fetch", "messages_in", "replication_bytes_in", "replication_bytes_out",
        "produce_ms", "fetch_consumer_ms", "fetch_follower_ms", "connections", "cpu_io_wait", "memory_used",
        "memory_cached", "heap_after_gc",
    )  # fmt: skip
    most = (
        "under_replicated", "under_min_isr", "partitions", "leaders", "active_controllers", "offline_partitions",
        "heap_after_gc", "swap_used", "app_log_disk_used", "root_disk_used", "produce_throttle_ms", "fetch_throttle_ms",
    )  # fmt: skip
    least = ("under_replicated", "request_handler_idle", "memory_free", "memory_cached", "swap_used", "heap_after_gc")
    return of_hour.groupBy(*INSTANCE).agg(
        minutes(f.lit(1)).alias("minutes_present"),
        f.avg(_cpu()).alias("cpu_mean_percent"),
        f.max(_cpu()).alias("cpu_max_percent"),
        *(f.avg(column).alias(f"{column}_mean") for column in means),
        *(f.max(column).alias(f"{column}_max") for column in most),
        *(f.min(column).alias(f"{column}_min") for column in least),
        *(last(column) for column in ("data_disk_used", "swap_used", "partitions")),
        *(f.sum(column).alias(column) for column in _EXCEEDED),
        *(minutes((f.col(column) > 0).cast("double")).alias(f"minutes_{column}") for column in _EXCEEDED),
    )


def broker_hours(sources: dict[str, DataFrame], hours: DataFrame) -> DataFrame:
    """Rows of metrics.broker_hourly for brokers whose JVM is not read, also of those without a point."""
    idle = f.col("request_handler_idle_min")
    exposed = {
        "bytes_in_per_second": "bytes_in_mean",
        "bytes_out_per_second": "bytes_out_mean",
        "remote_fetch_bytes_per_second": "remote_fetch_mean",
        "messages_in_per_second": "messages_in_mean",
        "replication_bytes_in_per_second": "replication_bytes_in_mean",
        "replication_bytes_out_per_second": "replication_bytes_out_mean",
        "produce_mean_ms": "produce_ms_mean",
        "fetch_consumer_mean_ms": "fetch_consumer_ms_mean",
        "fetch_follower_mean_ms": "fetch_follower_ms_mean",
        "active_controllers": "active_controllers_max",
        "offline_partitions": "offline_partitions_max",
        "under_replicated_partitions": "under_replicated_min",
        "under_replicated_partitions_max": "under_replicated_max",
        "under_min_isr_partitions": "under_min_isr_max",
        "partitions": "partitions_max",
        "leaders": "leaders_max",
        "client_connections": "connections_mean",
    }
    rows = _unread(sources).join(hours, INSTANCE, "left")
    return _with_nulls(
        rows.select(
            "cluster",
            "broker_id",
            _endpoint().alias("endpoint"),
            "instance_id",
            f.col("minutes_present").alias("samples"),
            (60.0 * f.col("minutes_present")).alias("covered_seconds"),
            *(f.col(source).cast("double").alias(column) for column, source in exposed.items()),
            # Documented as a percentage, sent as a share of 1.
            f.when(idle > 1, idle / 100).otherwise(idle).alias("request_handler_idle_min_ratio"),
            (f.col("cpu_mean_percent") / 100).alias("cpu_ratio"),
        ),
        _NOT_EXPOSED,
    )


_NOT_EXPOSED = {
    "process_started_at": "timestamp",
    "produce_errors": "string",
    **dict.fromkeys(
        (
            "log_flushes_per_second", "log_flush_mean_ms", "log_flush_p95_ms", "log_flush_p999_ms", "produce_median_ms",
            "produce_p99_ms", "fetch_consumer_median_ms", "fetch_consumer_p99_ms", "fetch_follower_median_ms",
            "fetch_follower_p99_ms", "request_queue_max", "log_bytes", "open_file_descriptors", "max_file_descriptors",
            "heap_used_bytes", "heap_max_bytes", "produce_requests_per_second", "fetch_consumer_requests_per_second",
            "fetch_follower_requests_per_second", "failed_produces", "dead_cleaner_threads", "uncleanable_partitions",
            "uncleanable_bytes", "cleaner_last_run_seconds", "reassigning_partitions",
            "reassignment_bytes_in_per_second", "reassignment_bytes_out_per_second", "unclean_elections", "segments",
        ),
        "double",
    ),
}  # fmt: skip
"""Columns of metrics.broker_hourly that no metric of AWS/Kafka has."""


def _with_nulls(frame: DataFrame, columns: dict[str, str]) -> DataFrame:
    return frame.withColumns({name: f.lit(None).cast(kind) for name, kind in columns.items()})


def _unread(sources: dict[str, DataFrame]) -> DataFrame:
    """Brokers whose JVM is not read, of clusters that are as they were in the hour."""
    return sources["asked"].filter("not is_read_by_jmx and observed_at is not null")


def controller_samples(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """ActiveControllerCount of the cluster by minute, as the reading of its first broker, in metrics.broker_sample."""
    points = sources["broker_samples"].filter(f.col("active_controllers").isNotNull() & (f.col("at") >= f.lit(hour)))
    return (
        _unread(sources)
        .join(points.select(*INSTANCE, "at", "active_controllers"), INSTANCE)
        .select(
            "cluster",
            _endpoint().alias("endpoint"),
            f.lit("active_controllers").alias("metric"),
            f.lit("{}").alias("labels"),
            "at",
            f.lit("gauge").alias("kind"),
            f.col("active_controllers").alias("value"),
            f.lit(None).cast("timestamp").alias("process_started_at"),
        )
    )


def msk_broker_hours(sources: dict[str, DataFrame], hours: DataFrame) -> DataFrame:
    """Rows of metrics.msk_broker_hourly: what no other table has a column for."""
    known = sources["asked"].filter("observed_at is not null")
    named = {
        "heap_after_gc_mean_percent": "heap_after_gc_mean",
        "heap_after_gc_max_percent": "heap_after_gc_max",
        "heap_after_gc_min_percent": "heap_after_gc_min",
        "memory_used_mean_bytes": "memory_used_mean",
        "memory_cached_mean_bytes": "memory_cached_mean",
        "memory_free_min_bytes": "memory_free_min",
        "swap_used_max_bytes": "swap_used_max",
        "swap_used_last_bytes": "swap_used_last",
        "io_wait_mean_percent": "cpu_io_wait_mean",
        "data_disk_used_percent": "data_disk_used_last",
        "app_log_disk_used_max_percent": "app_log_disk_used_max",
        "root_disk_used_max_percent": "root_disk_used_max",
        "traffic_shaping_packets": "traffic_shaping",
        "bandwidth_in_exceeded_packets": "bw_in_exceeded",
        "bandwidth_out_exceeded_packets": "bw_out_exceeded",
        "packet_rate_exceeded_packets": "pps_exceeded",
        "connections_exceeded_packets": "conntrack_exceeded",
        "produce_throttle_max_ms": "produce_throttle_ms_max",
        "fetch_throttle_max_ms": "fetch_throttle_ms_max",
    }
    return known.join(hours, INSTANCE, "left").select(
        "cluster",
        "broker_id",
        *INSTANCE,
        "monitoring_level",
        "kind",
        "minutes_present",
        f.col("minutes_traffic_shaping").alias("minutes_shaped"),
        *(f.col(source).cast("double").alias(column) for column, source in named.items()),
    )


def log_dirs(sources: dict[str, DataFrame], hours: DataFrame) -> DataFrame:
    """Rows of metrics.log_dir_hourly for brokers that Kafka's protocol is not spoken with."""
    total = f.col("volume_gib").cast("bigint") * f.lit(1024**3)
    used = f.col("data_disk_used_last") / 100
    unread = sources["asked"].filter("not is_connected and observed_at is not null and volume_id is not null")
    return unread.join(hours, INSTANCE).select(
        "cluster",
        "broker_id",
        f.lit(LOG_DIR).alias("log_dir"),
        f.when(used.isNotNull(), total).alias("total_bytes"),
        (total * (1 - used)).cast("bigint").alias("usable_bytes"),
        f.col("partitions_last").cast("int").alias("replicas"),
        (total * used).cast("bigint").alias("log_bytes"),
        "observed_at",
    )


def instance_samples(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of metrics.instance_sample."""
    nulls = dict.fromkeys(
        ("ebs_io_balance_percent", "ebs_byte_balance_percent", "ebs_iops_exceeded", "ebs_throughput_exceeded"), "double"
    )
    return _with_nulls(
        sources["broker_samples"].select(
            *INSTANCE,
            "at",
            "period_seconds",
            _cpu().alias("cpu_percent"),
            _memory_used().alias("memory_used_percent"),
            f.greatest("data_disk_used", "root_disk_used", "app_log_disk_used").alias("disk_used_percent"),
        ),
        nulls,
    )


def instance_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.instance_hourly."""
    of_hour = sources["broker_samples"].filter(f.col("at") >= f.lit(hour))
    hours = of_hour.groupBy(*INSTANCE).agg(
        minutes(f.when(_cpu().isNotNull(), f.lit(1))).alias("minutes_present"),
        f.avg(_cpu()).alias("cpu_mean_percent"),
        f.max(_cpu()).alias("cpu_max_percent"),
        f.avg(_memory_used()).alias("memory_used_mean_percent"),
        f.max(_memory_used()).alias("memory_used_max_percent"),
        f.max(f.greatest("data_disk_used", "root_disk_used", "app_log_disk_used")).alias("disk_used_max_percent"),
    )
    nulls = dict.fromkeys(("ebs_io_balance_min_percent", "ebs_byte_balance_min_percent"), "double")
    return _with_nulls(
        sources["instances"].select(*INSTANCE, _expected(hour)).join(hours, INSTANCE, "left"),
        {**nulls, "minutes_ebs_limited": "int"},
    )


def _expected(hour: datetime) -> Column:
    seconds = f.unix_timestamp("known_until") - f.unix_timestamp(f.lit(hour))
    return f.floor(seconds / 60).cast("int").alias("minutes_expected")


def credit_hours(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.instance_health_hourly for burstable brokers: MSK checks the health of its instances itself."""
    of_hour = sources["broker_samples"].filter(f.col("at") >= f.lit(hour))
    credits = of_hour.groupBy(*INSTANCE).agg(
        f.max_by("cpu_credits", f.when(f.col("cpu_credits").isNotNull(), f.col("at"))).alias("cpu_credits"),
        f.max("cpu_credits").alias("cpu_credits_most"),
    )
    counts = ("checked", "instance_failed", "system_failed", "volumes_failed")
    return _with_nulls(
        sources["instances"]
        .filter("instance_type like 'kafka.t%' and observed_at is not null")
        .join(credits, INSTANCE, "left")
        .select(
            *INSTANCE,
            f.col("instance_id").alias("instance_group"),
            "application",
            "state",
            f.lit(False).alias("is_spot"),
            "launched_at",
            "observed_at",
            f.lit(False).alias("activities_known"),
            f.lit(True).alias("is_burstable"),
            "cpu_credits",
            "cpu_credits_most",
        ),
        {
            "scaling_group": "string",
            "failing_since": "timestamp",
            **dict.fromkeys((f"minutes_{name}" for name in counts), "int"),
            **dict.fromkeys(("cpu_credits_borrowed", "cpu_credits_charged"), "double"),
        },
    )


def network_samples(sources: dict[str, DataFrame]) -> DataFrame:
    """Rows of metrics.instance_network_sample: bytes of clients and of other brokers."""
    seconds = f.col("period_seconds")
    return (
        sources["broker_samples"]
        .select(
            *INSTANCE,
            "at",
            "period_seconds",
            ((f.col("bytes_in") + f.col("replication_bytes_in")) * seconds).alias("in_bytes"),
            ((f.col("bytes_out") + f.col("replication_bytes_out")) * seconds).alias("out_bytes"),
        )
        .filter("in_bytes is not null or out_bytes is not null")
    )


def network_of(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.instance_network_hourly, in each direction."""
    types = sources["ec2_instance_types"].filter("instance_type is not null")
    limits = types.select(
        "account",
        "region",
        f.concat(f.lit("kafka."), "instance_type").alias("instance_type"),
        f.col("network_baseline_bytes_per_second").alias("baseline_bytes_per_second"),
        f.col("network_peak_bytes_per_second").alias("peak_bytes_per_second"),
    )
    brokers = sources["instances"].join(limits, ["account", "region", "instance_type"], "left")
    known = network_samples(sources).join(brokers.select(*INSTANCE, "known_until", *_LIMITS), INSTANCE)
    exceeded = (
        sources["broker_samples"]
        .filter(f.col("at") >= f.lit(hour))
        .groupBy(*INSTANCE)
        .agg(*(_minutes_exceeded(direction) for direction in ("in", "out")))
    )
    direction = f.col("direction")
    return (
        brokers.filter("observed_at is not null")
        .select(
            *INSTANCE,
            "instance_type",
            *_LIMITS,
            f.explode(f.array(f.lit("in"), f.lit("out"))).alias("direction"),
            _expected(hour),
        )
        .join(network_hours(known, hour), [*INSTANCE, "direction"], "left")
        .join(exceeded, INSTANCE, "left")
        .withColumn(
            "minutes_allowance_exceeded",
            f.when(direction == "in", f.col("exceeded_in")).otherwise(f.col("exceeded_out")),
        )
        .drop("exceeded_in", "exceeded_out")
    )


def _minutes_exceeded(direction: str) -> Column:
    """Minutes in which AWS queued or dropped packets. Without the metrics of each allowance, of any of them."""
    own = f.greatest(f"bw_{direction}_exceeded", "pps_exceeded", "conntrack_exceeded")
    return minutes((f.coalesce(own, "traffic_shaping") > 0).cast("double")).alias(f"exceeded_{direction}")
