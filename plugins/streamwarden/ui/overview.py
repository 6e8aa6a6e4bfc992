"""Data of the overview: counts by severity, open incidents, clusters and applications by worst state, and freshness."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from streamwarden.base.hours import HOUR
from streamwarden.store.queries import Row
from streamwarden.ui.mine import mine
from streamwarden.ui.pages import STALE_AFTER, STRIP_HOURS, _fetch, _strip, _warehouse

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

MAX_INCIDENTS, MAX_TILES = 8, {"cluster": 5, "application": 11}


def overview(page: int = 1, owners: Sequence[str] = (), user: BaseUser | None = None) -> Row:
    """The overview.

    Args:
        page: page of the open incidents, from 1.
        owners: only findings, incidents, and applications of these owners; empty: all.
        user: the login, for the link Mine.
    """
    wanted = list(owners) or None
    with _warehouse() as (connection, config):
        summary = _fetch(connection, "newest_hour")[0]
        if wanted:
            summary |= _fetch(connection, "owner_counts", owner=wanted)[0]
        newest = summary["hour"] or datetime.now(UTC)
        skip = (page - 1) * MAX_INCIDENTS
        incidents = _fetch(connection, "open_incidents", most=MAX_INCIDENTS, skip=skip, owner=wanted)
        tiles: dict[str, list[Row]] = {kind: [] for kind in MAX_TILES}
        for row in _fetch(connection, "tiles", owner=wanted):
            tiles[row["kind"]].append(row)
        fingerprints = [row["fingerprint"] for row in incidents]
        strips: dict[str, list[Row]] = {}
        hours: dict[str, Any] = {"newest": newest, "hours": STRIP_HOURS}
        for row in _fetch(connection, "finding_strips", fingerprints=fingerprints, **hours):
            strips.setdefault(row["fingerprint"], []).append(row)
        return {
            "place": "overview",
            "owners": list(owners),
            "filters": urlencode({"owner": list(owners)}, doseq=True),
            "mine": mine(config, user),
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
