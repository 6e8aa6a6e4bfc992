"""Shared parts of a reconcile: the run, its plan, and functions that store changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from streamwarden.base.config import Config
from streamwarden.detectors import Detector, Finding
from streamwarden.detectors.resources import KINDS
from streamwarden.rendering.readable import SEVERITIES

STORM = "storm"  # `detector` of a summary ticket
RECONCILING = 7063  # advisory lock of reconcile and of responses
Action = Literal["create", "comment", "close", "reopen"]
Answered = Literal["acknowledged", "snoozed"]
Ticket = dict[str, Any]
"""A row of tickets.ticket."""
LAYERS = list(KINDS)
PLACE = ("cause_ticket_id", "role", "summary_ticket_id", "root_ticket_id", "issue_title", "issue_severity")
"""Columns with the place of a ticket in the tracker."""


@dataclass
class Plan:
    """Decisions of a reconcile; numbers of tickets."""

    opened: int = 0
    reopened: int = 0
    commented: int = 0
    closed: int = 0
    in_storm: int = 0
    still_open: int = 0

    def __str__(self) -> str:
        storm = f" ({self.in_storm} of them in an alert storm)" if self.in_storm else ""
        return (
            f"{self.opened} opened{storm}, {self.reopened} reopened, {self.commented} commented,"
            f" {self.closed} closed, {self.still_open} open"
        )


@dataclass(frozen=True)
class FiringFinding:
    """A finding in the newest hour in which it was firing."""

    hour: datetime
    finding: Finding

    @property
    def severity(self) -> str:
        """Severity of the finding: critical, warning, or info."""
        return self.finding.severity or "info"

    @property
    def has_ended(self) -> bool:
        """Whether a detector that looks back found evidence (metric `evidence_until`) only before that hour."""
        until = self.finding.metrics.get("evidence_until")
        return until is not None and datetime.fromisoformat(until) < self.hour


@dataclass(frozen=True)
class Closing:
    """Why a finding is resolved."""

    hour: datetime
    reason: str
    """`healthy` or `deleted`."""
    ok_message: str | None


@dataclass
class Run:
    """What all steps of one reconcile share."""

    connection: sa.Connection
    config: Config
    detectors: Mapping[str, Detector]
    now: datetime
    newest: datetime
    plan: Plan = field(default_factory=Plan)
    firing: dict[str, FiringFinding] = field(default_factory=dict)
    """Every finding that should be open, in its newest firing hour, by fingerprint."""
    present: set[str] = field(default_factory=set)
    """Findings with evidence in the newest hour that their detector evaluated: only these open, reopen, or move."""
    fresh: set[int] = field(default_factory=set)
    """Tickets that this run opened; nothing is delivered yet."""
    reopened: set[int] = field(default_factory=set)
    news: dict[int, str] = field(default_factory=dict)
    """News of a finding itself, by its ticket id."""
    was_severity: dict[int, str] = field(default_factory=dict)
    """Former severity, by ticket id, where it changed."""
    risen: set[int] = field(default_factory=set)
    """Tickets with findings of a higher severity than before."""
    moved: dict[int, Ticket] = field(default_factory=dict)
    """Tickets with a new place in the tracker or a new cause."""
    changes: dict[datetime, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Changes in the three hours before an hour; filled on demand."""
    over: dict[int, Closing] = field(default_factory=dict)
    """Tickets with resolved findings."""


def plan_change(
    connection: sa.Connection, ticket_id: int, action: Action, hour: datetime, note: str | None,
    firing: FiringFinding | None = None, since: datetime | None = None, tracker: str | None = None,
    incident: Mapping[str, list[str]] | None = None, answer: Answered | None = None,
) -> None:  # fmt: skip
    """Stores a change to deliver: a note, a finding, or both.

    Args:
        tracker: the only tracker that gets it; None: all that have the ticket.
        since: since when the finding is firing.
        incident: lists of lines, as `incidents.lists` returns them.
        answer: the response that the tracker sets as its own state.
    """
    finding = firing.finding if firing else None
    connection.execute(
        _CHANGE,
        {
            "ticket_id": ticket_id,
            "action": action,
            "hour": hour,
            "body": note,
            "finding": finding.to_row() if finding else None,
            "reason": finding.reason if finding else None,
            "since": since,
            "tracker": tracker,
            "incident": dict(incident) if incident else None,
            "response": answer,
        },
    )


def update_ticket(connection: sa.Connection, ticket_id: int, **values: Any) -> None:
    """Sets columns of a ticket."""
    table = sa.table("ticket", *(sa.column(name) for name in ("ticket_id", "updated_at", *values)),
                     schema="tickets")  # fmt: skip
    connection.execute(
        sa.update(table).where(table.c.ticket_id == ticket_id).values(**values, updated_at=sa.func.now())
    )


def insert_tickets(connection: sa.Connection, tickets: Sequence[Mapping[str, Any]]) -> list[int]:
    """Adds tickets that are open, in one statement; returns their ids, in their order."""
    rows = json.dumps(list(tickets), default=datetime.isoformat)
    return list(connection.execute(_TICKETS, {"rows": rows}).scalars())


def place_tickets(connection: sa.Connection, tickets: Sequence[Ticket]) -> None:
    """Writes places and causes of tickets in one statement."""
    rows = json.dumps([{name: ticket[name] for name in ("ticket_id", *PLACE)} for ticket in tickets])
    connection.execute(_PLACE, {"rows": rows})


def layer(ticket: Ticket) -> int:
    """Layer of the ticket's resource; the deepest is 0."""
    kind = (ticket["resource"] or "").partition(":")[0]
    return LAYERS.index(kind) if kind in LAYERS else len(LAYERS)


def rank(severity: str) -> int:
    """Rank of a severity; 0 is critical."""
    return SEVERITIES.index(severity)


def rises(before: str, after: str) -> bool:
    """Whether the severity rises."""
    return rank(after) < rank(before)


_CHANGE = sa.text("""
    insert into tickets.change (ticket_id, action, hour, body, finding, reason, since, tracker, incident, response)
    select ticket_id, :action, :hour, :body, :finding, :reason, :since, :tracker, :incident, :response
    from (select ticket_id from tickets.ticket where ticket_id = :ticket_id for update) as locked""").bindparams(
    sa.bindparam("finding", type_=JSONB(none_as_null=True)), sa.bindparam("incident", type_=JSONB(none_as_null=True))
)
_TICKETS = sa.text("""
    insert into tickets.ticket
      (fingerprint, detector, resource_name, identity, severity, title, state, opened_hour, last_firing_hour,
       previous_ticket_id, resource, owner)
    select
      t.fingerprint, t.detector, t.resource_name, t.identity, t.severity, t.title, 'open', t.opened_hour,
      t.last_firing_hour, t.previous_ticket_id, t.resource, t.owner
    from jsonb_array_elements(cast(:rows as jsonb)) with ordinality as r (row, number)
    cross join lateral jsonb_populate_record(cast(null as tickets.ticket), r.row) as t
    order by r.number
    returning ticket_id""")
_PLACE = sa.text("""
    update tickets.ticket as t set
      cause_ticket_id = r.cause_ticket_id, role = r.role, summary_ticket_id = r.summary_ticket_id,
      root_ticket_id = r.root_ticket_id, issue_title = r.issue_title, issue_severity = r.issue_severity,
      updated_at = now()
    from jsonb_populate_recordset(cast(null as tickets.ticket), cast(:rows as jsonb)) as r
    where t.ticket_id = r.ticket_id""")
