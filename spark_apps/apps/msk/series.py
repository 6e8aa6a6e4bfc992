"""What CloudWatch's namespace AWS/Kafka is asked of MSK clusters, by monitoring level.

Names, dimensions, and levels: Amazon MSK Developer Guide, "Amazon MSK metrics for monitoring Standard brokers with
CloudWatch" and "… Express brokers with CloudWatch". A metric is asked only where it exists, as each costs money.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.sources.msk_discovery import LEVELS

NAMESPACE = "AWS/Kafka"
STANDARD, ANY = ("standard",), ("standard", "express")


class Metric(NamedTuple):
    """A metric of a broker, and the column it becomes."""

    column: str
    name: str
    stat: str = "Average"
    level: str = "DEFAULT"
    kinds: tuple[str, ...] = ANY
    exists: str = "true"


_NO_JMX = "not is_read_by_jmx"
"""Asked only of brokers whose JVM is not read: JMX says the same."""
_HAS_TIERS = f"{_NO_JMX} and storage_mode = 'TIERED'"
_HAS_BUCKET = "provisioned_mib_s is null and volume_gib < 1000"
"""Of gp2 storage: where the baseline reaches the burst, no BurstBalance is sent."""
_PER = "PER_BROKER"
VOLUME = (
    Metric("read_ops", "VolumeReadOps", "Sum", _PER, STANDARD),
    Metric("write_ops", "VolumeWriteOps", "Sum", _PER, STANDARD),
    Metric("read_bytes", "VolumeReadBytes", "Sum", _PER, STANDARD),
    Metric("write_bytes", "VolumeWriteBytes", "Sum", _PER, STANDARD),
    Metric("read_seconds", "VolumeTotalReadTime", "Sum", _PER, STANDARD),
    Metric("write_seconds", "VolumeTotalWriteTime", "Sum", _PER, STANDARD),
    Metric("queue_length", "VolumeQueueLength", "Average", _PER, STANDARD),
    Metric("burst_balance_percent", "BurstBalance", "Minimum", "DEFAULT", STANDARD, _HAS_BUCKET),
)
LOOKED_BACK = tuple(metric for metric in VOLUME if metric.column not in ("read_seconds", "write_seconds"))
READ_BYTES = tuple(metric for metric in VOLUME if metric.column == "read_bytes")
HOST = (
    Metric("cpu_user", "CpuUser"),
    Metric("cpu_system", "CpuSystem"),
    Metric("cpu_io_wait", "CpuIoWait", kinds=STANDARD),
    Metric("memory_used", "MemoryUsed"),
    Metric("memory_free", "MemoryFree"),
    Metric("memory_cached", "MemoryCached"),
    Metric("memory_buffered", "MemoryBuffered"),
    Metric("swap_used", "SwapUsed", "Maximum", kinds=STANDARD),
    Metric("heap_after_gc", "HeapMemoryAfterGC", "Average", kinds=STANDARD),
    Metric("data_disk_used", "KafkaDataLogsDiskUsed", "Maximum", kinds=STANDARD),
    Metric("app_log_disk_used", "KafkaAppLogsDiskUsed", "Maximum", kinds=STANDARD),
    Metric("root_disk_used", "RootDiskUsed", "Maximum", kinds=STANDARD),
    Metric("traffic_shaping", "TrafficShaping", "Sum", kinds=STANDARD),
    Metric("bw_in_exceeded", "BwInAllowanceExceeded", "Sum", _PER, STANDARD),
    Metric("bw_out_exceeded", "BwOutAllowanceExceeded", "Sum", _PER, STANDARD),
    Metric("pps_exceeded", "PpsAllowanceExceeded", "Sum", _PER, STANDARD),
    Metric("conntrack_exceeded", "ConnTrackAllowanceExceeded", "Sum", _PER, STANDARD),
    Metric("produce_throttle_ms", "ProduceThrottleTime", "Average", _PER),
    Metric("fetch_throttle_ms", "FetchThrottleTime", "Average", _PER),
    Metric("cpu_credits", "CPUCreditBalance", "Minimum", exists="instance_type like 'kafka.t%'"),
    # Of brokers that are read by JMX too: minutes, where JMX has samples of seconds.
    Metric("bytes_in", "BytesInPerSec"),
    Metric("bytes_out", "BytesOutPerSec"),
    Metric("replication_bytes_in", "ReplicationBytesInPerSec", "Average", _PER),
    Metric("replication_bytes_out", "ReplicationBytesOutPerSec", "Average", _PER),
)
BROKER = (
    Metric("messages_in", "MessagesInPerSec", exists=_NO_JMX),
    Metric("under_replicated", "UnderReplicatedPartitions", "Maximum", kinds=STANDARD, exists=_NO_JMX),
    Metric("under_min_isr", "UnderMinIsrPartitionCount", "Maximum", exists=_NO_JMX),
    Metric("partitions", "PartitionCount", "Maximum", exists=_NO_JMX),
    Metric("leaders", "LeaderCount", "Maximum", exists=_NO_JMX),
    Metric("connections", "ConnectionCount", exists=_NO_JMX),
    Metric("remote_fetch", "RemoteFetchBytesPerSec", "Average", _PER, STANDARD, _HAS_TIERS),
    Metric("produce_ms", "ProduceTotalTimeMsMean", "Average", _PER, exists=_NO_JMX),
    Metric("fetch_consumer_ms", "FetchConsumerTotalTimeMsMean", "Average", _PER, exists=_NO_JMX),
    Metric("fetch_follower_ms", "FetchFollowerTotalTimeMsMean", "Average", _PER, exists=_NO_JMX),
    Metric("request_handler_idle", "RequestHandlerAvgIdlePercent", "Minimum", _PER, exists=_NO_JMX),
)
CLUSTER = (
    Metric("active_controllers", "ActiveControllerCount", "Maximum", exists=_NO_JMX),
    Metric("offline_partitions", "OfflinePartitionsCount", "Maximum", kinds=STANDARD, exists=_NO_JMX),
)
LAG = {"max_offset_lag": "MaxOffsetLag", "sum_offset_lag": "SumOffsetLag", "time_lag_seconds": "EstimatedMaxTimeLag"}
SERIES = ["account", "region", "resource_id", "metric", "namespace", "name", "dimensions", "stat"]
OF_LAG = "\x1f"
"""Between the parts of a series' id that are cluster, group, and topic."""


def broker_series(brokers: DataFrame, metrics: Iterable[Metric], id_column: str) -> DataFrame:
    """Series with the dimensions Cluster Name and Broker ID. `brokers`: rows of the source, of ACTIVE clusters."""
    dimensions = f.create_map(f.lit("Cluster Name"), "msk_name", f.lit("Broker ID"), f.col("broker_id").cast("string"))
    return _series(brokers.filter(f.col(id_column).isNotNull()), metrics, id_column, dimensions)


def cluster_series(brokers: DataFrame) -> DataFrame:
    """Series with the dimension Cluster Name, under the id of the cluster's first broker."""
    first = brokers.groupBy("account", "region", "msk_name", "kind", "monitoring_level", "is_read_by_jmx").agg(
        f.min_by("instance_id", "broker_id").alias("instance_id")
    )
    return _series(first, CLUSTER, "instance_id", f.create_map(f.lit("Cluster Name"), "msk_name"))


def lag_series(listed: DataFrame, clusters: DataFrame) -> DataFrame:
    """Series of consumer groups, which only ListMetrics knows, of clusters whose offsets are not read."""
    columns = f.create_map(*(f.lit(part) for column, name in LAG.items() for part in (name, column)))
    group, topic = (f.col("dimensions").getItem(name) for name in ("Consumer Group", "Topic"))
    unread = clusters.filter("not is_connected").select("account", "region", "msk_name", "cluster")
    return (
        listed.withColumn("msk_name", f.col("dimensions").getItem("Cluster Name"))
        .filter(group.isNotNull() & topic.isNotNull() & (f.size("dimensions") == 3))
        .join(unread, ["account", "region", "msk_name"])
        .withColumns(
            {
                "resource_id": f.concat_ws(OF_LAG, "cluster", group, topic),
                "metric": columns[f.col("name")],
                "stat": f.lit("Maximum"),
            }
        )
        .select(*SERIES)
    )


def _series(resources: DataFrame, metrics: Iterable[Metric], id_column: str, dimensions: Column) -> DataFrame:
    levels = f.array(*(f.lit(level) for level in LEVELS))
    level = f.array_position(levels, f.col("monitoring_level"))

    def wanted(metric: Metric) -> Column:
        exists = f.col("kind").isin(*metric.kinds) & (level > LEVELS.index(metric.level)) & f.expr(metric.exists)
        column, name, stat = (f.lit(text) for text in metric[:3])
        return f.when(exists, f.struct(column.alias("metric"), name.alias("name"), stat.alias("stat")))

    return resources.select(
        "account",
        "region",
        f.col(id_column).alias("resource_id"),
        dimensions.alias("dimensions"),
        f.explode(f.array_compact(f.array(*map(wanted, metrics)))).alias("m"),
    ).select(
        "account",
        "region",
        "resource_id",
        "m.metric",
        f.lit(NAMESPACE).alias("namespace"),
        "m.name",
        "dimensions",
        "m.stat",
    )
