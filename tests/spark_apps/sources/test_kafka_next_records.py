"""Append times of records from clocks that differ. Reads are tested on a broker (test_consumer_groups)."""

from __future__ import annotations

import pytest

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
