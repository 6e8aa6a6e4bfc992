"""Frames that several tables are computed from: each is computed once, by the first task that needs it.

In an hour of few rows such a frame is a leaf of later plans. How it was computed is otherwise analyzed, optimized, and
compared with each persisted frame again, for each table: a third of the CPU of a small fleet's hour. A large hour is
persisted in Spark's columnar format, which takes less memory.

Where few rows are expected, a leaf has one partition: Spark shuffles nothing of what is computed from it, and a table
is one task.

A leaf is no part of the plan that it was made from: frames must be derived from what these functions return.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession

_SMALL, _ONE_TASK = "streamwarden.small", "streamwarden.one_task"
_leaves: WeakSet[DataFrame] = WeakSet()


def set_small(spark: SparkSession, *, one_task: bool) -> None:
    """Makes the session one for an hour of few rows (see `session.session_for`).

    Args:
        one_task: the rows of a table fit one task.
    """
    spark.conf.set(_SMALL, "true")
    spark.conf.set(_ONE_TASK, str(one_task).lower())


def kept(frame: DataFrame) -> DataFrame:
    """The frame as a leaf in an hour of few rows, otherwise persisted."""
    if not _is(frame.sparkSession, _SMALL):
        return frame.persist()
    return leaf(frame if frame in _leaves else in_one_task(frame))


def leaf(frame: DataFrame, tasks: int = 1) -> DataFrame:
    """The frame as a leaf in an hour of few rows, otherwise unchanged; for what a source or the warehouse returns.

    Args:
        tasks: number of tasks that read the source; they stay parallel, and their rows are gathered.
    """
    if not _is(frame.sparkSession, _SMALL) or frame in _leaves:
        return frame
    gathered = frame.repartition(1) if tasks > 1 and _is(frame.sparkSession, _ONE_TASK) else frame
    made = gathered.localCheckpoint(eager=False)
    _leaves.add(made)
    return made


def in_one_task(frame: DataFrame) -> DataFrame:
    """The frame, computed from leaves by one task where few rows are expected; otherwise unchanged."""
    return frame.coalesce(1) if _is(frame.sparkSession, _ONE_TASK) else frame


def tables_at_once(frames: Mapping[str, DataFrame]) -> int:
    """How many tables are filled at a time: two in an hour of few rows, so that one is planned while tasks fill the
    other; one in a large hour, for its memory."""
    return 2 if any(_is(frame.sparkSession, _SMALL) for frame in frames.values()) else 1


def _is(spark: SparkSession, what: str) -> bool:
    return spark.conf.get(what, "false") == "true"
