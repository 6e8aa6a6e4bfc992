"""When records were appended by what clocks say. What is read is tested on a broker (test_consumer_groups)."""

from __future__ import annotations

import pytest

from spark_apps.sources.kafka_next_records import appended_ms

MINUTE = 60_000


@pytest.mark.parametrize(
    ("minutes", "appended"),
    [
        ([10], 10),
        ([10, 20, 30, 40], 20),  # the middle of three: a minute of a slow topic later at most
        ([60, 11, 12, 13], 12),  # the first is dated ahead
        ([10, 60, 12, 13], 12),
        ([0, 11, 12, 13], 11),  # and one late
        ([5, 90, 20, 70, 10, 95, 30], 95),  # times of events: the latest is nearest
    ],
)
def test_one_clock_that_is_wrong_says_nothing(minutes: list[int], appended: int) -> None:
    assert appended_ms([minute * MINUTE for minute in minutes]) == appended * MINUTE


def test_clocks_that_differ_by_seconds_make_no_event_times() -> None:
    assert appended_ms([10_000, 5_000, 12_000, 7_000, 14_000, 9_000]) == 10_000
