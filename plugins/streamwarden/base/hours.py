"""Hours: everything Streamwarden knows is keyed on the start of an hour, in UTC; an hour is [start, start + 1 h)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamwarden.base.errors import StreamwardenError

HOUR = timedelta(hours=1)
PRESENT_FOR = 2 * HOUR
"""So long after an hour's start the present still says something of it; a run of that hour is due halfway."""
ONLY_PRESENT = "only knows the present"
"""Part of the reason of every gap that `gap_of_present` makes, by which the warehouse recognizes them."""
FIRST_YEAR, LAST_YEAR = 1970, 2261
"""Of the hours that may be named: years before and after them are dates too, and Arrow's nanoseconds hold them."""


def parse_hour(text: str) -> datetime:
    """Start of an hour from ISO text; text without a zone is UTC.

    Raises:
        StreamwardenError: the text isn't a time, or isn't on the hour.
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
    """Why a source that can only report about now reports nothing about an hour; null while it can.

    Args:
        hour: start of the hour.
        source: what is asked, such as `a JVM`.

    Returns:
        A gap: `missing: <reason>`. It is the same whenever it is made, so that every run of the hour ends alike.
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
    """Start of the newest hour that is over."""
    return start_of_hour(now or datetime.now(UTC)) - HOUR
