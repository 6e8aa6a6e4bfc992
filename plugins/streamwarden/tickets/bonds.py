"""What people say of two findings: one incident, or not one. It is never undone by the machine."""

from __future__ import annotations

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.plan import Ticket
from streamwarden.words.readable import clean


def split(engine: sa.Engine, ticket_id: int, *, who: str, why: str) -> list[str]:
    """Takes a finding out of its incident, with what follows from it. Returns the titles of those that stay there.

    Raises:
        StreamwardenError: it shares its ticket with nothing.
    """
    with engine.begin() as connection:
        members = [dict(row) for row in connection.execute(_INCIDENT, {"id": ticket_id}).mappings()]
        this = next((row for row in members if row["ticket_id"] == ticket_id), None)
        gone = _below(ticket_id, members)
        stay = [row for row in members if row["ticket_id"] not in gone]
        if this is None or not stay:
            title = clean(this["title"]) if this else f"ticket {ticket_id}"
            raise StreamwardenError(f"{title}: shares its ticket with nothing that it could be split from.")
        for other in stay:
            _say(connection, this["fingerprint"], other["fingerprint"], is_joined=False, who=who, why=why)
    return [clean(row["title"]) for row in stay]


def join(engine: sa.Engine, one: Ticket, other: Ticket, *, who: str, why: str) -> None:
    """Makes one incident of two findings.

    Raises:
        StreamwardenError: they are the same finding.
    """
    if one["fingerprint"] == other["fingerprint"]:
        raise StreamwardenError(f"{clean(one['title'])}: is one finding, there is nothing to join.")
    with engine.begin() as connection:
        _say(connection, one["fingerprint"], other["fingerprint"], is_joined=True, who=who, why=why)


def _below(ticket_id: int, members: list[Ticket]) -> set[int]:
    """A ticket and what follows from it."""
    found, more = {ticket_id}, True
    while more:
        below = {row["ticket_id"] for row in members if row["cause_ticket_id"] in found} - found
        found, more = found | below, bool(below)
    return found


def _say(connection: sa.Connection, one: str, other: str, *, is_joined: bool, who: str, why: str) -> None:
    first, second = sorted([one, other])
    values = {"one": first, "other": second, "is_joined": is_joined, "who": clean(who), "why": clean(why)}
    connection.execute(_BOND, values)


_INCIDENT = sa.text("""
    select t.* from tickets.ticket as t
    inner join tickets.ticket as this on this.ticket_id = :id
    where
      t.state = 'open' and coalesce(t.summary_ticket_id, t.ticket_id) = coalesce(this.summary_ticket_id, this.ticket_id)
    order by t.ticket_id""")
_BOND = sa.text("""
    insert into tickets.bond (one, other, is_joined, who, why) values (:one, :other, :is_joined, :who, :why)
    on conflict (one, other) do update set
      is_joined = excluded.is_joined, who = excluded.who, why = excluded.why, said_at = now()""")
