"""Age of the first uncommitted record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_apps.models.consumer_lag import lag_high, lag_low, lag_seconds
from spark_apps.runtime.driver_rows import driver_rows

pytestmark = pytest.mark.slow
END = datetime(2026, 1, 5, 11, tzinfo=UTC)
NAMES = (
    "lag_records bigint, committed_offset bigint, recent_offset bigint, log_end_offset bigint, record_at timestamp,"
    " earliest_at timestamp, latest_at timestamp, as_of timestamp, known_end bigint, known_at timestamp"
)


def place(recent: int, end: int, age: float | None, uncertain: float = 0, committed: int = 100) -> tuple[Any, ...]:
    """A group that committed 100; the record there is `age` seconds old, give or take."""
    at = None if age is None else [END - timedelta(seconds=age + by) for by in (0, uncertain, -uncertain)]
    return (end - committed, committed, recent, end, *(at or (None, None, None)), END, None, None)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # One record in the last minute: 60 s by its position, whatever its age.
        (place(100, 101, 3), (3, 3, 3)),
        (place(100, 101, 10, 1), (10, 9, 11)),
        (place(99, 103, 41), (41, 41, 41)),
        # Not looked up: a range.
        (place(100, 160, None), (60, 0, 60)),
        (place(40, 101, None), (0, 0, 60)),
        # A timestamp that contradicts the arrival within the last minute.
        (place(100, 101, 900), (60, 0, 60)),
        (place(100, 101, -5), (60, 0, 60)),
        # Older than a minute.
        (place(101, 105, 300), (300, 300, 300)),
        (place(100, 100, None), (0, 0, 0)),
    ],
)
def test_the_true_age_or_a_range(spark: SparkSession, row: tuple[Any, ...], expected: tuple[int, int, int]) -> None:
    frame = driver_rows(spark, [row], NAMES).select(lag_seconds(), lag_low(), lag_high())
    assert tuple(frame.collect()[0]) == expected
