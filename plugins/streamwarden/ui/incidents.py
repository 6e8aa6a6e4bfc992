"""Data of the page of an incident: root cause, downstream effects with evidence, history, and recent changes."""

from __future__ import annotations

import re

from streamwarden.base.hours import HOUR
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import render
from streamwarden.ui.links import UnknownError
from streamwarden.ui.pages import _fetch, _strip, _warehouse, response_data, unexplained

MAX_WEIGHED, MIN_HOURS, MAX_HOURS = 60, 12, 72


def incident(fingerprint: str) -> Row:
    """The incident that a finding's newest ticket belongs to."""
    if not re.fullmatch(r"[0-9a-f]{64}", fingerprint):
        raise UnknownError("The address does not name a finding: a fingerprint has 64 hexadecimal digits.")
    with _warehouse() as (connection, _):
        members = _fetch(connection, "incident", fingerprint=fingerprint)
        if not members:
            raise UnknownError("This finding has no ticket, and therefore no incident.")
        fingerprints = [row["fingerprint"] for row in members]
        newest = _fetch(connection, "newest_hour")[0]["hour"]
        began = min(row["opened_hour"] for row in members)
        ended = max((row["resolved_hour"] for row in members if row["resolved_hour"]), default=newest)
        last = newest if any(row["resolved_hour"] is None for row in members) else min(newest, ended + 2 * HOUR)
        hours = min(max(int((last - began) / HOUR) + 4, MIN_HOURS), MAX_HOURS)
        known: dict[str, list[Row]] = {}
        for row in _fetch(connection, "finding_strips", fingerprints=fingerprints, newest=last, hours=hours):
            known.setdefault(row["fingerprint"], []).append(row)
        weighed = _fetch(connection, "incident_weighed", fingerprints=fingerprints, newest=last)
        inside = [row for row in weighed if row["effect"] in fingerprints]
        # The most likely cause of each.
        outside = list({row["effect"]: row for row in reversed(weighed) if row["effect"] not in fingerprints}.values())
        paths = {key for row in inside if row["cause"] in fingerprints for key in row["path"]}
        is_known = ask(connection, "tickets/gathered_before", hour=began)[0]["is_known"]
        resources = list({row["resource"] for row in members} | paths)
        return {
            "place": "findings",
            "asked": fingerprint,
            "root_finding": members[0],
            "unexplained": unexplained(connection, members[0], members[0]["firing_hour"]),
            "members": [
                row | {"strip": _strip(last, hours, known.get(row["fingerprint"], []))} for row in members
            ],
            "hours": hours,
            "last": last,
            "weighed": inside[:MAX_WEIGHED],
            "refused": [row | {"why": render.ruled_out(row)} for row in outside[:MAX_WEIGHED]],
            "changes": [render.change(row) for row in _fetch(connection, "changes", hour=began, resources=resources)],
            "unchanged": render.UNCHANGED if is_known else render.UNKNOWN,
            "tickets": _fetch(connection, "finding_tickets", fingerprint=fingerprints[0])[:1],
            **response_data(connection, fingerprints, next(row["fingerprint"] for row in members if row["has_issue"])),
        }  # fmt: skip
