"""Data of the page of an incident: root cause, downstream effects with evidence, history, and recent changes."""

from __future__ import annotations

import re

import sqlalchemy as sa

from streamwarden.base.hours import HOUR
from streamwarden.charts.changes import change_text, changes_of
from streamwarden.store.queries import Row, ask
from streamwarden.tickets import render
from streamwarden.ui.chain import chain
from streamwarden.ui.links import UnknownError, key_columns
from streamwarden.ui.pages import CLOSE_LABELS, RESPONSE_LABELS, _fetch, _strip, _warehouse, response_data, unexplained

MAX_MEMBERS, MAX_WEIGHED, MIN_HOURS, MAX_HOURS = 40, 60, 12, 72
MAX_SIMILAR, MAX_SIMILAR_CHANGES = 5, 3
CHANGED_BEFORE, CHANGED_AFTER = 2 * HOUR, 3 * HOUR
"""Changes this long before and after the last firing hour may have resolved a finding."""


def incident(fingerprint: str) -> Row:
    """The incident that a finding's newest ticket belongs to."""
    if not re.fullmatch(r"[0-9a-f]{64}", fingerprint):
        raise UnknownError("The address does not name a finding: a fingerprint has 64 hexadecimal digits.")
    with _warehouse() as (connection, _):
        members = _fetch(connection, "incident", fingerprint=fingerprint, most=MAX_MEMBERS)
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
        # The finding with the tracker's issue, for responses.
        carrier = next((row["fingerprint"] for row in members if row["has_issue"]), fingerprints[0])
        return {
            "place": "findings",
            "asked": fingerprint,
            "root_finding": members[0],
            "unexplained": unexplained(connection, members[0], members[0]["firing_hour"]),
            "members": [
                row | {"strip": _strip(last, hours, known.get(row["fingerprint"], []))} for row in members
            ],
            "effects": members[0]["total"] - 1,
            "chain": chain(members, inside),
            "similar": _similar(connection, members[0]),
            "close_labels": CLOSE_LABELS,
            "hours": hours,
            "last": last,
            "weighed": inside[:MAX_WEIGHED],
            "refused": [row | {"why": render.ruled_out(row)} for row in outside[:MAX_WEIGHED]],
            "changes": [render.change(row) for row in _fetch(connection, "changes", hour=began, resources=resources)],
            "unchanged": render.UNCHANGED if is_known else render.UNKNOWN,
            "tickets": _fetch(connection, "finding_tickets", fingerprint=fingerprints[0])[:1],
            **response_data(connection, fingerprints, carrier),
        }  # fmt: skip


def _similar(connection: sa.Connection, root: Row) -> list[Row]:
    """Closed incidents that resemble the one of a root finding, and `closed_by`: texts of what closed each."""
    asked = {"fingerprint": root["fingerprint"], "reason": root["reason"], "most": MAX_SIMILAR}
    return [
        row | {"likeness": _likeness(row), "closed_by": _closed_by(connection, row)}
        for row in _fetch(connection, "incident_similar", **asked)
    ]


def _likeness(row: Row) -> str:
    if row["is_same_finding"]:
        return "same resource"
    same = [word for word, is_same in (("reason", row["is_same_reason"]), ("owner", row["is_same_owner"])) if is_same]
    return f"same detector, {' and '.join(same)}" if same else "same detector"


def _closed_by(connection: sa.Connection, row: Row) -> list[str]:
    """How the ticket was closed, the last response, and changes of the resource around its last firing hour."""
    texts = [CLOSE_LABELS.get(row["close_reason"], row["close_reason"] or "closed")]
    if row["verb"]:
        said = f": {row['words']}" if row["words"] else ""
        texts.append(f"{RESPONSE_LABELS[row['verb']]} by {row['who']}{said}")
    kind, _, rest = (row["resource"] or "").partition(":")
    try:
        columns = key_columns(kind, rest)
    except UnknownError:  # the summary of an alert storm has no resource
        return texts
    start, finish = row["last_firing_hour"] - CHANGED_BEFORE, row["last_firing_hour"] + CHANGED_AFTER
    known = _fetch(connection, f"hours/{kind}", start=start, finish=finish, **columns)
    return texts + [change_text(change) for change in changes_of(known)[-MAX_SIMILAR_CHANGES:]]
