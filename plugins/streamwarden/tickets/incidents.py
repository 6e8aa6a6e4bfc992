"""One issue per incident: opens, joins, parts and closes them, and says what trackers are to be told.

An incident stands in the place that one of its tickets has in the tracker; the others name it (`summary_ticket_id`).
The older issue is kept, people work in it: its title becomes the root's, its severity that of the worst.
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

LINES = 50  # findings that a text names; the page has them all
CHANGES = 10


def settle(run: Run) -> None:
    """Brings issues in line with what belongs together."""
    prints = run.connection.execute(sa.text("select fingerprint from tickets.ticket where state = 'open'")).scalars()
    evidence = gather(run, list(prints))
    tickets = read(run, set(evidence.accepted.values()))
    left: dict[int, list[Ticket]] = defaultdict(list)
    kept: list[_Kept] = []
    new: list[Group] = []
    for group in groups(run, tickets, evidence):
        if group.issues:
            kept.append(_keep(run, group, tickets, left))
        elif group.place is not None:
            for ticket in group.members:
                _write(run, ticket, summary_ticket_id=group.place)
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
    for one in kept:  # when it is known what left: an issue is told once
        _tell(run, one, left.pop(one.group.issues[0]["ticket_id"], []), tickets, evidence)
    _close(run)


@dataclass(frozen=True)
class _Kept:
    """An incident that has an issue, and what it was before this run."""

    group: Group
    joined: list[Ticket]
    was_root: int
    was_severity: str


def _keep(run: Run, group: Group, tickets: Tickets, left: dict[int, list[Ticket]]) -> _Kept:
    """An incident that has an issue goes on in it."""
    carrier, root = group.issues[0], group.root
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
        _merge(run, merged, carrier, root)
    return _Kept(group, joined, was_root, was_severity)


def _tell(run: Run, kept: _Kept, gone: Sequence[Ticket], tickets: Tickets, evidence: Evidence) -> None:
    """Tells an issue what joined and what left, what its cause is, how severe it is."""
    group, was_root, was_severity = kept.group, kept.was_root, kept.was_severity
    carrier, root = group.issues[0], group.root
    if len(group.members) == 1 and carrier["ticket_id"] in run.over:
        return  # it is closed in this run, and that is told
    severity = carrier["issue_severity"] or carrier["severity"]
    is_back = carrier["ticket_id"] in run.reopened
    notes = ["It is back."] if is_back else []
    others = [ticket for ticket in kept.joined if ticket is not root]
    if root["ticket_id"] != was_root:
        before = tickets.any(was_root)
        is_over = before is None or before["state"] == "closed" or not is_live(before)
        notes.append(f"{'Its cause is over, and this goes on' if is_over else 'Its cause is known now'}:")
    else:
        if was_severity != severity and not is_back:  # of the whole: what one part adds to or takes from it
            notes.append(f"Severity changed from {was_severity} to {severity}.")
        if root["ticket_id"] in run.news:
            notes.append(run.news[root["ticket_id"]])
    muted = carrier if carrier["muted"] else root if root["muted"] else None
    if muted is not None:
        others = [ticket for ticket in others if ticket["severity"] == "critical"]
        risen = [t for t in group.members if t["ticket_id"] in run.risen and t["severity"] == "critical"]
        told = list({ticket["ticket_id"]: ticket for ticket in (*others, *risen)}.values())
        notes, others = [f"{clean(muted['title'])} is snoozed, but this is critical:"] if told else [], told
    about_root = bool(notes) and muted is None
    if others:
        lines = render.listed([line(run, ticket, tickets, evidence) for ticket in others], LINES)
        notes.append("\n".join(["This follows from it:", *(f"- {one}" for one in lines)]))
    if gone:
        names = render.listed([clean(ticket["title"]) for ticket in gone], LINES)
        notes.append("\n".join(["This has a ticket of its own now:", *(f"- {name}" for name in names)]))
    if not notes:
        return
    plan_change(
        run.connection, carrier["ticket_id"], "reopen" if is_back else "comment", _hour(run, root), "\n\n".join(notes),
        run.firing.get(root["fingerprint"]) if about_root else None, root["opened_hour"],
        incident=lists(run, group, tickets, evidence) if root["ticket_id"] != was_root else None,
    )  # fmt: skip
    if not is_back:
        run.plan.commented += 1


def _merge(run: Run, merged: Ticket, carrier: Ticket, root: Ticket) -> None:
    """Two issues turned out to be one incident: the younger is closed."""
    if merged["ticket_id"] in run.reopened:
        return  # its issue is closed already
    where = carrier["external_url"] or render.finding_url(run.config, carrier["fingerprint"])
    note = f"This follows from {clean(root['title'])}: {where}"
    plan_change(run.connection, merged["ticket_id"], "close", run.newest, note)


def _open(
    run: Run, group: Group, tickets: Tickets, evidence: Evidence, left: dict[int, list[Ticket]]
) -> None:  # fmt: skip
    """A new issue, in the place of the root."""
    root = group.root
    notes = []
    for ticket in group.members:
        if (before := tickets.carrier(ticket)) is not None:
            left[before["ticket_id"]].append(ticket)
        if ticket is root and ticket["summary_ticket_id"] is not None:
            notes.append(_farewell(run, ticket, tickets))
        if ticket is not root:
            _write(run, ticket, summary_ticket_id=root["ticket_id"], **_NO_ISSUE)
    if quiet := tickets.muted.get(evidence.accepted.get(root["fingerprint"], "")):
        notes.append(f"It follows from {clean(quiet['title'])}, which is muted, but it is critical.")
    _write(run, root, summary_ticket_id=None, **_of_issue(group))
    alarm = run.firing[root["fingerprint"]]
    plan_change(
        run.connection, root["ticket_id"], "reopen" if root["was_filed"] else "create", alarm.hour,
        "\n\n".join(notes) or None, alarm, root["opened_hour"], incident=lists(run, group, tickets, evidence),
    )  # fmt: skip


def _farewell(run: Run, ticket: Ticket, tickets: Tickets) -> str:
    """Why it no longer stands where it stood."""
    cause = tickets.any(ticket["cause_ticket_id"]) or tickets.any(ticket["summary_ticket_id"])
    if cause is None:
        return "It has a ticket of its own now."
    where = cause["external_url"] or render.finding_url(run.config, cause["fingerprint"])
    is_over = cause["state"] == "closed" or not is_live(cause)
    return f"It {'outlived its cause' if is_over else 'no longer follows from'} {clean(cause['title'])}: {where}"


def _close(run: Run) -> None:
    """Closes the issues in which nothing is in alarm any more, with the order in which things healed."""
    for ticket in run.connection.execute(_OVER).mappings().all():
        closing = run.over.get(ticket["ticket_id"])
        if closing is None:
            continue  # its detector isn't judged any more
        hour = max(closing.hour, ticket["last_closed"] or closing.hour)
        update_ticket(
            run.connection, ticket["ticket_id"], state="closed", closed_hour=hour, close_reason=closing.message,
        )  # fmt: skip
        run.plan.closed += 1
        detector = run.detectors[ticket["detector"]]
        body = render.closing(detector, ticket["resource_name"], closing.hour, closing.message, closing.said)
        healed = sorted([(closing.hour, ticket["title"]), *zip(ticket["hours"], ticket["titles"], strict=True)])
        if len(healed) > 1:
            body += "\n\n" + render.healed(healed, LINES)
        plan_change(run.connection, ticket["ticket_id"], "close", hour, body)


def lists(run: Run, group: Group, tickets: Tickets, evidence: Evidence) -> dict[str, list[str]]:
    """What follows from the root, and what was held against the incident and doesn't: a line each."""
    inside = {ticket["fingerprint"] for ticket in group.members}
    effects = [ticket for ticket in group.members if ticket is not group.root]
    between = _things_between(inside, evidence)
    effects.sort(key=lambda t: (t["resource"] not in between, layer(t), t["opened_hour"], t["title"], t["ticket_id"]))
    refused: dict[str, str] = {}
    for (effect, cause), row in evidence.weighed.items():
        other = tickets.by_print.get(effect)
        if cause in inside and effect not in inside and other is not None and effect not in refused:
            url = other["external_url"] or render.finding_url(run.config, effect)
            refused[effect] = f"{clean(other['title'])}: {render.refusal(row)} {url}"
    unexplained = _unexplained(run, group.root, tickets, evidence)
    before = _before(run, group, evidence)
    if not before and (effects or unexplained):
        is_known = ask(run.connection, "tickets/gathered_before", hour=_began(group))[0]["is_known"]
        before = [render.UNCHANGED if is_known else render.UNKNOWN]
    return {
        "follows": render.listed([line(run, ticket, tickets, evidence) for ticket in effects], LINES),
        "refused": render.listed(list(refused.values()), LINES),
        "before": render.listed(before, CHANGES),
        "unexplained": unexplained,
    }


def _unexplained(run: Run, root: Ticket, tickets: Tickets, evidence: Evidence) -> list[str]:
    """Where a root usually follows from something: that no cause is known, and what was held against it."""
    alarm = run.firing.get(root["fingerprint"])
    if alarm is None or root["fingerprint"] in evidence.accepted:
        return []
    tested = [
        f"{clean(cause['title'])}: {render.refusal(row, of_cause=True)}"
        for (effect, fingerprint), row in evidence.weighed.items()
        if effect == root["fingerprint"] and (cause := tickets.by_print.get(fingerprint)) is not None
    ]
    reason = alarm.finding.reason
    silent = missing_sources(run.connection, run.detectors, root["detector"], reason, alarm.hour)
    said = render.unexplained(run.detectors, root["detector"], reason, is_tested=bool(tested), silent=silent)
    return [said, *render.listed(tested, LINES)] if said else []


def _before(run: Run, group: Group, evidence: Evidence) -> list[str]:
    """What changed in the three hours until it began, on its things and on those between them."""
    inside = {ticket["fingerprint"] for ticket in group.members}
    resources = {ticket["resource"] for ticket in group.members} | _things_between(inside, evidence)
    began = _began(group)
    if began not in run.changes:
        rows = run.connection.execute(sa.text("select * from public.changes(:hour)"), {"hour": began}).mappings()
        run.changes[began] = [dict(row) for row in rows]
    return [render.change(row) for row in run.changes[began] if row["resource"] in resources]


def _things_between(inside: set[str], evidence: Evidence) -> set[str]:
    """The resources on the paths from causes to the places where they act, within an incident."""
    return {
        resource
        for (effect, cause), row in evidence.weighed.items()
        if effect in inside and cause in inside
        for resource in row["path"]
    }


def _began(group: Group) -> datetime:
    return min(ticket["opened_hour"] for ticket in group.members)


def line(run: Run, ticket: Ticket, tickets: Tickets, evidence: Evidence) -> str:
    """A finding that follows from another: what it is, and why we think so."""
    cause = tickets.any(ticket["new"]["cause_ticket_id"])
    weighed = evidence.weighed.get((ticket["fingerprint"], cause["fingerprint"])) if cause else None
    alarm = run.firing.get(ticket["fingerprint"])
    said = f" {alarm.finding.message}" if alarm else ""
    why = f" {render.reason(weighed)}" if weighed else ""
    return f"{clean(ticket['title'])}.{said}{why}"


def _of_issue(group: Group) -> dict[str, object]:
    """What the ticket that has the issue says in the name of all."""
    carrier = group.issues[0] if group.issues else group.root
    is_own = group.root is carrier
    return {
        "root_ticket_id": None if is_own else group.root["ticket_id"],
        "issue_title": None if is_own else group.root["title"],
        "issue_severity": min((t["severity"] for t in group.members), key=rank) if len(group.members) > 1 else None,
    }


def _write(run: Run, ticket: Ticket, **values: object) -> None:
    """Says where it stands; `settle` writes what is different."""
    changed = {name: value for name, value in {**ticket["new"], **values}.items() if ticket[name] != value}
    if changed:
        ticket.update(changed)
        run.moved[ticket["ticket_id"]] = ticket


def _root_first(group: Group) -> list[Ticket]:
    return [group.root, *(ticket for ticket in group.members if ticket is not group.root)]


def _hour(run: Run, ticket: Ticket) -> datetime:
    alarm = run.firing.get(ticket["fingerprint"])
    return alarm.hour if alarm else run.newest


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
