"""Changes of a resource, found by comparing its successive hours (sql/pages/hours/<kind>.sql)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.base.paths import SQL
from streamwarden.detectors import load_detectors
from streamwarden.detectors.resources import KINDS
from streamwarden.rendering.readable import counted, moment, readable
from streamwarden.store.queries import Row, ask

SAME_START = timedelta(minutes=1)  # as public.is_same_start
STARTS = ("restarted", "launched")
EVENTS = {"rebalances": "rebalance"}
"""States that count what happened in the hour, and the noun for one."""
MAX_HOURS = 36 * 24


def changes_between(
    connection: sa.Connection, detector: str, identity: Mapping[str, Any], start: datetime, finish: datetime
) -> list[Row]:
    """Changes of a finding's resource, oldest first: hour, at, what, was, now, and text.

    Args:
        detector: its id; the changes of an unknown one are not known.
        identity: the key columns of the resource.
        finish: the last hour that is compared; at most 36 days after `start`.
    """
    known = load_detectors().get(detector)
    if known is None or not (SQL / "pages" / "hours" / f"{known.resource_kind}.sql").is_file():
        return []
    columns = {column: identity.get(column) for column in KINDS[known.resource_kind]}
    last = start_of_hour(finish)
    first = max(start_of_hour(start), last - MAX_HOURS * HOUR)
    hours = ask(connection, f"pages/hours/{known.resource_kind}", start=first - HOUR, finish=last, **columns)
    return changes_of(hours)


def changes_of(known: Sequence[Row]) -> list[Row]:
    """Changes between successive known hours, oldest first: hour, at, what, was, now, and text.

    States in `EVENTS` are not compared: each hour with some is a change.
    """
    last: dict[str, Any] = {}
    changes: list[Row] = []
    for row in known:
        for what, now in (row["state"] or {}).items():
            if now is None:
                continue
            was = 0 if what in EVENTS else last.get(what)
            if was is not None and not _is_same(what, was, now):
                changes.append({"hour": row["hour"], "what": what, "was": was, "now": now})
            last[what] = now
    return [row | {"text": change_text(row), "at": _at(row)} for row in changes]


def change_text(row: Row) -> str:
    """A change for people: `Size: 100 GiB → 200 GiB`, `Restarted at 2026-01-05 09:58 UTC`, `3 rebalances`."""
    if row["what"] in EVENTS:
        return counted(row["now"], EVENTS[row["what"]])
    if row["what"] in STARTS:
        return f"{row['what'].capitalize()} at {moment(datetime.fromisoformat(row['now']))}"
    label, was = readable(row["what"], row["was"])
    return f"{label}: {was} → {readable(row['what'], row['now'])[1]}"


def _at(row: Row) -> datetime:
    """When it changed: of a start the minute, else the hour that first has the new state."""
    at = datetime.fromisoformat(row["now"]) if row["what"] in STARTS else row["hour"]
    return at.astimezone(UTC)


def _is_same(what: str, was: Any, now: Any) -> bool:
    if what in STARTS:
        return abs(datetime.fromisoformat(was) - datetime.fromisoformat(now)) < SAME_START
    return bool(was == now)
