"""Counters: exact counts through restarts, new series, first runs and single readings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_apps.models.counters import counts
from spark_apps.runtime.driver_rows import driver_rows

pytestmark = pytest.mark.slow
HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
LONG_AGO = HOUR - timedelta(days=9)
TOPIC = '{"topic": "a"}'


def at(minute: float) -> datetime:
    return HOUR + timedelta(minutes=minute)


# name: (readings of the run, readings before, series, (counted, from, to))
# a reading: (labels, minute, value, start of the JVM)
CASES: dict[str, tuple[list[Any], list[Any], str, tuple[Any, Any, Any]]] = {
    "since the last reading before": (
        [("{}", 70, 1000, LONG_AGO), ("{}", 71, 1100, LONG_AGO)],
        [("{}", 10, 400)],
        "{}",
        (700, at(10), at(71)),
    ),
    "restarted in between: since the start": (
        [("{}", 70, 30, at(40)), ("{}", 71, 50, at(40))],
        [("{}", 10, 400)],
        "{}",
        (50, at(40), at(71)),
    ),
    "restarted and already past the old reading": (
        [("{}", 71, 900, at(40))],
        [("{}", 10, 400)],
        "{}",
        (900, at(40), at(71)),
    ),
    "decreased without a restart: the bean was recreated": (
        [("{}", 71, 50, LONG_AGO)],
        [("{}", 10, 400)],
        "{}",
        (50, at(10), at(71)),
    ),
    "a topic's first bytes": (
        [("{}", 71, 500, LONG_AGO), (TOPIC, 71, 100, LONG_AGO)],
        [("{}", 10, 400)],
        TOPIC,
        (100, at(10), at(71)),
    ),
    "a topic's first bytes after a restart": (
        [("{}", 71, 500, at(40)), (TOPIC, 71, 100, at(40))],
        [("{}", 10, 400)],
        TOPIC,
        (100, at(40), at(71)),
    ),
    "first run, started within the hour": (
        [("{}", 20, 10, at(5)), ("{}", 21, 40, at(5))],
        [],
        "{}",
        (40, at(5), at(21)),
    ),
    "first run, started long ago: within the run only": (
        [("{}", 70, 10_000, LONG_AGO), ("{}", 71, 10_040, LONG_AGO)],
        [],
        "{}",
        (40, at(70), at(71)),
    ),
    "first run, a topic that comes within it": (
        [("{}", 70, 10, LONG_AGO), ("{}", 71, 40, LONG_AGO), (TOPIC, 71, 30, LONG_AGO)],
        [],
        TOPIC,
        (30, at(70), at(71)),
    ),
    "a process that reports a start after the last reading": (
        [("{}", 70, 30, at(72)), ("{}", 71, 50, at(72))],
        [("{}", 10, 400)],
        "{}",
        (None, None, None),
    ),
    "a process that reports a start at the last reading": (
        [("{}", 20, 10, at(21)), ("{}", 21, 40, at(21))],
        [],
        "{}",
        (None, None, None),
    ),
    "a single reading tells nothing": ([("{}", 70, 10_000, LONG_AGO)], [], "{}", (None, None, None)),
    "null readings don't count": (
        [("{}", 70, None, LONG_AGO), ("{}", 71, 1000, LONG_AGO)],
        [("{}", 10, 400)],
        "{}",
        (600, at(10), at(71)),
    ),
    "start time not reported": ([("{}", 71, 500, None)], [("{}", 10, 400)], "{}", (100, at(10), at(71))),
    "idle is 0, not null": ([("{}", 71, 400, LONG_AGO)], [("{}", 10, 400)], "{}", (0, at(10), at(71))),
}


def test_counts(spark: Any) -> None:
    """All cases in one query, one endpoint per case, to pay Spark's start-up once."""
    readings = [
        (name, "bytes_in_total", labels, at(minute), "counter", None if value is None else float(value), started)
        for name, (run, _, _, _) in CASES.items()
        for labels, minute, value, started in run
    ]
    earlier = [
        (name, "bytes_in_total", labels, at(minute), float(value))
        for name, (_, before, _, _) in CASES.items()
        for labels, minute, value in before
    ]
    series = "endpoint string, metric string, labels string, at timestamp"
    rows = counts(
        driver_rows(
            spark,
            [("c", *row) for row in readings],
            f"cluster string, {series}, kind string, value double, process_started_at timestamp",
        ),
        driver_rows(spark, [("c", *row) for row in earlier], f"cluster string, {series}, value double"),
        HOUR,
    ).collect()
    got = {(row["endpoint"], row["labels"]): row for row in rows}
    for name, (_, _, labels, (counted, since, until)) in CASES.items():
        row = got[name, labels]
        found = (row["counted"], _utc(row["counted_from"]), _utc(row["counted_to"]))
        assert found == (counted, since, until), name
        covered = None if since is None else (until - since).total_seconds()
        assert row["covered_seconds"] == covered, name


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment else None
