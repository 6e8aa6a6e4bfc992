"""Parsing of hours, and how long present readings count for an hour."""

from datetime import UTC, datetime, timedelta

import pytest
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR, PRESENT_FOR, gap_of_present, parse_hour


@pytest.mark.parametrize("text", ["2026-11-21T05:00", "2026-11-21T05:00Z", "2026-11-21T07:00+02:00"])
def test_an_hour_is_utc(text: str) -> None:
    assert parse_hour(text) == datetime(2026, 11, 21, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("soon", "not a time"),
        ("2026-11-21T05:30", "must be the start of an hour, like 2026-11-21T05:00"),
        ("9999-12-31T23:00", "must be between 1970 and 2261"),
        ("9999-12-31T23:00-05:00", "not a time"),
        ("0001-01-01T00:00", "must be between 1970 and 2261"),
        ("0001-01-01T00:00+05:00", "not a time"),
    ],
)
def test_an_invalid_hour_is_an_error(text: str, expected: str) -> None:
    with pytest.raises(StreamwardenError, match=expected):
        parse_hour(text)


def test_present_readings_count_for_an_hour_until_an_hour_after_its_end() -> None:
    hour, second = datetime(2026, 11, 21, 3, tzinfo=UTC), timedelta(seconds=1)
    assert PRESENT_FOR == 2 * HOUR
    for now in (hour, hour + HOUR, hour + PRESENT_FOR - second):
        assert gap_of_present(hour, "a JVM", now) is None
    for now in (hour - second, hour + PRESENT_FOR, hour + timedelta(days=9)):
        assert gap_of_present(hour, "a JVM", now) == (
            "missing: a JVM only knows the present; readings count for this hour from 03:00 to 05:00 UTC."
        )
