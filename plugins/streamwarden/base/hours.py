"""Hours: all data is keyed by the start of an hour in UTC; an hour is [start, start + 1 h)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamwarden.base.errors import StreamwardenError

HOUR = timedelta(hours=1)
PRESENT_FOR = 2 * HOUR
"""How long after the start of an hour a current reading counts for it; the run of the hour is due halfway."""
ONLY_PRESENT = "only knows the present"
"""Part of every gap that `gap_of_present` returns; the warehouse recognizes them by it."""
FIRST_YEAR, LAST_YEAR = 1970, 2261
"""Range of valid hours: it fits into Arrow's nanosecond timestamps, and so do the years before and after it."""


def parse_hour(text: str) -> datetime:
    """Start of an hour from ISO text; text without a zone is UTC.

    Raises:
        StreamwardenError: the text is not a time, or not the start of an hour.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # beyond the years 1 to 9999
        raise StreamwardenError(f"hour '{text}': not a time; write it like 2026-11-21T05:00.") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise StreamwardenError(f"hour '{text}': must be between {FIRST_YEAR} and {LAST_YEAR}.")
    if moment != start_of_hour(moment):
        raise StreamwardenError(
            f"hour '{text}': must be the start of an hour, like {start_of_hour(moment):%Y-%m-%dT%H:%M}."
        )
    return moment


def gap_of_present(hour: datetime, source: str, now: datetime | None = None) -> str | None:
    """The gap of a source that only reports current values, for an hour that is too long ago; None if it is not.

    Args:
        hour: start of the hour.
        source: name of the source, such as `a JVM`.

    Returns:
        `missing: <reason>`. The text does not depend on `now`, so that every run of an hour has the same result.
    """
    if hour <= (now or datetime.now(UTC)) < hour + PRESENT_FOR:
        return None
    return (
        f"missing: {source} {ONLY_PRESENT}; readings count for this hour from {hour:%H:%M}"
        f" to {hour + PRESENT_FOR:%H:%M} UTC."
    )


def start_of_hour(moment: datetime) -> datetime:
    """Start of the hour that holds `moment`."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def last_full_hour(now: datetime | None = None) -> datetime:
    """Start of the newest complete hour."""
    return start_of_hour(now or datetime.now(UTC)) - HOUR
