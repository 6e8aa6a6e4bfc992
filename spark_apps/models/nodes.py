"""Hosts by node exporter: memory, CPU, file systems, and disk I/O."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.models.hourly_columns import label, reading

NODE = ("cluster", "endpoint")
NO_DISK_FILE_SYSTEMS = ("tmpfs", "devtmpfs", "overlay", "squashfs", "iso9660", "ramfs")
_NO_DISK = r"^(z?ram|loop|fd|sr|nbd|dm-|md)\d|^(h|s|v|xv)d[a-z]+\d|^nvme\d+n\d+p\d"
"""Devices in memory, and devices with traffic that other devices count too: partitions, RAID, logical volumes."""
_IDLE = ("idle", "iowait")


def node_hours(configured: DataFrame, samples: DataFrame, gained: DataFrame) -> DataFrame:
    """Rows of metrics.node_hourly: one per configured host, including those that did not respond.

    Args:
        configured: cluster, endpoint, instance_id.
        samples: readings of hosts.
        gained: increases of their counters (see `spark_apps.models.counters`).
    """
    joined = configured
    for part in (_gauges(samples), _rates(gained), _busiest_disk(gained), _fullest_file_system(samples)):
        joined = joined.join(part, [*NODE], "left")
    per_second = [
        (f.col(name) / f.col("covered_seconds")).alias(f"{name}_per_second")
        for name in ("disk_read_bytes", "disk_written_bytes", "disk_reads", "disk_writes")
    ]
    return joined.select(
        *NODE,
        "instance_id",
        f.date_trunc("second", "booted_at").alias("booted_at"),
        "samples",
        "covered_seconds",
        "memory_bytes",
        "memory_used_mean_percent",
        "memory_used_max_percent",
        "page_cache_bytes",
        "load_1m_max",
        (1 - f.try_divide("idle_seconds", "cpu_seconds")).alias("cpu_ratio"),
        f.try_divide("iowait_seconds", "cpu_seconds").alias("iowait_ratio"),
        f.try_divide("steal_seconds", "cpu_seconds").alias("steal_ratio"),
        *per_second,
        "busiest_disk",
        "busiest_disk_ratio",
        "fullest_file_system",
        "fullest_file_system_percent",
        "fullest_file_system_available_bytes",
    )


def _gauges(samples: DataFrame) -> DataFrame:
    names = ("physical_memory_bytes", "available_memory_bytes", "page_cache_bytes", "load_1m")
    moments = samples.groupBy(*NODE, "at").agg(
        f.max("process_started_at").alias("booted_at"), *(f.max(reading(name)).alias(name) for name in names)
    )
    used_percent = 100 * (1 - f.try_divide("available_memory_bytes", "physical_memory_bytes"))
    return moments.groupBy(*NODE).agg(
        f.count("*").cast("int").alias("samples"),
        f.max("booted_at").alias("booted_at"),
        f.max("physical_memory_bytes").alias("memory_bytes"),
        f.avg(used_percent).alias("memory_used_mean_percent"),
        f.max(used_percent).alias("memory_used_max_percent"),
        f.min("page_cache_bytes").alias("page_cache_bytes"),
        f.max("load_1m").alias("load_1m_max"),
    )


def _rates(gained: DataFrame) -> DataFrame:
    def total(metric: str, only: Column | None = None) -> Column:
        wanted = f.col("metric") == f"{metric}_total"
        return f.sum(f.when(wanted if only is None else wanted & only, f.col("counted")))

    disks = ("disk_read_bytes", "disk_written_bytes", "disk_reads", "disk_writes")
    cpu = "machine_cpu_seconds"
    return gained.groupBy(*NODE).agg(
        f.max("covered_seconds").alias("covered_seconds"),
        total(cpu).alias("cpu_seconds"),
        total(cpu, label("mode").isin(*_IDLE)).alias("idle_seconds"),
        total(cpu, label("mode") == "iowait").alias("iowait_seconds"),
        total(cpu, label("mode") == "steal").alias("steal_seconds"),
        *(total(name, ~label("device").rlike(_NO_DISK)).alias(name) for name in disks),
    )


def _busiest_disk(gained: DataFrame) -> DataFrame:
    share = f.col("counted") / f.col("covered_seconds")
    return (
        gained.where((f.col("metric") == "disk_busy_seconds_total") & ~label("device").rlike(_NO_DISK))
        .groupBy(*NODE)
        .agg(
            f.max_by(label("device"), _ranked(share, label("device"))).alias("busiest_disk"),
            f.max(share).alias("busiest_disk_ratio"),
        )
    )


def _fullest_file_system(samples: DataFrame) -> DataFrame:
    newest = _file_systems(samples)
    used_percent = 100 * (1 - f.col("available_bytes") / f.col("size_bytes"))
    order = _ranked(used_percent, f.col("mountpoint"))
    return newest.groupBy(*NODE).agg(
        f.max_by("mountpoint", order).alias("fullest_file_system"),
        f.max(used_percent).alias("fullest_file_system_percent"),
        f.max_by("available_bytes", order).alias("fullest_file_system_available_bytes"),
    )


def _ranked(value: Column, name: Column) -> Column:
    """Order by a value, among equal ones by name, so that each run of the hour names the same; null: no value."""
    return f.when(value.isNotNull(), f.struct(value, name))


def file_system_hours(configured: DataFrame, samples: DataFrame) -> DataFrame:
    """Rows of metrics.file_system_hourly: one per file system of the hosts that responded."""
    return configured.join(_file_systems(samples), [*NODE]).select(
        *NODE,
        "mountpoint",
        "device",
        "fstype",
        "instance_id",
        "size_bytes",
        "available_bytes",
        "available_min_bytes",
        "read_only",
    )


def _file_systems(samples: DataFrame) -> DataFrame:
    """The latest reported file system of each mount point: one may be mounted over another."""

    def newest(metric: str) -> Column:
        return f.max_by("value", f.when(f.col("metric") == metric, f.col("at")))

    available = "file_system_available_bytes"
    return (
        samples.where(label("fstype").isNotNull() & ~label("fstype").isin(*NO_DISK_FILE_SYSTEMS))
        .groupBy(*NODE, label("mountpoint").alias("mountpoint"))
        .agg(
            f.max_by(label("device"), "at").alias("device"),
            f.max_by(label("fstype"), "at").alias("fstype"),
            newest("file_system_bytes").alias("size_bytes"),
            newest(available).alias("available_bytes"),
            f.min(f.when(f.col("metric") == available, f.col("value"))).alias("available_min_bytes"),
            (newest("file_system_read_only") == 1).alias("read_only"),
        )
        .where("size_bytes > 0")
    )
