"""The model of a consumer's lag on a partition: its age in seconds and its status, as Spark columns.

The status follows Burrow's rules over the commits of the hour, in its order, mended where they err: lag counts by the
age of the first uncommitted record, so that one record behind is no stall; it is judged as of the hour's end, so that
no dip on the way hides it; and by what there was to read, so that a quiet topic doesn't look stopped.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as f

from spark_apps.sources.kafka_offsets import RECENT_SECONDS

STANDSTILL_SECONDS = 300
"""Of the status only, which describes; what a verdict takes for standing still is in the detector."""
STATUS_WORST_FIRST = ("stop", "stall", "rewind", "warn", "ok")


def lag_seconds() -> Column:
    """Age of the first uncommitted record as of the hour's end.

    Of `committed_offset`, `log_end_offset`, `recent_offset` (the log's end RECENT_SECONDS earlier), `record_at` and
    `as_of`. A lag within the last minute is interpolated between the log's two ends; an older one is the record's own.
    """
    lag = f.col("log_end_offset") - f.col("committed_offset")
    within = lag / (f.col("log_end_offset") - f.col("recent_offset")) * RECENT_SECONDS
    age = f.col("as_of").cast("double") - f.col("record_at").cast("double")
    return (
        f.when(lag.isNull(), None)
        .when(lag <= 0, 0)
        .when(f.col("committed_offset") >= f.col("recent_offset"), within)
        .otherwise(f.greatest(age, f.lit(0)))
        .cast("bigint")
    )


def silent_seconds(known_from: datetime) -> Column:
    """Seconds since the last commit; at least those since `known_from` where there is none at hand."""
    return _since(f.coalesce("committed_at", f.lit(known_from)))


def still_seconds(known_from: datetime) -> Column:
    """Seconds since the committed offset last moved, or at least so many.

    A first commit at hand may have moved: until a second one says otherwise it counts as a move.
    """
    return _since(f.coalesce("moved_at", "first_at", f.lit(known_from)))


def _since(moment: Column) -> Column:
    """Null where the history couldn't be read."""
    seconds = f.col("as_of").cast("double") - moment.cast("double")
    return f.when(f.col("commits").isNotNull(), f.greatest(seconds, f.lit(0.0)))


def partition_status(known_from: datetime) -> Column:
    """ok, stop, rewind, stall or warn; null where lag or history aren't known. History reaches back to `known_from`."""
    is_waiting = f.col("lag_seconds") >= STANDSTILL_SECONDS
    stands_still = is_waiting & (still_seconds(known_from) >= STANDSTILL_SECONDS)
    return (
        f.when(f.col("lag_seconds").isNull() | f.col("commits").isNull(), None)
        .when(f.col("lag_seconds") <= RECENT_SECONDS, "ok")
        .when(stands_still & (silent_seconds(known_from) >= STANDSTILL_SECONDS), "stop")
        .when((f.col("rewinds") > 0) & (f.col("committed_offset") < f.col("highest_before")), "rewind")
        .when(stands_still, "stall")
        .when(f.col("lag_slope_per_second") > 0, "warn")
        .otherwise("ok")
    )
