"""Consumer lag: by partition, and by group with its rebalances."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_apps.apps.consumer_groups.inventory import groups_of
from spark_apps.apps.consumer_groups.rows import GROUP, PARTITION, PLACE, unread_clusters
from spark_apps.models.consumer_lag import (
    STATUS_WORST_FIRST,
    lag_high,
    lag_low,
    lag_records,
    lag_seconds,
    partition_status,
    silent_seconds,
    still_seconds,
    waiting_records,
)
from spark_apps.models.hourly_columns import sum_unless_unknown

LOOK_BACK = timedelta(minutes=15)
"""Commits before the hour are read as well: they give the offsets at its start."""


def consumer_partitions(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Rows of metrics.consumer_partition_hourly: commits, lag, and status of each group on each partition."""
    read = ("record_at", "earliest_at", "latest_at", "next_offset", "read_end")
    times = sources["kafka_record_times"].select(*PARTITION, f.col("offset").alias("committed_offset"), *read)
    # Where producer timestamps put the log-end offset too low, records read there had arrived if the first one had.
    had_come = f.col("is_refuted") & (f.col("next_offset") >= 0) & (f.col("record_at") < f.col("as_of"))
    places = (
        sources["positions"]
        .join(times, [*PARTITION, "committed_offset"], "left")
        .join(_owners(sources), PLACE, "left")
        .join(_assigned_groups(sources), GROUP, "left")
        .withColumns(
            {
                end: f.when(had_come, f.greatest(end, "read_end")).otherwise(f.col(end))
                for end in ("log_end_offset", "recent_offset")
            }
        )
        .withColumns({"lag_records": lag_records(), "waiting_records": waiting_records()})
        .withColumns({"lag_seconds": lag_seconds(), "lag_seconds_low": lag_low(), "lag_seconds_high": lag_high()})
        .withColumn("lag_slope_per_second", f.col("arriving_per_second") - f.col("reading"))
    )
    return places.select(
        *PLACE,
        "committed_offset",
        "committed_at",
        "log_end_offset",
        "lag_records",
        "lag_seconds",
        "commits",
        "records_consumed",
        "consumed_seconds",
        "moved_at",
        "rewinds",
        partition_status(hour - LOOK_BACK).alias("status"),
        "lag_slope_per_second",
        "client_id",
        "host",
        still_seconds(hour - LOOK_BACK).alias("still_seconds"),
        silent_seconds(hour - LOOK_BACK).alias("silent_seconds"),
        "commit_gap_p95_seconds",
        f.when(f.col("has_assignments"), f.coalesce("is_owned", f.lit(False))).alias("is_assigned"),
        "lag_seconds_low",
        "lag_seconds_high",
        "arriving_per_second",
        "reading_per_second_low",
        "reading_per_second_high",
        "reading_seconds",
        "waiting_records",
    )


def _owners(sources: dict[str, DataFrame]) -> DataFrame:
    """Client id and host of the member that has the partition assigned."""
    owner = _assignments(sources).select(*GROUP, "topic", f.explode("assigned").alias("partition"), "client_id", "host")
    return owner.groupBy(*PLACE).agg(
        f.min("client_id").alias("client_id"), f.min("host").alias("host"), f.lit(True).alias("is_owned")
    )


def _assigned_groups(sources: dict[str, DataFrame]) -> DataFrame:
    """Groups with at least one assigned partition: during a rebalance nothing is assigned, which proves nothing."""
    is_any = f.size("assigned") > 0
    return _assignments(sources).filter(is_any).select(*GROUP, f.lit(True).alias("has_assignments")).distinct()


def _assignments(sources: dict[str, DataFrame]) -> DataFrame:
    member = sources["kafka_groups"].filter("group_id is not null").select(*GROUP, f.explode("members").alias("m"))
    return member.select(*GROUP, "m.client_id", "m.host", f.explode("m.assignment").alias("topic", "assigned"))


def badness() -> Column:
    """Order of partitions, the worst one last: by status, age, and number of records; without a status first.

    Among equal ones the lowest partition is last, so that each run of the hour names the same one.
    """
    rank = f.array_position(f.array(*map(f.lit, STATUS_WORST_FIRST)), f.col("status"))
    return f.struct(
        -f.when(rank > 0, rank).otherwise(99), f.coalesce("lag_seconds", f.lit(-1)), "lag_records",
        -f.col("partition"), "topic",
    )  # fmt: skip


def consumer_groups(sources: dict[str, DataFrame], partitions: DataFrame, steps: DataFrame) -> DataFrame:
    """Rows of metrics.consumer_group_hourly, from the frames of `consumer_partitions` and `group_steps`."""
    order = badness()
    places = partitions.groupBy(*GROUP).agg(
        f.count_distinct("topic").alias("topics"),
        f.count(f.lit(1)).alias("partitions"),
        f.sum("lag_records").alias("lag_records"),
        f.max("lag_records").alias("lag_records_max"),
        f.max("lag_seconds").alias("lag_seconds_max"),
        f.count_if(f.col("lag_records").isNull()).alias("lag_unknown_partitions"),
        sum_unless_unknown("commits"),
        sum_unless_unknown("records_consumed"),
        f.max_by("status", order).alias("status"),
        f.max_by("topic", order).alias("worst_topic"),
        f.max_by("partition", order).alias("worst_partition"),
    )
    described = groups_of(sources).select(*GROUP, "state", "members")
    # Without a known commit: 0 if its commits were returned, otherwise unknown.
    none = f.when(f.col("is_complete"), 0)
    return (
        described.join(places, GROUP, "full")
        .join(_complete_groups(sources), GROUP, "left")
        .join(busy_members(sources, partitions), GROUP, "left")
        .join(steps.groupBy(*GROUP).agg(f.count(f.lit(1)).alias("rebalances")), GROUP, "left")
        .join(unread_clusters(sources), "cluster", "left")
        .select(
            *GROUP,
            "state",
            "members",
            f.coalesce("topics", none).alias("topics"),
            f.coalesce("partitions", none).alias("partitions"),
            "lag_records",
            "lag_records_max",
            "lag_seconds_max",
            f.coalesce("lag_unknown_partitions", none).alias("lag_unknown_partitions"),
            "commits",
            "records_consumed",
            f.when(f.col("unread").isNull(), f.coalesce("rebalances", f.lit(0))).alias("rebalances"),
            "status",
            "worst_topic",
            "worst_partition",
            "busy_member_per_second",
        )
    )


def busy_members(sources: dict[str, DataFrame], partitions: DataFrame) -> DataFrame:
    """The fastest member of each group among those that were lagging all the time, which read at their maximum rate.

    A member was lagging if its next record had arrived before the first known commit. Members with the same client
    id on one host cannot be distinguished: all their partitions must be lagging, and the mean counts.
    """
    member = ["client_id", "host"]
    was_behind = f.col("lag_seconds_low") >= f.col("silent_seconds") + f.col("reading_seconds")
    read = f.coalesce("reading_per_second_high", f.when(f.col("records_consumed") == 0, 0.0))
    members = (
        sources["kafka_groups"]
        .select(*GROUP, f.explode("members").alias("m"))
        .groupBy(*GROUP, "m.client_id", "m.host")
        .agg(f.count(f.lit(1)).alias("alike"))
    )
    return (
        partitions.withColumns({"was_behind": was_behind, "read": read})
        .groupBy(*GROUP, *member)
        .agg(
            f.count_if("was_behind").alias("behind"),
            f.count(f.lit(1)).alias("partitions"),
            sum_unless_unknown("read"),
        )
        .join(members, [*GROUP, *member])
        .filter("behind = partitions or alike = 1 and behind > 0")
        .groupBy(*GROUP)
        .agg(f.max(f.col("read") / f.col("alike")).alias("busy_member_per_second"))
    )


def _complete_groups(sources: dict[str, DataFrame]) -> DataFrame:
    """Groups with known current commits, even if there are none."""
    asked = sources["kafka_offsets"].filter("kind = 'committed'")
    clusters = asked.filter("gap is null").select("cluster").distinct()
    failed = asked.filter("gap is not null").select(*GROUP)
    listed = sources["kafka_groups"].filter("group_id is not null").select(*GROUP)
    complete = listed.join(f.broadcast(clusters), "cluster", "left_semi").join(failed, GROUP, "left_anti")
    return complete.withColumn("is_complete", f.lit(True))
