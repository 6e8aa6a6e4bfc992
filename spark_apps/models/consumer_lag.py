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
from spark_apps.sources.kafka_record_times import NOTHING

STANDSTILL_SECONDS = 300
"""Of the status only, which describes; what a verdict takes for standing still is in the detector."""
STATUS_WORST_FIRST = ("stop", "stall", "rewind", "warn", "ok")


def lag_records() -> Column:
    """Records that a reader can still have, as of the hour's end.

    What retention took before it was read is lost, not behind; markers and aborted records in front (up to
    `next_offset`, which is -1 where nothing is behind them) can't be had. Beyond the last stable offset transactions
    are open; who has committed there reads uncommitted records too. Unknown: a commit beyond the log's end (the topic
    was made again, or an offset was set by hand), a log whose start has passed that hour's end since, and, where clocks
    were refuted, a place at the very end of what is proven, as more may have come.
    """
    committed, end = f.col("committed_offset"), _readable_end()
    is_unknown = (
        committed.isNull()
        | end.isNull()
        | (committed > f.col("end_now"))
        | ((committed < f.col("log_end_offset")) & (f.col("log_start_offset") > f.col("log_end_offset")))
        | (f.col("is_refuted") & (committed >= f.col("log_end_offset")) & (committed < f.col("end_now")))
    )
    return f.when(~is_unknown, _records_before(end))


def waiting_records() -> Column:
    """Of `lag_records` those that came RECENT_SECONDS or more before the hour's end."""
    return f.when(lag_records().isNotNull(), _records_before(f.least("recent_offset", _readable_end())))


def _readable_end() -> Column:
    stable = f.col("last_stable_offset")
    return f.when(stable >= f.col("committed_offset"), f.least("log_end_offset", stable)).otherwise(
        f.col("log_end_offset")
    )


def _records_before(end: Column) -> Column:
    first = f.greatest("committed_offset", "log_start_offset", "next_offset")
    return f.when(f.col("next_offset") == NOTHING, 0).otherwise(f.greatest(end - first, f.lit(0)))


def lag_seconds() -> Column:
    """Age of the first uncommitted record as of the hour's end.

    Of `lag_records`, `log_end_offset`, `recent_offset` (the log's end RECENT_SECONDS earlier), `record_at` and `as_of`.
    A lag within the last minute is interpolated between the log's two ends; an older one is the record's own. Where its
    time is later than the hour's end, a clock was ahead: then what was seen an hour ago says how old it is at least.
    """
    lag = f.col("log_end_offset") - f.col("committed_offset")
    within = lag / f.nullif(f.col("log_end_offset") - f.col("recent_offset"), f.lit(0)) * RECENT_SECONDS
    return _by_age(within, _age("record_at")).cast("bigint")


def lag_low() -> Column:
    """The lag is at least so old."""
    return _by_age(f.lit(0.0), _age(f.coalesce("latest_at", "record_at")))


def lag_high() -> Column:
    """The lag is at most so old; null where nothing bounds it."""
    within = f.lit(float(RECENT_SECONDS))
    is_trusted = f.col("record_at") <= f.col("as_of")
    return _by_age(within, f.when(is_trusted, _age(f.coalesce("earliest_at", "record_at"))))


def _by_age(within_a_minute: Column, older: Column) -> Column:
    lag = f.col("lag_records")
    return (
        f.when(lag.isNull(), None)
        .when(lag <= 0, 0.0)
        .when(f.col("committed_offset") >= f.col("recent_offset"), within_a_minute)
        .otherwise(older)
    )


def _age(record_at: str | Column) -> Column:
    at = f.col(record_at) if isinstance(record_at, str) else record_at
    age = f.col("as_of").cast("double") - at.cast("double")
    was_there = f.col("committed_offset") < f.col("known_end")
    since_known = f.when(was_there, f.col("as_of").cast("double") - f.col("known_at").cast("double"))
    return f.when(age >= 0, age).otherwise(since_known)


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
