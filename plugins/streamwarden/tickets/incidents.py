"""One issue per incident: opens, merges, splits, and closes issues, and plans their notifications.

The issue of an incident belongs to one of its tickets; the others name that ticket (`summary_ticket_id`). When
incidents merge, the older issue is kept. Its title becomes that of the root cause, its severity the highest of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from streamwarden.rendering.readable import clean
from streamwarden.store.queries import ask
from streamwarden.tickets import render, storms
from streamwarden.tickets.evidence import Evidence, gather, missing_sources
from streamwarden.tickets.groups import Group, Tickets, groups, is_live, read
from streamwarden.tickets.plan import Run, Ticket, layer, place_tickets, plan_change, rank, update_ticket

LINES = 50  # findings that a notification names
CHANGES = 10


def settle(run: Run) -> None:
    """Updates the issues of all incidents."""
    prints = run.connection.execute(sa.text("select fingerprint from tickets.ticket where state = 'open'")).scalars()
    evidence = gather(run, list(prints))
    tickets = read(run, set(evidence.accepted.values()))
    left: dict[int, list[Ticket]] = defaultdict(list)
    kept: list[_Kept] = []
    new: list[Group] = []
    for group in groups(run, tickets, evidence):
        if group.issues:
            kept.append(_keep(run, group, tickets, evidence, left))
        elif group.place is not None:
            for ticket in group.members:
                _write(run, ticket, summary_ticket_id=group.place)
        elif _is_over(run, group, tickets):
            for ticket in group.members:
                _write(run, ticket)
        else:
            new.append(group)
    by_root = {group.root["ticket_id"]: group for group in new}
    alone, storm = storms.part(run, [_root_first(group) for group in new])
    for members in sorted(alone, key=lambda found: (layer(found[0]), found[0]["opened_hour"], found[0]["ticket_id"])):
        _open(run, by_root[members[0]["ticket_id"]], tickets, evidence, left)
    for members in storm:
        for ticket in members:
            _write(run, ticket)
    place_tickets(run.connection, list(run.moved.values()))
    storms.summarize(run, storm)
    for one in kept:  # after all moves are known: one notification per issue
        _notify(run, one, left.pop(one.group.issues[0]["ticket_id"], []), tickets, evidence)
    _close(run)


def _is_over(run: Run, group: Group, tickets: Tickets) -> bool:
    """Whether nothing in an incident without an issue has evidence in the newest hour; what people split is none."""
    return not any(ticket["fingerprint"] in run.present or tickets.carrier(ticket) for ticket in group.members)


@dataclass(frozen=True)
class _Kept:
    """An incident that has an issue, and what it was before this run."""

    group: Group
    joined: list[Ticket]
    was_root: int
    was_severity: str


def _keep(
    run: Run, group: Group, tickets: Tickets, evidence: Evidence, left: dict[int, list[Ticket]]
) -> _Kept:  # fmt: skip
    """Keeps an incident in its issue."""
    carrier = group.issues[0]
    was_root = carrier["root_ticket_id"] or carrier["ticket_id"]
    was_severity: str = carrier["issue_severity"] or run.was_severity.get(carrier["ticket_id"]) or carrier["severity"]
    joined = [t for t in group.members if t is not carrier and t["summary_ticket_id"] != carrier["ticket_id"]]
    for ticket in joined:
        if (before := tickets.carrier(ticket)) is not None and before not in group.members:
            left[before["ticket_id"]].append(ticket)
        _write(run, ticket, summary_ticket_id=carrier["ticket_id"], **_NO_ISSUE)
    for ticket in group.members:
        if ticket is not carrier and ticket not in joined:
            _write(run, ticket)
    _write(run, carrier, **_of_issue(group))
    for merged in group.issues[1:]:
        _merge(run, merged, group, evidence)
    return _Kept(group, joined, was_root, was_severity)


def _notify(run: Run, kept: _Kept, gone: Sequence[Ticket], tickets: Tickets, evidence: Evidence) -> None:
    """Plans a comment on what joined or left an incident, on a new root cause, and on a new severity."""
    group, was_root, was_severity = kept.group, kept.was_root, kept.was_severity
    carrier, root = group.issues[0], group.root
    if len(group.members) == 1 and carrier["ticket_id"] in run.over:
        return  # it is closed in this run, with a note
    severity = carrier["issue_severity"] or carrier["severity"]
    is_back = carrier["ticket_id"] in run.reopened
    notes = ["The finding is firing again."] if is_back else []
    others = [ticket for ticket in kept.joined if ticket is not root]
    if root["ticket_id"] != was_root:
        before = tickets.any(was_root)
        is_over = before is None or before["state"] == "closed" or not is_live(before)
        notes.append(
            "The former root cause is resolved. This finding is still firing:" if is_over else "Root cause found:"
        )
    else:
        if was_severity != severity and not is_back:  # of the whole: what one part adds to or takes from it
            notes.append(f"Severity changed from {was_severity} to {severity}.")
        if root["ticket_id"] in run.news:
            notes.append(run.news[root["ticket_id"]])
    muted = carrier if carrier["muted"] else root if root["muted"] else None
    if muted is not None:
        others = [ticket for ticket in others if ticket["severity"] == "critical"]
        risen = [t for t in group.members if t["ticket_id"] in run.risen and t["severity"] == "critical"]
        critical = list({ticket["ticket_id"]: ticket for ticket in (*others, *risen)}.values())
        notes = [f"{clean(muted['title'])} is snoozed, but a finding of the incident is critical:"] if critical else []
        others = critical
    about_root = bool(notes) and muted is None
    if others:
        linked = [ticket for ticket in others if _linked_by(ticket, group, evidence)]
        for heading, some in (
            ("New downstream effects:", [ticket for ticket in others if ticket not in linked]),
            ("Linked manually:", linked),
        ):
            lines = render.listed([line(run, ticket, group, tickets, evidence) for ticket in some], LINES)
            if lines:
                notes.append("\n".join([heading, *(f"- {one}" for one in lines)]))
    if gone:
        names = render.listed([clean(ticket["title"]) for ticket in gone], LINES)
        notes.append("\n".join(["Moved to a separate ticket:", *(f"- {name}" for name in names)]))
    if not notes:
        return
    plan_change(
        run.connection, carrier["ticket_id"], "reopen" if is_back else "comment", _hour(run, root), "\n\n".join(notes),
        run.firing.get(root["fingerprint"]) if about_root else None, root["opened_hour"],
        incident=lists(run, group, tickets, evidence) if root["ticket_id"] != was_root else None,
    )  # fmt: skip
    if not is_back:
        run.plan.commented += 1


def _merge(run: Run, merged: Ticket, group: Group, evidence: Evidence) -> None:
    """Two issues are one incident, by evidence or by a manual link: the younger issue is closed."""
    carrier, root = group.issues[0], group.root
    if merged["ticket_id"] in run.reopened:
        return  # its issue is closed already
    where = carrier["external_url"] or render.finding_url(run.config, carrier["fingerprint"])
    who = _linked_by(merged, group, evidence)
    how = f"Linked manually by {clean(who)} to" if who else "Merged: this is a downstream effect of"
    note = f"{how} {clean(root['title'])}: {where}"
    plan_change(run.connection, merged["ticket_id"], "close", run.newest, note)


def _open(
    run: Run, group: Group, tickets: Tickets, evidence: Evidence, left: dict[int, list[Ticket]]
) -> None:  # fmt: skip
    """Plans a new issue for the root cause."""
    root = group.root
    notes = []
    for ticket in group.members:
        if (before := tickets.carrier(ticket)) is not None:
            left[before["ticket_id"]].append(ticket)
        if ticket is root and ticket["summary_ticket_id"] is not None:
            notes.append(_left_note(run, ticket, tickets))
        if ticket is not root:
            _write(run, ticket, summary_ticket_id=root["ticket_id"], **_NO_ISSUE)
    if quiet := tickets.muted.get(evidence.accepted.get(root["fingerprint"], "")):
        notes.append(f"This finding is critical. Its cause is muted: {clean(quiet['title'])}.")
    _write(run, root, summary_ticket_id=None, **_of_issue(group))
    firing = run.firing[root["fingerprint"]]
    plan_change(
        run.connection, root["ticket_id"], "reopen" if root["was_filed"] else "create", firing.hour,
        "\n\n".join(notes) or None, firing, root["opened_hour"], incident=lists(run, group, tickets, evidence),
    )  # fmt: skip


def _left_note(run: Run, ticket: Ticket, tickets: Tickets) -> str:
    """Why a ticket left its former incident."""
    cause = tickets.any(ticket["cause_ticket_id"]) or tickets.any(ticket["summary_ticket_id"])
    if cause is None:
        return "Moved to a separate ticket."
    where = cause["external_url"] or render.finding_url(run.config, cause["fingerprint"])
    is_over = cause["state"] == "closed" or not is_live(cause)
    what = "Still firing after its cause was resolved:" if is_over else "No longer a downstream effect of"
    return f"{what} {clean(cause['title'])}: {where}"


def _close(run: Run) -> None:
    """Closes issues without firing findings; the note has the order in which they were resolved."""
    for ticket in run.connection.execute(_OVER).mappings().all():
        closing = run.over.get(ticket["ticket_id"])
        if closing is None:
            continue  # its detector is no longer evaluated
        hour = max(closing.hour, ticket["last_closed"] or closing.hour)
        update_ticket(
            run.connection, ticket["ticket_id"], state="closed", closed_hour=hour, close_reason=closing.reason,
        )  # fmt: skip
        run.plan.closed += 1
        detector = run.detectors[ticket["detector"]]
        body = render.closing(detector, ticket["resource_name"], closing.hour, closing.reason, closing.ok_message)
        resolved = sorted([(closing.hour, ticket["title"]), *zip(ticket["hours"], ticket["titles"], strict=True)])
        if len(resolved) > 1:
            body += "\n\n" + render.resolution_order(resolved, LINES)
        plan_change(run.connection, ticket["ticket_id"], "close", hour, body)


def lists(run: Run, group: Group, tickets: Tickets, evidence: Evidence) -> dict[str, list[str]]:
    """Lines of an incident: `follows` (downstream effects), `refused` (ruled out), `before` (recent changes), and
    `unexplained` (no root cause)."""
    inside = {ticket["fingerprint"] for ticket in group.members}
    effects = [ticket for ticket in group.members if ticket is not group.root]
    between = _resources_between(inside, evidence)
    effects.sort(key=lambda t: (t["resource"] not in between, layer(t), t["opened_hour"], t["title"], t["ticket_id"]))
    refused: dict[str, str] = {}
    for (effect, cause), row in evidence.weighed.items():
        other = tickets.by_print.get(effect)
        if cause in inside and effect not in inside and other is not None and effect not in refused:
            url = other["external_url"] or render.finding_url(run.config, effect)
            refused[effect] = f"{clean(other['title'])}: {render.ruled_out(row)} {url}"
    unexplained = _unexplained(run, group.root, tickets, evidence)
    before = _before(run, group, evidence)
    if not before and (effects or unexplained):
        is_known = ask(run.connection, "tickets/gathered_before", hour=_began(group))[0]["is_known"]
        before = [render.UNCHANGED if is_known else render.UNKNOWN]
    return {
        "follows": render.listed([line(run, ticket, group, tickets, evidence) for ticket in effects], LINES),
        "refused": render.listed(list(refused.values()), LINES),
        "before": render.listed(before, CHANGES),
        "unexplained": unexplained,
    }


def _unexplained(run: Run, root: Ticket, tickets: Tickets, evidence: Evidence) -> list[str]:
    """Of a finding that usually has a cause: that none was found, then the causes ruled out, a line each."""
    firing = run.firing.get(root["fingerprint"])
    if firing is None or root["fingerprint"] in evidence.accepted:
        return []
    tested = [
        f"{clean(cause['title'])}: {render.ruled_out(row, of_cause=True)}"
        for (effect, fingerprint), row in evidence.weighed.items()
        if effect == root["fingerprint"] and (cause := tickets.by_print.get(fingerprint)) is not None
    ]
    reason = firing.finding.reason
    missing = missing_sources(
        run.connection, run.detectors, root["detector"], reason, firing.finding.resource.key, firing.hour
    )
    text = render.no_root_cause(
        run.detectors, root["detector"], reason,
        firing={one.finding.detector for one in run.firing.values()}, is_tested=bool(tested), missing=missing,
    )  # fmt: skip
    return [text, *render.listed(tested, LINES)] if text else []


def _before(run: Run, group: Group, evidence: Evidence) -> list[str]:
    """Changes of the incident's resources, and of those between them, in the three hours before it started."""
    inside = {ticket["fingerprint"] for ticket in group.members}
    resources = {ticket["resource"] for ticket in group.members} | _resources_between(inside, evidence)
    began = _began(group)
    if began not in run.changes:
        rows = run.connection.execute(sa.text("select * from public.changes(:hour)"), {"hour": began}).mappings()
        run.changes[began] = [dict(row) for row in rows]
    return [render.change(row) for row in run.changes[began] if row["resource"] in resources]


def _resources_between(inside: set[str], evidence: Evidence) -> set[str]:
    """Resources on the paths from causes to effects within an incident."""
    return {
        resource
        for (effect, cause), row in evidence.weighed.items()
        if effect in inside and cause in inside
        for resource in row["path"]
    }


def _began(group: Group) -> datetime:
    return min(ticket["opened_hour"] for ticket in group.members)


def line(run: Run, ticket: Ticket, group: Group, tickets: Tickets, evidence: Evidence) -> str:
    """A downstream effect: its title, its message, and the evidence for its cause or who linked it."""
    cause = tickets.any(ticket["new"]["cause_ticket_id"])
    weighed = evidence.weighed.get((ticket["fingerprint"], cause["fingerprint"])) if cause else None
    firing = run.firing.get(ticket["fingerprint"])
    who = _linked_by(ticket, group, evidence)
    how = f"(linked manually by {clean(who)})" if who else render.cause_evidence(weighed) if weighed else ""
    message = firing.finding.message if firing else ""
    return " ".join(filter(None, (f"{clean(ticket['title'])}.", message, how)))


def _linked_by(ticket: Ticket, group: Group, evidence: Evidence) -> str | None:
    """Who manually linked a finding to its incident; None: evidence linked it."""
    members = {other["fingerprint"] for other in group.members}
    if evidence.accepted.get(ticket["fingerprint"]) in members:
        return None
    links = (evidence.linked_by(ticket["fingerprint"], other) for other in sorted(members))
    return next(filter(None, links), None)


def _of_issue(group: Group) -> dict[str, object]:
    """Columns of the ticket with the issue that speak for the whole incident."""
    carrier = group.issues[0] if group.issues else group.root
    is_own = group.root is carrier
    return {
        "root_ticket_id": None if is_own else group.root["ticket_id"],
        "issue_title": None if is_own else group.root["title"],
        "issue_severity": min((t["severity"] for t in group.members), key=rank) if len(group.members) > 1 else None,
    }


def _write(run: Run, ticket: Ticket, **values: object) -> None:
    """Sets the place of a ticket; `settle` writes what changed."""
    changed = {name: value for name, value in {**ticket["new"], **values}.items() if ticket[name] != value}
    if changed:
        ticket.update(changed)
        run.moved[ticket["ticket_id"]] = ticket


def _root_first(group: Group) -> list[Ticket]:
    return [group.root, *(ticket for ticket in group.members if ticket is not group.root)]


def _hour(run: Run, ticket: Ticket) -> datetime:
    firing = run.firing.get(ticket["fingerprint"])
    return firing.hour if firing else run.newest


_NO_ISSUE = {"root_ticket_id": None, "issue_title": None, "issue_severity": None}
_OVER = sa.text("""
    select
      c.*,
      (select max(m.closed_hour) from tickets.ticket as m where m.summary_ticket_id = c.ticket_id) as last_closed,
      array(
        select m.closed_hour from tickets.ticket as m
        where m.summary_ticket_id = c.ticket_id and m.closed_hour >= c.opened_hour order by m.ticket_id
      ) as hours,
      array(
        select m.title from tickets.ticket as m
        where m.summary_ticket_id = c.ticket_id and m.closed_hour >= c.opened_hour order by m.ticket_id
      ) as titles
    from tickets.ticket as c
    where
      c.state = 'open' and c.summary_ticket_id is null and c.resolved_hour is not null
      and not exists (select from tickets.ticket as m where m.summary_ticket_id = c.ticket_id and m.state = 'open')
    order by c.ticket_id""")
