"""MSK clusters, brokers, and what stands for their instances and volumes in the inventory."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

APP = "msk"
CLUSTER = ["account", "region", "cluster"]
GP3_IOPS = 16_000
"""Of storage with provisioned throughput: MSK does not state its IOPS. The most that gp3 has with such a throughput, so
that only the throughput, which is stated, counts as a limit."""
_OF_CLUSTER = (
    "msk_name", "cluster_arn", "kind", "state", "kafka_version", "current_version", "instance_type", "broker_count",
    "volume_gib", "provisioned_mib_s", "storage_mode", "monitoring_level", "has_jmx_exporter", "has_node_exporter",
    "is_read_by_jmx", "is_connected", "authentications", "bootstrap_servers",
)  # fmt: skip


def clusters_of(msk: DataFrame) -> DataFrame:
    """The columns of inventory.msk_cluster_hourly."""
    return (
        msk.filter("cluster is not null")
        .select(*CLUSTER, *_OF_CLUSTER, f.to_json("tags").alias("tags"), "observed_at")
        .dropDuplicates(CLUSTER)
    )


def brokers_of(msk: DataFrame) -> DataFrame:
    """The columns of inventory.msk_broker_hourly."""
    return msk.filter("broker_id is not null").select(
        *CLUSTER, "broker_id", "host", "private_ip", "subnet", "availability_zone", "instance_id", "volume_id",
        "observed_at",
    )  # fmt: skip


def volumes_of(msk: DataFrame) -> DataFrame:
    """Brokers' storage in the columns of inventory.volume_hourly. Each broker has one volume."""
    has_throughput = f.col("provisioned_mib_s").isNotNull()
    return msk.filter("volume_id is not null").select(
        "account",
        "region",
        "volume_id",
        f.when(has_throughput, "gp3").otherwise("gp2").alias("volume_type"),
        f.col("volume_gib").alias("size_gib"),
        f.when(has_throughput, GP3_IOPS).cast("int").alias("provisioned_iops"),
        f.col("provisioned_mib_s").alias("provisioned_throughput_mib_s"),
        f.lit("in-use").alias("state"),
        f.lit(False).alias("multi_attach"),
        "instance_id",
        _nothing("string").alias("device"),
        _nothing("timestamp").alias("attached_at"),
        _nothing("timestamp").alias("created_at"),
        f.format_string("%s broker %d storage", "cluster", "broker_id").alias("name"),
        _tag("application"),
        _tag("owner"),
        f.to_json("tags").alias("tags"),
        "observed_at",
    )


def instances_of(msk: DataFrame, types: DataFrame) -> DataFrame:
    """What brokers run on in the columns of inventory.instance_hourly, with the limits of the EC2 type."""
    limits = [
        "vcpus", "memory_bytes", "nitro", "ebs_baseline_iops", "ebs_maximum_iops", "ebs_baseline_bytes_per_second",
        "ebs_maximum_bytes_per_second",
    ]  # fmt: skip
    of_type = types.filter("instance_type is not null").select(
        "account", "region", f.concat(f.lit("kafka."), "instance_type").alias("instance_type"), *limits
    )
    return (
        msk.filter("instance_id is not null")
        .join(of_type, ["account", "region", "instance_type"], "left")
        .select(
            "account",
            "region",
            "instance_id",
            "instance_type",
            f.lit("running").alias("state"),
            f.format_string("%s broker %d", "cluster", "broker_id").alias("name"),
            _tag("application"),
            _tag("owner"),
            "private_ip",
            f.col("host").alias("private_dns"),
            _nothing("timestamp").alias("launched_at"),
            *limits,
            f.to_json("tags").alias("tags"),
            "observed_at",
        )
    )


def _tag(name: str) -> Column:
    return f.col("tags").getItem(name).alias(name)


def _nothing(kind: str) -> Column:
    return f.lit(None).cast(kind)
