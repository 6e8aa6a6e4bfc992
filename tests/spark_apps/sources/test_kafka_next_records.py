"""Times of records: clocks that differ, and numbers that are no times. Reads are tested on a broker
(test_consumer_groups)."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_apps.sources import kafka_record_times
from spark_apps.sources.kafka_next_records import appended_ms

MINUTE = 60_000


@pytest.mark.parametrize(
    ("minutes", "appended"),
    [
        ([10], 10),
        ([10, 20, 30, 40], 20),  # the median of three: at most a minute late on a slow topic
        ([60, 11, 12, 13], 12),  # the first is dated ahead
        ([10, 60, 12, 13], 12),
        ([0, 11, 12, 13], 11),  # and one is late
        ([5, 90, 20, 70, 10, 95, 30], 95),  # event times: the latest is the nearest
    ],
)
def test_one_wrong_clock_is_ignored(minutes: list[int], appended: int) -> None:
    assert appended_ms([minute * MINUTE for minute in minutes]) == appended * MINUTE


def test_clocks_that_differ_by_seconds_are_not_event_times() -> None:
    assert appended_ms([10_000, 5_000, 12_000, 7_000, 14_000, 9_000]) == 10_000


@pytest.mark.parametrize("at", [1_795_000_000 * 10**9, 1_795_000_000 * 10**6, 2**63 - 1, -1])
def test_a_timestamp_that_is_no_time_is_null_and_does_not_affect_others(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producers that write nanoseconds, microseconds, anything, or nothing."""
    times = {("t", 0, 5): float(at), ("t", 1, 5): 1_795_000_000_000.0}
    found = {place: kafka_record_times._Time(ms, ms, ms) for place, ms in times.items()}
    monkeypatch.setattr(kafka_record_times, "_times", lambda *_: (found, None))
    asked = {"cluster": ["c"] * 2, "topic": ["t"] * 2, "partition": [0, 1], "offset": [5, 5], "stands": [False] * 2}
    [batch] = kafka_record_times._answer_batches([pa.RecordBatch.from_pydict(asked)])
    rows = batch.to_pylist()
    for column in ("record_at", "earliest_at", "latest_at"):
        assert [row[column] for row in rows] == [None, datetime.fromtimestamp(1_795_000_000, UTC)]
