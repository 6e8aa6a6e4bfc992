"""What all parts of the app need: clocks of the clusters, logs, and commits that were read completely."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.hours import HOUR

READ_TO_NOW = timedelta(hours=2)
"""Up to this age of its end, an hour's commits are read up to now, so that current offsets can be used."""

PARTITION = ["cluster", "topic", "partition"]
GROUP = ["cluster", "group_id"]
PLACE = ["cluster", "group_id", "topic", "partition"]


def is_recent(hour: datetime) -> bool:
    """Whether current offsets, groups, and sizes still describe the hour."""
    return datetime.now(UTC) < hour + HOUR + READ_TO_NOW


def clock(sources: dict[str, DataFrame]) -> DataFrame:
    """`as_of` and `read_at` by cluster; the source has them even for a cluster that did not respond."""
    return f.broadcast(
        sources["kafka_offsets"]
        .groupBy("cluster")
        .agg(f.max("as_of").alias("as_of"), f.max("read_at").alias("read_at"))
    )


def logs(sources: dict[str, DataFrame]) -> DataFrame:
    """Logs with their offsets, one row per partition, without gaps."""
    return (
        sources["kafka_offsets"]
        .filter("kind = 'log' and gap is null and topic is not null")
        .select(
            *PARTITION,
            "log_start_offset",
            "log_end_offset",
            "last_stable_offset",
            "offset_at_from",
            "offset_at_to",
            "recent_offset",
            "read_at",
        )
    )


def readable(commits: DataFrame) -> DataFrame:
    """Commits of partitions of __consumer_offsets that were read to their end: a part of an hour's commits is
    misleading."""
    whole = f.broadcast(commits.filter("kind = 'read'").select("cluster", "log_partition"))
    return commits.filter("kind <> 'read'").join(whole, ["cluster", "log_partition"], "left_semi")


def unread_clusters(sources: dict[str, DataFrame]) -> DataFrame:
    """Clusters with gaps in their commit history: a partition without commits there may have had some."""
    return f.broadcast(
        sources["kafka_commits"].filter("gap is not null").select("cluster", f.lit(True).alias("unread")).distinct()
    )
