"""Reasons and root causes of filed tickets, from the warehouse: the tracker shows them in sentences only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa
from rich.markup import escape
from rich.table import Table

from demo.faults import Injected
from demo.score import Ticket

VERDICTS = sa.text("""
select
  t.fingerprint,
  e.reason,
  root.detector as root_detector,
  root.resource_name as root_resource
from tickets.ticket as t
left join detect.evaluation as e
  on t.last_firing_hour = e.hour and t.detector = e.detector and t.fingerprint = e.fingerprint
inner join tickets.ticket as carrier on coalesce(t.summary_ticket_id, t.ticket_id) = carrier.ticket_id
inner join tickets.ticket as root on coalesce(carrier.root_ticket_id, carrier.ticket_id) = root.ticket_id
where t.state = 'open' and t.fingerprint = any(:fingerprints)
""")


def with_verdicts(connection: sa.Connection, tickets: Sequence[Ticket]) -> list[Ticket]:
    """The tickets with the reason of their finding and the root cause of their incident.

    A ticket that the warehouse does not know has no reason, and no root cause.
    """
    asked = {"fingerprints": [ticket.fingerprint for ticket in tickets]}
    known = {row.fingerprint: row for row in connection.execute(VERDICTS, asked)}
    return [
        replace(ticket, reason=row.reason, root=(row.root_detector, row.root_resource))
        if (row := known.get(ticket.fingerprint))
        else ticket
        for ticket in tickets
    ]


def compared(truth: Sequence[Injected], tickets: Sequence[Ticket]) -> Table:
    """A row per injected fault and ticket that is about it: reason and root cause, expected and found."""
    table = Table("fault", "reason", "found", "root cause", "found", box=None)
    for line in truth:
        for ticket in [ticket for ticket in tickets if ticket.explains(line)] or [None]:
            wanted = [line.fault, " or ".join(line.reasons)], f"{line.detector} {line.resource}"
            if ticket is None:
                table.add_row(*wanted[0], "[red]no ticket", wanted[1], "[red]no ticket")
                continue
            reason, root = ticket.reason or "none", escape(" ".join(ticket.root).strip() or "none")
            table.add_row(
                *wanted[0], _marked(reason, ticket.has_right_reason(line)), wanted[1],
                _marked(root, ticket.has_right_root(line)),
            )  # fmt: skip
    return table


def _marked(text: str, is_right: bool) -> str:
    return text if is_right else f"[red]{text}"
