"""Groups open findings into incidents: by accepted causes, by manual links, and by the incident that they were in.

A finding joins the incident of its accepted cause. It stays in its incident while an open finding there is a possible
cause, while data is missing that could rule the cause out, for two hours after its cause is resolved, and without
evidence of its own in the newest hour. Splits and links by people always apply.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa

from streamwarden.tickets.evidence import Evidence
from streamwarden.tickets.plan import STORM, Run, Ticket, layer

GRACE = timedelta(hours=2)  # how long an effect stays in the issue after its cause is resolved


@dataclass
class Group:
    """The tickets of an incident, its root, and its issues in the tracker."""

    members: list[Ticket]
    root: Ticket
    issues: list[Ticket]
    """Members with their own issue; the one that is kept comes first."""
    place: int | None = None
    """Without issues: id of the ticket that represents all of them, an alert storm or the ticket of a muted cause."""


@dataclass
class Tickets:
    """All open tickets except alert storms, by id."""

    rows: dict[int, Ticket]
    elsewhere: dict[int, Ticket]
    """Other tickets that they refer to: closed tickets and alert storms."""
    muted: dict[str, Ticket]
    """The newest, closed ticket of each muted finding, by fingerprint."""
    fresh: set[int]
    by_print: dict[str, Ticket] = field(init=False)

    def __post_init__(self) -> None:
        self.by_print = {row["fingerprint"]: row for row in self.rows.values()}

    def any(self, ticket_id: int | None) -> Ticket | None:
        """The ticket with this id, open or referred to; None: there is none."""
        return self.rows.get(ticket_id or 0) or self.elsewhere.get(ticket_id or 0)

    def carrier(self, ticket: Ticket) -> Ticket | None:
        """The open ticket that has the issue for this ticket; None: the ticket has its own."""
        return self.rows.get(ticket["summary_ticket_id"] or 0)

    def has_issue(self, ticket: Ticket) -> bool:
        """Whether the ticket has its own issue from an earlier run."""
        return ticket["summary_ticket_id"] is None and ticket["ticket_id"] not in self.fresh


def read(run: Run, accepted: set[str]) -> Tickets:
    """Tickets as they are after the rules for single findings; `accepted`: fingerprints of causes."""
    rows = {row["ticket_id"]: dict(row) for row in run.connection.execute(_OPEN, {"storm": STORM}).mappings()}
    named = {
        row[key] for row in rows.values() for key in ("summary_ticket_id", "cause_ticket_id", "previous_ticket_id")
    } - {None, *rows}
    found = run.connection.execute(_NAMED, {"ids": list(named)}).mappings()
    muted = run.connection.execute(_MUTED, {"prints": list(accepted), "now": run.now}).mappings()
    return Tickets(
        rows,
        {row["ticket_id"]: dict(row) for row in found},
        {row["fingerprint"]: dict(row) for row in muted},
        run.fresh,
    )


def is_live(ticket: Ticket) -> bool:
    """Whether its own finding is firing."""
    return ticket["resolved_hour"] is None


def groups(run: Run, tickets: Tickets, evidence: Evidence) -> list[Group]:
    """All incidents, each with its root."""
    leads = {ticket_id: ticket_id for ticket_id in tickets.rows}

    def lead(ticket_id: int) -> int:
        while leads[ticket_id] != ticket_id:
            leads[ticket_id] = ticket_id = leads[leads[ticket_id]]
        return ticket_id

    causes: dict[int, int] = {}
    for ticket in tickets.rows.values():
        if is_live(ticket):
            cause = _cause(ticket, tickets, evidence)
            if cause is not None:
                causes[ticket["ticket_id"]] = cause["ticket_id"]
            for other in _kin(run, ticket, cause, tickets, evidence):
                leads[lead(ticket["ticket_id"])] = lead(other["ticket_id"])
    for pair, link in evidence.manual_links.items():
        both = [tickets.by_print[one]["ticket_id"] for one in pair if one in tickets.by_print]
        if link.is_linked and len(both) == 2:
            leads[lead(both[0])] = lead(both[1])
    found: dict[int, list[Ticket]] = defaultdict(list)
    for ticket_id, ticket in tickets.rows.items():
        found[lead(ticket_id)].append(ticket)
    return [_group(run, members, causes, tickets, evidence) for members in found.values()]


def _cause(ticket: Ticket, tickets: Tickets, evidence: Evidence) -> Ticket | None:
    """The open ticket of its accepted cause; None if its present incident still has a possible cause."""
    own = ticket["fingerprint"]
    cause = tickets.by_print.get(evidence.accepted.get(own, ""))
    if cause is None or not is_live(cause) or evidence.are_split(own, cause["fingerprint"]):
        return None
    carrier = tickets.carrier(ticket)
    if carrier is None or cause in (carrier, ticket) or tickets.carrier(cause) is carrier:
        return cause
    return None if any(_near(ticket, carrier, tickets, evidence)) else cause


def _kin(
    run: Run, ticket: Ticket, cause: Ticket | None, tickets: Tickets, evidence: Evidence
) -> Iterator[Ticket]:  # fmt: skip
    """Tickets with which it shares an issue."""
    carrier = tickets.carrier(ticket)
    if cause is not None:
        yield cause
        if carrier is None or not (cause is carrier or tickets.carrier(cause) is carrier):
            return
    if carrier is None:
        return
    yield from _near(ticket, carrier, tickets, evidence)
    if not evidence.are_split(ticket["fingerprint"], carrier["fingerprint"]) and _stays(
        run, ticket, carrier, tickets, evidence
    ):
        yield carrier


def _near(ticket: Ticket, carrier: Ticket, tickets: Tickets, evidence: Evidence) -> Iterator[Ticket]:
    """Tickets of the same issue that are possible causes or effects of this ticket."""
    for fingerprint in evidence.near[ticket["fingerprint"]]:
        other = tickets.by_print.get(fingerprint)
        if (
            other is not None
            and is_live(other)
            and (other is carrier or tickets.carrier(other) is carrier)
            and not evidence.are_split(ticket["fingerprint"], fingerprint)
        ):
            yield other


def _stays(run: Run, ticket: Ticket, carrier: Ticket, tickets: Tickets, evidence: Evidence) -> bool:
    """Whether a ticket stays in its incident without a cause that is strong enough to be notified."""
    if ticket["fingerprint"] not in run.present:
        return True  # its evidence has ended, so it gets no issue of its own
    if carrier["root_ticket_id"] == ticket["ticket_id"]:
        return not is_live(carrier) or not evidence.is_complete(ticket["fingerprint"])
    cause = tickets.any(ticket["cause_ticket_id"])
    over = (cause["closed_hour"] or cause["resolved_hour"]) if cause else None
    if over is not None:
        return bool(run.newest < over + GRACE)
    return not evidence.is_complete(ticket["fingerprint"])


def _group(
    run: Run, members: list[Ticket], causes: dict[int, int], tickets: Tickets, evidence: Evidence
) -> Group:  # fmt: skip
    ids = {ticket["ticket_id"] for ticket in members}
    issues = sorted(
        (ticket for ticket in members if tickets.has_issue(ticket)),
        key=lambda ticket: (ticket["ticket_id"] in run.reopened, ticket["ticket_id"]),
    )
    root = _root(members, issues, {one: cause for one, cause in causes.items() if one in ids}, tickets)
    if _is_new_incident(run, root, issues, tickets):
        issues = []
    for ticket in members:
        cause = causes.get(ticket["ticket_id"])
        if cause is None and ticket is not root:  # without a cause now, it keeps its former one
            known = ticket["cause_ticket_id"]
            cause = known if known in ids and known != ticket["ticket_id"] else root["ticket_id"]
        role = "follows" if ticket is not root else "root" if len(members) > 1 else "alone"
        ticket["new"] = {"cause_ticket_id": cause if ticket is not root else None, "role": role}
    place = None if issues else next(iter(_places(run, members, tickets, evidence)), None)
    return Group(members, root, issues, place)


def _is_new_incident(run: Run, root: Ticket, issues: list[Ticket], tickets: Tickets) -> bool:
    """Whether only findings that fire again had an issue, and they follow from a cause that was no part of it."""
    reopened = {ticket["ticket_id"] for ticket in issues}
    if not reopened or not reopened <= run.reopened or root["ticket_id"] in reopened:
        return False
    before = tickets.any(root["previous_ticket_id"])
    return before is None or before["summary_ticket_id"] not in reopened


def _root(
    members: list[Ticket], issues: list[Ticket], causes: dict[int, int], tickets: Tickets
) -> Ticket:  # fmt: skip
    """The root: a ticket without a cause in the group. The former root is kept, else the one with most effects."""
    by_id = {ticket["ticket_id"]: ticket for ticket in members}
    known = by_id.get(issues[0]["root_ticket_id"] or issues[0]["ticket_id"]) if issues else None
    if known is not None and known["ticket_id"] not in causes:
        return known
    below: dict[int, int] = defaultdict(int)
    for ticket in members:
        top, steps = ticket["ticket_id"], 0
        while top in causes and steps < len(members):
            top, steps = causes[top], steps + 1
        below[top] += 1
    tops = [ticket for ticket in members if ticket["ticket_id"] not in causes and is_live(ticket)] or members
    return min(
        tops, key=lambda t: (-below[t["ticket_id"]], layer(t), t["opened_hour"], t["ticket_id"])
    )  # fmt: skip


def _places(run: Run, members: list[Ticket], tickets: Tickets, evidence: Evidence) -> Iterator[int]:
    """Ids of tickets that represent members without an issue: of an alert storm, or of a muted cause."""
    for ticket in members:
        there = tickets.elsewhere.get(ticket["summary_ticket_id"] or 0)
        if there is not None and there["detector"] == STORM and there["state"] == "open":
            yield there["ticket_id"]
    news = run.fresh | run.risen
    if any(ticket["severity"] == "critical" and ticket["ticket_id"] in news for ticket in members):
        return  # a critical finding is notified, even if its cause is muted
    for ticket in members:
        there = tickets.elsewhere.get(ticket["summary_ticket_id"] or 0)
        firing = run.firing.get(ticket["fingerprint"])
        if there is not None and there["state"] == "closed":
            is_muted = there["muted"] == "wont_fix" or (there["muted"] and there["muted_until"] > run.now)
            is_past = there["close_reason"] == "person" and firing is not None and firing.hour <= there["closed_hour"]
            if is_muted or is_past:
                yield there["ticket_id"]
        if (cause := evidence.accepted.get(ticket["fingerprint"])) in tickets.muted:
            yield tickets.muted[cause]["summary_ticket_id"] or tickets.muted[cause]["ticket_id"]


_OPEN = sa.text("""
    select t.*, filed.external_url, exists (select from tickets.issue as i where i.ticket_id = t.ticket_id) as was_filed
    from tickets.ticket as t
    left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
    where t.state = 'open' and t.detector <> :storm order by t.ticket_id""")
_NAMED = sa.text("""
    select t.*, filed.external_url from tickets.ticket as t
    left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
    where t.ticket_id = any(:ids)""")
_MUTED = sa.text("""
    select * from (
      select distinct on (fingerprint) * from tickets.ticket where fingerprint = any(:prints)
      order by fingerprint, ticket_id desc
    ) as newest
    where state = 'closed' and (muted = 'wont_fix' or (muted = 'snoozed' and muted_until > :now))""")
