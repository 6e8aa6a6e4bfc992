"""Alert storms: beyond a cap of new issues per run all share one, except each detector's first critical one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import chain

import sqlalchemy as sa

from streamwarden.rendering.readable import clean, moment
from streamwarden.tickets import render
from streamwarden.tickets.plan import STORM, Run, Ticket, insert_tickets, layer, plan_change, rank, update_ticket

Group = Sequence[Ticket]
"""Tickets that share an issue, the root first."""


def part(run: Run, groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """Which new incidents get an issue of their own; the first critical one of each detector always does."""
    by_weight = sorted(groups, key=_weight)
    firsts: dict[str, Group] = {}
    for group in by_weight:
        if _worst(group) == "critical":
            firsts.setdefault(group[0]["detector"], group)
    others = [group for group in by_weight if firsts.get(group[0]["detector"]) is not group]
    room = max(run.config.tickets.max_new_per_run - len(firsts), 0)
    return [*firsts.values(), *others[:room]], others[room:]


def summarize(run: Run, groups: Sequence[Group]) -> None:
    """Puts all of these into the one alert storm ticket of the hour."""
    if not groups:
        return
    members = list(chain(*groups))
    found = [run.firing[ticket["fingerprint"]].finding for ticket in members]
    body = render.storm(run.config, run.detectors, found, run.newest, len(groups))
    fingerprint = hashlib.sha256(json.dumps([STORM, run.newest.isoformat()]).encode()).hexdigest()
    summary_id = run.connection.execute(
        sa.text("select ticket_id from tickets.ticket where fingerprint = :f and state = 'open'"), {"f": fingerprint}
    ).scalar()
    if summary_id is not None:
        plan_change(run.connection, summary_id, "comment", run.newest, body)
    else:
        summary = {
            "fingerprint": fingerprint,
            "detector": STORM,
            "resource_name": f"hour {moment(run.newest)}",
            "identity": {"hour": run.newest.isoformat()},
            "severity": _worst(members),
            "title": f"Alert storm: {len(members)} more findings in the hour {moment(run.newest)}",
            "opened_hour": run.newest,
            "last_firing_hour": run.newest,
        }
        (summary_id,) = insert_tickets(run.connection, [summary])
        plan_change(run.connection, summary_id, "create", run.newest, body)
    run.connection.execute(
        sa.text("update tickets.ticket set summary_ticket_id = :summary where ticket_id = any(:ids)"),
        {"summary": summary_id, "ids": [ticket["ticket_id"] for ticket in members]},
    )
    run.plan.in_storm += len(members)


def settle(run: Run) -> None:
    """Comments on rises in severity within an alert storm, and closes storms with only resolved findings."""
    for summary_id, members in _risen(run).items():
        more = f"\n- and {len(members) - 50} more" if len(members) > 50 else ""
        note = "\n".join(f"- {line}" for line in members[:50]) + more
        plan_change(run.connection, summary_id, "comment", run.newest, note)
        run.plan.commented += 1
    calm = run.connection.execute(
        sa.text("""
            select s.ticket_id, max(m.closed_hour) as closed_hour, count(*) as members
            from tickets.ticket as s
            inner join tickets.ticket as m on m.summary_ticket_id = s.ticket_id
            where s.state = 'open' and s.detector = :storm
            group by s.ticket_id having bool_and(m.state = 'closed')"""),
        {"storm": STORM},
    ).all()
    for ticket_id, hour, members in calm:
        update_ticket(run.connection, ticket_id, state="closed", closed_hour=hour, close_reason="healthy")
        plan_change(
            run.connection,
            ticket_id,
            "close",
            hour,
            f"All {members} findings of this alert storm are resolved.",
        )


def _risen(run: Run) -> dict[int, list[str]]:
    """Rises in severity, a line each, by the ticket id of their alert storm; snoozed findings are left out."""
    rows = run.connection.execute(
        sa.text("""
            select m.* from tickets.ticket as m
            inner join tickets.ticket as s on m.summary_ticket_id = s.ticket_id and s.detector = :storm
            where m.ticket_id = any(:ids) order by m.ticket_id"""),
        {"storm": STORM, "ids": list(run.risen)},
    ).mappings()
    lines: dict[int, list[str]] = {}
    for row in rows:
        firing = run.firing[row["fingerprint"]]
        line = f"{clean(row['resource_name'])} is now {firing.severity}: {firing.finding.message}"
        lines.setdefault(row["summary_ticket_id"], []).append(line)
    return lines


def _worst(group: Group) -> str:
    return min((ticket["severity"] for ticket in group), key=rank)


def _weight(group: Group) -> tuple[object, ...]:
    root = group[0]
    return rank(_worst(group)), -len(group), layer(root), root["opened_hour"], root["fingerprint"]
