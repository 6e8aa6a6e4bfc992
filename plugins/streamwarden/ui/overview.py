"""Data of the overview: counts by severity, open incidents, clusters and applications by worst state, and freshness."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from streamwarden.base.hours import HOUR
from streamwarden.store.queries import Row
from streamwarden.ui.pages import STALE_AFTER, STRIP_HOURS, _fetch, _strip, _warehouse

MAX_INCIDENTS, MAX_TILES = 8, {"cluster": 5, "application": 11}


def overview(page: int = 1) -> Row:
    """The overview.

    Args:
        page: page of the open incidents, from 1.
    """
    with _warehouse() as (connection, _):
        summary = _fetch(connection, "newest_hour")[0]
        newest = summary["hour"] or datetime.now(UTC)
        skip = (page - 1) * MAX_INCIDENTS
        incidents = _fetch(connection, "open_incidents", most=MAX_INCIDENTS, skip=skip)
        tiles: dict[str, list[Row]] = {kind: [] for kind in MAX_TILES}
        for row in _fetch(connection, "tiles"):
            tiles[row["kind"]].append(row)
        fingerprints = [row["fingerprint"] for row in incidents]
        strips: dict[str, list[Row]] = {}
        hours: dict[str, Any] = {"newest": newest, "hours": STRIP_HOURS}
        for row in _fetch(connection, "finding_strips", fingerprints=fingerprints, **hours):
            strips.setdefault(row["fingerprint"], []).append(row)
        return {
            "place": "overview",
            "summary": summary,
            "stale": summary["hour"] is not None and datetime.now(UTC) - (newest + HOUR) > STALE_AFTER,
            "incidents": [
                row | {"strip": _strip(newest, STRIP_HOURS, strips.get(row["fingerprint"], []))} for row in incidents
            ],
            "total": incidents[0]["total"] if incidents else 0,
            "page": page,
            "first": skip + 1,
            "tiles": {kind: rows[: MAX_TILES[kind]] for kind, rows in tiles.items()},
            "totals": {kind: len(rows) for kind, rows in tiles.items()},
            "freshness": _fetch(connection, "freshness")[0],
        }
