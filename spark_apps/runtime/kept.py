"""Frames that several tables are computed from: each is computed once, by the first task that needs it.

In an hour of few rows such a frame is a leaf of later plans. How it was computed is otherwise analyzed, optimized, and
compared with each persisted frame again, for each table: a third of the CPU of a small fleet's hour. A large hour is
persisted in Spark's columnar format, which takes less memory.

A leaf is no part of the plan that it was made from: frames must be derived from what these functions return.
"""

from __future__ import annotations

from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession

_SMALL = "streamwarden.small"
_leaves: WeakSet[DataFrame] = WeakSet()


def set_small(spark: SparkSession) -> None:
    """Makes the session one for an hour of few rows (see `session.session_for`)."""
    spark.conf.set(_SMALL, "true")


def kept(frame: DataFrame) -> DataFrame:
    """The frame as a leaf in an hour of few rows, otherwise persisted."""
    return leaf(frame) if _is_small(frame.sparkSession) else frame.persist()


def leaf(frame: DataFrame) -> DataFrame:
    """The frame as a leaf in an hour of few rows, otherwise unchanged; for what a source or the warehouse returns."""
    if not _is_small(frame.sparkSession) or frame in _leaves:
        return frame
    made = frame.localCheckpoint(eager=False)
    _leaves.add(made)
    return made


def _is_small(spark: SparkSession) -> bool:
    return spark.conf.get(_SMALL, "false") == "true"
