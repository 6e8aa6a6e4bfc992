"""The model of consumer lag on a partition: its age in seconds and its status, as Spark columns.

The status follows Burrow's rules over the commits of the hour, in Burrow's order, with corrections. Lag counts by
the age of the first uncommitted record, so one record of lag is not a stall. The status is as of the end of the
hour, so a short dip does not hide lag. It depends on the records available, so a quiet topic does not look stopped.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as f

from spark_apps.sources.kafka_offsets import RECENT_SECONDS
from spark_apps.sources.kafka_record_times import NOTHING

QUIET_RECORDS = 10
"""With so few records in the last minute, the position of a record does not show its age: it is looked up."""
STANDSTILL_SECONDS = 300
"""Only for this descriptive status; the detector has its own threshold for a stuck partition."""
STATUS_WORST_FIRST = ("stop", "stall", "rewind", "warn", "ok")


def lag_records() -> Column:
    """Records that the group can still read, as of the end of the hour.

    Records that retention deleted before they were read are lost and do not count; neither do transaction markers
    and aborted records at the front (up to `next_offset`; -1: no record after them). Beyond the last stable offset
    transactions are open; a group that committed there reads uncommitted records too. Unknown: a commit beyond the
    log end (the topic was recreated, or the offset was set manually), a log start that has passed that hour's log
    end since, and, where timestamps are contradicted, a commit at the lower bound of the log end, because more
    records may have arrived.
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
    """The part of `lag_records` that was appended RECENT_SECONDS or more before the end of the hour."""
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
    """Age of the first uncommitted record as of the end of the hour, in seconds.

    Uses `lag_records`, `log_end_offset`, `recent_offset` (the log-end offset RECENT_SECONDS earlier), `record_at`,
    and `as_of`. The record's timestamp counts where it was looked up; without it, lag of less than a minute is
    interpolated between the two log-end offsets. Where the timestamp is after the end of the hour, it is wrong: then
    the log-end offset of an hour ago gives a lower bound.
    """
    lag = f.col("log_end_offset") - f.col("committed_offset")
    within = lag / f.nullif(f.col("log_end_offset") - f.col("recent_offset"), f.lit(0)) * RECENT_SECONDS
    return _by_age(f.coalesce(_recent_age("record_at"), within), _age("record_at")).cast("bigint")


def lag_low() -> Column:
    """Lower bound of the age in seconds."""
    latest = f.coalesce("latest_at", "record_at")
    return _by_age(f.coalesce(_recent_age(latest), f.lit(0.0)), _age(latest))


def lag_high() -> Column:
    """Upper bound of the age in seconds; null where there is none."""
    is_trusted, earliest = f.col("record_at") <= f.col("as_of"), f.coalesce("earliest_at", "record_at")
    within = f.coalesce(f.when(is_trusted, _recent_age(earliest)), f.lit(float(RECENT_SECONDS)))
    return _by_age(within, f.when(is_trusted, _age(earliest)))


def _by_age(within_a_minute: Column, older: Column) -> Column:
    lag = f.col("lag_records")
    return (
        f.when(lag.isNull(), None)
        .when(lag <= 0, 0.0)
        .when(f.col("committed_offset") >= f.col("recent_offset"), within_a_minute)
        .otherwise(older)
    )


def _recent_age(record_at: str | Column) -> Column:
    """Age of a record that arrived within RECENT_SECONDS; null where its timestamp contradicts that, or is unknown."""
    at = f.col(record_at) if isinstance(record_at, str) else record_at
    age = f.col("as_of").cast("double") - at.cast("double")
    return f.when(age.between(0, RECENT_SECONDS), age)


def _age(record_at: str | Column) -> Column:
    at = f.col(record_at) if isinstance(record_at, str) else record_at
    age = f.col("as_of").cast("double") - at.cast("double")
    was_there = f.col("committed_offset") < f.col("known_end")
    since_known = f.when(was_there, f.col("as_of").cast("double") - f.col("known_at").cast("double"))
    return f.when(age >= 0, age).otherwise(since_known)


def silent_seconds(known_from: datetime) -> Column:
    """Seconds since the last commit; without a known commit, the seconds since `known_from` as a lower bound."""
    return _since(f.coalesce("committed_at", f.lit(known_from)))


def still_seconds(known_from: datetime) -> Column:
    """Seconds since the committed offset last advanced, or a lower bound of it.

    The first known commit may have been an advance: it counts as one until a second commit proves otherwise.
    """
    return _since(f.coalesce("moved_at", "first_at", f.lit(known_from)))


def _since(moment: Column) -> Column:
    """Seconds since `moment`; null where __consumer_offsets could not be read."""
    seconds = f.col("as_of").cast("double") - moment.cast("double")
    return f.when(f.col("commits").isNotNull(), f.greatest(seconds, f.lit(0.0)))


def partition_status(known_from: datetime) -> Column:
    """ok, stop, rewind, stall, or warn; null where lag or history are not known. History begins at `known_from`."""
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
