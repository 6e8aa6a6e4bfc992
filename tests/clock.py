"""An hour for tests of the present, which the clock doesn't end while they run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def present_hour() -> datetime:
    """An hour that is half over. Only people's hours begin at minute 0 (`parse_hour`); to the apps any will do."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
