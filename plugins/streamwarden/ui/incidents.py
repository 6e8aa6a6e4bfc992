"""The page of an incident: its root, what follows from it and why we think so, its hours, what changed just before."""

from __future__ import annotations

import re

from streamwarden.base.hours import HOUR
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import render
from streamwarden.ui.pages import UnknownError, _ask, _strip, _warehouse, answering, unexplained

MOST_WEIGHED, LEAST_HOURS, MOST_HOURS = 60, 12, 72


def incident(fingerprint: str) -> Row:
    """The incident that a finding's newest ticket belongs to."""
    if not re.fullmatch(r"[0-9a-f]{64}", fingerprint):
        raise UnknownError("The address doesn't name a finding: it needs 64 hexadecimal digits.")
    with _warehouse() as (connection, _):
        members = _ask(connection, "incident", fingerprint=fingerprint)
        if not members:
            raise UnknownError("This finding has no ticket, so it belongs to no incident.")
        prints = [row["fingerprint"] for row in members]
        newest = _ask(connection, "newest_hour")[0]["hour"]
        began = min(row["opened_hour"] for row in members)
        ended = max((row["resolved_hour"] for row in members if row["resolved_hour"]), default=newest)
        last = newest if any(row["resolved_hour"] is None for row in members) else min(newest, ended + 2 * HOUR)
        hours = min(max(int((last - began) / HOUR) + 4, LEAST_HOURS), MOST_HOURS)
        known: dict[str, list[Row]] = {}
        for row in _ask(connection, "finding_strips", fingerprints=prints, newest=last, hours=hours):
            known.setdefault(row["fingerprint"], []).append(row)
        weighed = _ask(connection, "incident_weighed", fingerprints=prints, newest=last)
        inside = [row for row in weighed if row["effect"] in prints]
        # The likeliest of the causes that each was held against.
        outside = list({row["effect"]: row for row in reversed(weighed) if row["effect"] not in prints}.values())
        between = {key for row in inside if row["cause"] in prints for key in row["path"]}
        is_known = ask(connection, "tickets/gathered_before", hour=began)[0]["is_known"]
        resources = list({row["resource"] for row in members} | between)
        return {
            "place": "findings",
            "asked": fingerprint,
            "root_finding": members[0],
            "unexplained": unexplained(connection, members[0], members[0]["alarm_hour"]),
            "members": [
                row | {"strip": _strip(last, hours, known.get(row["fingerprint"], []))} for row in members
            ],
            "hours": hours,
            "last": last,
            "weighed": inside[:MOST_WEIGHED],
            "refused": [row | {"why": render.refusal(row)} for row in outside[:MOST_WEIGHED]],
            "changes": [render.change(row) for row in _ask(connection, "changes", hour=began, resources=resources)],
            "unchanged": render.UNCHANGED if is_known else render.UNKNOWN,
            "tickets": _ask(connection, "finding_tickets", fingerprint=prints[0])[:1],
            **answering(connection, prints, next(row["fingerprint"] for row in members if row["has_issue"])),
        }  # fmt: skip
