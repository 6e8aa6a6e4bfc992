"""Inventory of instances and volumes as of the hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from streamwarden.base.catalog import APPS, rows_of
from streamwarden.base.hours import gap_of_present

from spark_apps.runtime.warehouse_io import read_query

VOLUME = ["account", "region", "volume_id"]
INSTANCE = ["account", "region", "instance_id"]
_LASTING = {*VOLUME, *INSTANCE, "created_at", "launched_at"}
"""Attributes that never change for a volume or instance; all others are known only as of the query."""


def _tag(name: str) -> Column:
    return f.col("tags").getItem(name)


def _existed(since: str, end: datetime) -> Column:
    return f.coalesce(f.col(since) < f.lit(end), f.lit(True))


def volumes_of(ec2: DataFrame, end: datetime) -> DataFrame:
    """Volumes that existed before `end`, one row each, with attributes as of now."""
    # A Multi-Attach volume counts for the instance with the oldest attachment.
    attached = f.filter("attachments", lambda a: ~f.coalesce(a.state, f.lit("")).isin("detaching", "detached"))
    first = f.get(
        f.array_sort(f.transform(attached, lambda a: f.struct(a.attached_at, a.instance_id, a.device))), f.lit(0)
    )
    return (
        ec2.filter(f.col("volume_id").isNotNull() & _existed("created_at", end))
        .withColumn("attachment", first)
        .select(
            *VOLUME,
            "volume_type",
            "size_gib",
            f.col("iops").alias("provisioned_iops"),
            f.col("throughput_mib_s").alias("provisioned_throughput_mib_s"),
            "state",
            "multi_attach",
            f.col("attachment.instance_id").alias("instance_id"),
            f.col("attachment.device").alias("device"),
            f.col("attachment.attached_at").alias("attached_at"),
            "created_at",
            _tag("Name").alias("name"),
            _tag("application").alias("application"),
            _tag("owner").alias("owner"),
            f.to_json("tags").alias("tags"),
            "observed_at",
        )
    )


def instances_of(ec2: DataFrame, end: datetime) -> DataFrame:
    """Instances that existed before `end`, one row each, with attributes as of now."""
    return ec2.filter(f.col("instance_id").isNotNull() & _existed("launched_at", end)).select(
        *INSTANCE,
        "instance_type",
        "state",
        _tag("Name").alias("name"),
        _tag("application").alias("application"),
        _tag("owner").alias("owner"),
        "private_ip",
        "private_dns",
        "launched_at",
        "vcpus",
        "memory_bytes",
        "nitro",
        "ebs_baseline_iops",
        "ebs_maximum_iops",
        "ebs_baseline_bytes_per_second",
        "ebs_maximum_bytes_per_second",
        f.to_json("tags").alias("tags"),
        "observed_at",
    )


def of_hour(ec2: DataFrame, hour: datetime, what: str = "EC2's inventory") -> DataFrame:
    """Inventory from EC2 (or MSK), with a gap in each row if the hour has ended: it reports the current state only."""
    gap = gap_of_present(hour, what)
    return ec2.withColumn("gap", f.coalesce("gap", f.lit(gap))) if gap else ec2


def as_seen_then(
    seen_now: DataFrame, table: str, key: Sequence[str], hour: datetime, app: str = "ebs_volumes"
) -> DataFrame:
    """The inventory of an hour that has ended, as it was seen in that hour.

    Resources that existed then but were not seen have only attributes that never change, and no `observed_at`:
    CloudWatch has their metrics, but they are not part of the hour's inventory.
    `app`: the app whose rows of the table count.
    """
    if gap_of_present(hour, "EC2's inventory") is None:
        return seen_now
    columns = ", ".join("tags::text" if name == "tags" else name for name in seen_now.columns)
    mine = rows_of(APPS[app], table)
    query = f"select {columns} from {table} where hour = '{hour.isoformat()}' and {mine}"  # noqa: S608 our own names
    known = read_query(seen_now.sparkSession, query, seen_now.schema)
    kinds = dict(seen_now.dtypes)
    unseen = seen_now.join(known.select(*key), list(key), "left_anti").select(
        *(
            name if name in _LASTING or name in key else f.lit(None).cast(kinds[name]).alias(name)
            for name in seen_now.columns
        )
    )
    return known.unionByName(unseen)


def with_nitro(volumes: DataFrame, instances: DataFrame) -> DataFrame:
    """Volumes with `nitro` of their instance."""
    return volumes.join(instances.select(*INSTANCE, "nitro"), INSTANCE, "left")
