"""The committed offset of each group as of the end of the hour, and its history in the hour."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from streamwarden.base.hours import PRESENT_FOR

from spark_apps.apps.consumer_groups.rows import PARTITION, PLACE, READ_TO_NOW, clock, logs, readable, unread_clusters
from spark_apps.runtime.kept import kept
from spark_apps.runtime.session import pieces
from spark_apps.sources.kafka_offsets import RECENT_SECONDS


def _history(sources: dict[str, DataFrame], hour: datetime) -> DataFrame:
    """Commits and tombstones, one row per group, partition, and `is_past` (before `as_of`, or since).

    A large cluster commits millions of times an hour: one pass computes everything about commits, with one shuffle
    and sort by partition. `proven` is a lower bound of the log-end offset; `reading` is the slope of committed
    offsets since the last rewind, and `reading_lately` that of the later half of that time.
    """
    commits = readable(sources["kafka_commits"]).filter("kind in ('commit', 'tombstone')")
    # Synchronized clocks differ by less than a minute.
    long_before = f.col("as_of") - f.expr(f"interval {2 * RECENT_SECONDS} seconds")
    at = f.coalesce("committed_at", "written_at")
    commit_rows = (
        commits.join(clock(sources).withColumn("long_before", long_before), "cluster")
        .select(
            *PLACE,
            *("long_before", "committed_offset", "log_partition", "log_offset"),
            at.alias("at"),
            (at < f.col("as_of")).alias("is_past"),
            (f.col("kind") == "commit").alias("is_commit"),
        )
        .repartition(pieces(commits.sparkSession), *PARTITION)
        .join(logs(sources).select(*PARTITION, "log_end_offset").hint("shuffle_hash"), PARTITION, "left")
    )
    place = [*PARTITION, "group_id", "is_past"]
    whole = Window.partitionBy(*place)
    in_order = whole.orderBy("log_partition", "log_offset")
    seconds, is_commit, step = f.col("at").cast("double"), f.col("is_commit"), f.col("step")
    rewind = f.when(step < 0, f.col("log_offset"))
    steps = commit_rows.withColumns(
        {
            "step": f.col("committed_offset") - f.lag("committed_offset").over(in_order),
            "step_seconds": seconds - f.lag("at").over(in_order).cast("double"),
            "highest_before": f.max("committed_offset").over(in_order.rowsBetween(Window.unboundedPreceding, -1)),
        }
    ).withColumns(
        {
            "last_rewind": f.max(rewind).over(whole),
            "run_began": f.coalesce(f.max_by(seconds, rewind).over(whole), f.min(seconds).over(whole)),
            "run_ended": f.max(seconds).over(whole),
        }
    )
    in_last_run = is_commit & f.coalesce(f.col("log_offset") >= f.col("last_rewind"), f.lit(True))
    lately = in_last_run & (seconds >= (f.col("run_began") + f.col("run_ended")) / 2)
    counted = is_commit & (f.col("at") >= f.lit(hour))
    # Otherwise the offset was set manually, or the topic was recreated.
    proves = is_commit & (f.col("committed_offset") <= f.col("log_end_offset"))
    return steps.groupBy(*place).agg(
        f.bool_or(is_commit).alias("has_commits"),
        f.max_by(is_commit, "log_offset").alias("is_kept"),
        f.max_by("committed_offset", "log_offset").alias("last_offset"),
        f.max_by("at", "log_offset").alias("last_at"),
        f.max_by("highest_before", "log_offset").alias("highest_before"),
        f.min("at").alias("first_at"),
        f.count_if(counted).alias("seen_commits"),
        f.sum(f.when(counted, f.greatest(step, f.lit(0)))).alias("seen_consumed"),
        f.sum(f.when(counted & step.isNotNull(), f.col("step_seconds"))).alias("consumed_seconds"),
        f.count_if(counted & (step < 0)).alias("seen_rewinds"),
        f.max(f.when(step != 0, f.col("at"))).alias("moved_at"),
        f.percentile("step_seconds", f.lit(0.95)).alias("commit_gap_p95_seconds"),
        f.regr_slope(f.when(in_last_run, f.col("committed_offset")), seconds).alias("reading"),
        f.regr_slope(f.when(lately, f.col("committed_offset")), seconds).alias("reading_lately"),
        (f.max(f.when(in_last_run, seconds)) - f.min(f.when(in_last_run, seconds))).alias("reading_seconds"),
        f.max(f.when(proves, f.col("committed_offset"))).alias("proven"),
        f.max(f.when(proves & (f.col("at") < f.col("long_before")), f.col("committed_offset"))).alias("proven_recent"),
    )


def ends(sources: dict[str, DataFrame], history: DataFrame) -> DataFrame:
    """Readable end of each log as of the end of the hour and a minute before, with what is known only now.

    Offsets by time depend on producer timestamps: one record dated in the future hides all records after it. Commits
    and the log-end offset seen an hour ago are lower bounds; where they contradict a timestamp, only they count.
    Where only the end a minute before is contradicted, the end of the hour replaces it: lag behind it is looked up.
    """
    committed = history.groupBy(*PARTITION).agg(*(f.max(name).alias(name) for name in ("proven", "proven_recent")))
    known = f.when(f.col("known_end") <= f.col("log_end_offset"), f.col("known_end"))
    proven, proven_recent = f.greatest("proven", known), f.greatest("proven_recent", known)
    is_refuted = f.coalesce(f.col("offset_at_to") < proven, f.lit(False))
    end = f.when(is_refuted, proven).otherwise(f.col("offset_at_to"))
    is_recent_refuted = is_refuted | (f.col("recent_offset") < proven_recent)
    return (
        logs(sources)
        .join(committed, PARTITION, "left")
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
    """One row per group and partition with commits: the offset as of the end of the hour, its history, and the log
    end."""
    all_history = kept(_history(sources, hour))
    history = all_history.filter("is_past")
    later = all_history.filter("not is_past and has_commits").select(*PLACE, f.lit(True).alias("committed_later"))
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
    from_history = f.when(f.col("is_kept"), f.col("last_offset"))
    unchanged = f.col("is_kept").isNull() & f.col("committed_later").isNull() & reads_on & f.col("unread").isNull()
    committed = (
        f.when(is_present, f.coalesce("current_offset", from_history))
        .when(from_history.isNotNull(), from_history)
        .when(unchanged, f.col("current_offset"))
    )
    # A commit older than the part of __consumer_offsets that was read: the hour before has its time.
    committed_before = f.when(unchanged & (committed == f.col("known_offset")), f.col("known_committed_at"))
    committed_at = f.when(f.col("is_kept"), f.col("last_at")).otherwise(committed_before)
    is_known = f.col("unread").isNull() | f.col("is_kept").isNotNull()
    # In an hour that has ended: a group's current offset does not prove that it had one then.
    is_past = f.col("read_at") >= f.lit(hour + PRESENT_FOR)
    is_there = f.expr("is_kept is null or is_kept or current_offset is not null") & (committed.isNotNull() | ~is_past)
    so_long = f.col("as_of").cast("double") - f.lit(hour.timestamp())
    return (
        joined.filter(is_there)
        .join(ends(sources, history), PARTITION, "left")
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
