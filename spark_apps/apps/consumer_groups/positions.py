"""What each group had committed as of the hour's end, and how it came there."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_apps.apps.consumer_groups.rows import PARTITION, PLACE, READ_TO_NOW, clock, logs, readable, unread_clusters
from spark_apps.sources.kafka_offsets import RECENT_SECONDS


def _history(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Commits and their removals up to `as_of`, each with its step from the one before.

    `run` counts a place's rewinds; `run_middle` is the middle of the time between two of them.
    """
    commits = sources["kafka_commits"]
    in_order = Window.partitionBy(*PLACE).orderBy("log_partition", "log_offset")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = f.lag("committed_offset").over(in_order)
    of_run = Window.partitionBy(*PLACE, "run")
    seconds = f.col("at").cast("double")
    return (
        readable(commits)
        .filter("kind in ('commit', 'tombstone')")
        .withColumn("at", f.coalesce("committed_at", "written_at"))
        .join(clock(sources), "cluster")
        .filter("at < as_of")
        .withColumn("step", f.col("committed_offset") - before)
        .withColumn("step_seconds", seconds - f.lag("at").over(in_order).cast("double"))
        .withColumn(
            "highest_before", f.max("committed_offset").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
        )
        .withColumn("in_hour", f.col("at") >= f.lit(hour))
        .withColumn("run", f.count_if(f.col("step") < 0).over(so_far))
        .withColumn("run_middle", (f.min(seconds).over(of_run) + f.max(seconds).over(of_run)) / 2)
        .withColumn("is_last_run", f.col("run") == f.max("run").over(Window.partitionBy(*PLACE)))
    )


def ends(sources: dict[str, DataFrame]) -> DataFrame:
    """Where each log could be read up to as of the hour's end, and a minute before; what is known only now beside it.

    By time an offset is found by producers' clocks: one record dated ahead hides all that came behind it. Commits and
    the end that was seen an hour ago prove how far the log had come; where they refute a clock, only they are believed.
    Where only the end a minute before is refuted, the hour's end stands for it: what lags behind that is looked up.
    """
    # Clocks that are right differ by less than a minute.
    long_before = f.col("as_of") - f.expr(f"interval {2 * RECENT_SECONDS} seconds")
    proven = (
        readable(sources["kafka_commits"])
        .filter("kind = 'commit'")
        .join(clock(sources), "cluster")
        .filter("committed_at < as_of")
        .select(
            *PARTITION,
            f.col("committed_offset").alias("proven"),
            f.when(f.col("committed_at") < long_before, f.col("committed_offset")).alias("proven_recent"),
        )
        .unionByName(
            sources["known_ends"].select(
                *PARTITION, f.col("log_end_offset").alias("proven"), f.col("log_end_offset").alias("proven_recent")
            )
        )
        .join(logs(sources).select(*PARTITION, "log_end_offset"), PARTITION)
        .filter("proven <= log_end_offset")  # else somebody set it by hand, or the topic was made anew
        .groupBy(*PARTITION)
        .agg(f.max("proven").alias("proven"), f.max("proven_recent").alias("proven_recent"))
    )
    is_refuted = f.coalesce(f.col("offset_at_to") < f.col("proven"), f.lit(False))
    end = f.when(is_refuted, f.col("proven")).otherwise(f.col("offset_at_to"))
    is_recent_refuted = is_refuted | (f.col("recent_offset") < f.col("proven_recent"))
    return (
        logs(sources)
        .join(proven, PARTITION, "left")
        .join(
            sources["known_ends"].select(*PARTITION, f.col("log_end_offset").alias("known_end"), "known_at"),
            PARTITION,
            "left",
        )
        .select(
            *PARTITION,
            "log_start_offset",
            "last_stable_offset",
            "known_end",
            "known_at",
            is_refuted.alias("is_refuted"),
            f.when(is_recent_refuted, end).otherwise(f.col("recent_offset")).alias("recent_offset"),
            end.alias("log_end_offset"),
            f.col("log_end_offset").alias("end_now"),
            f.when(~is_refuted, f.col("offset_at_to") - f.col("offset_at_from")).alias("arrived"),
        )
    )


def positions(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """One row per place with commits: the offset as of the hour's end, its history in the hour, the log's end."""
    counted = f.col("in_hour") & (f.col("kind") == "commit")
    seconds = f.col("at").cast("double")
    last_run = f.col("is_last_run") & (f.col("kind") == "commit")
    history = (
        _history(sources, hour)
        .groupBy(*PLACE)
        .agg(
            f.max_by("kind", "log_offset").alias("last_kind"),
            f.max_by("committed_offset", "log_offset").alias("last_offset"),
            f.max_by("at", "log_offset").alias("last_at"),
            f.max_by("highest_before", "log_offset").alias("highest_before"),
            f.min("at").alias("first_at"),
            f.count_if(counted).alias("seen_commits"),
            f.sum(f.when(counted, f.greatest("step", f.lit(0)))).alias("seen_consumed"),
            f.sum(f.when(counted & f.col("step").isNotNull(), f.col("step_seconds"))).alias("consumed_seconds"),
            f.count_if(counted & (f.col("step") < 0)).alias("seen_rewinds"),
            f.max(f.when(f.col("step") != 0, f.col("at"))).alias("moved_at"),
            f.percentile("step_seconds", f.lit(0.95)).alias("commit_gap_p95_seconds"),
            f.regr_slope(f.when(last_run, f.col("committed_offset")), seconds).alias("reading"),
            f.regr_slope(f.when(last_run & (seconds >= f.col("run_middle")), f.col("committed_offset")), seconds).alias(
                "reading_lately"
            ),
            (f.max(f.when(last_run, seconds)) - f.min(f.when(last_run, seconds))).alias("reading_seconds"),
        )
    )
    later = (
        sources["kafka_commits"]
        .filter("kind = 'commit'")
        .join(clock(sources), "cluster")
        .filter("committed_at >= as_of")
        .select(*PLACE, f.lit(True).alias("committed_later"))
        .distinct()
    )
    present = sources["kafka_offsets"].filter("kind = 'committed' and topic is not null")
    current = present.select(*PLACE, f.col("committed_offset").alias("current_offset"))
    joined = (
        history.join(current, PLACE, "full")
        .join(later, PLACE, "left")
        .join(clock(sources), "cluster")
        .join(unread_clusters(sources), "cluster", "left")
        .join(sources["known_commits"], PLACE, "left")
    )
    is_present = f.col("as_of") == f.col("read_at")
    reads_on = f.col("read_at") < f.col("as_of") + f.expr(f"interval {int(READ_TO_NOW.total_seconds())} seconds")
    from_history = f.when(f.col("last_kind") == "commit", f.col("last_offset"))
    unchanged = f.col("last_kind").isNull() & f.col("committed_later").isNull() & reads_on & f.col("unread").isNull()
    committed = (
        f.when(is_present, f.coalesce("current_offset", from_history))
        .when(from_history.isNotNull(), from_history)
        .when(unchanged, f.col("current_offset"))
    )
    # A commit that is older than what was read of the history: an hour before it was at hand.
    committed_before = f.when(unchanged & (committed == f.col("known_offset")), f.col("known_committed_at"))
    committed_at = f.when(f.col("last_kind") == "commit", f.col("last_at")).otherwise(committed_before)
    is_known = f.col("unread").isNull() | f.col("last_kind").isNotNull()
    is_there = "last_kind is null or last_kind = 'commit' or current_offset is not null"
    so_long = f.col("as_of").cast("double") - f.lit(hour.timestamp())
    return (
        joined.filter(is_there)
        .join(ends(sources), PARTITION, "left")
        .select(
            *PLACE,
            "as_of",
            committed.alias("committed_offset"),
            committed_at.alias("committed_at"),
            f.when(is_known, f.coalesce("seen_commits", f.lit(0))).alias("commits"),
            f.when(is_known, f.coalesce("seen_consumed", f.lit(0))).alias("records_consumed"),
            f.when(is_known, f.coalesce("seen_rewinds", f.lit(0))).alias("rewinds"),
            "consumed_seconds",
            "moved_at",
            "first_at",
            "commit_gap_p95_seconds",
            "highest_before",
            "reading",
            "reading_seconds",
            f.least("reading", "reading_lately").alias("reading_per_second_low"),
            f.greatest("reading", "reading_lately").alias("reading_per_second_high"),
            (f.col("arrived") / f.nullif(so_long, f.lit(0))).alias("arriving_per_second"),
            "log_start_offset",
            "last_stable_offset",
            "known_end",
            "known_at",
            "is_refuted",
            "recent_offset",
            "log_end_offset",
            "end_now",
        )
    )
