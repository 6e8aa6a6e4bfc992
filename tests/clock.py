"""An hour for tests of present readings that does not end while they run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def present_hour() -> datetime:
    """An hour that began 30 minutes ago. Apps accept any start; only `parse_hour` requires minute 0."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
