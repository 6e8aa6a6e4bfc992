"""Reads responses of people from the trackers: acknowledged, snoozed, closed, won't fix, deleted.

An issue that was just updated is not read before its tracker had time to settle, since lists may show its former state.
The next run reads it. Other trackers of the ticket are notified.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.responses import MAX_SNOOZE, Response, ResponseError, Verb, respond
from streamwarden.tickets.routes import file_again
from streamwarden.tickets.sinks.contract import Issue, Sink, TrackerDown

SNOOZE = timedelta(days=7)  # how long a snooze without an end in the tracker keeps a ticket quiet

log = logging.getLogger(__name__)


def listen(engine: sa.Engine, sink: Sink, now: datetime | None = None) -> int:
    """Applies responses that people gave in a tracker. Returns the number of tickets that changed."""
    now = now or datetime.now(UTC)
    values = {"tracker": sink.name, "now": now, "settled": now - sink.settles}
    with engine.connect() as connection:
        tickets = connection.execute(_ISSUES, values).mappings().all()
    changed = 0
    for ticket in tickets:
        try:
            issue = sink.look(ticket["external_key"], ticket["fingerprint"])
        except TrackerDown:
            raise
        except StreamwardenError as error:  # an unreadable issue does not block the others
            log.warning("%s: %s", sink.name, error)
            continue
        try:
            with engine.begin() as connection:
                changed += _apply_state(connection, ticket, issue, now)
        except ResponseError as error:  # somebody responded elsewhere since it was read
            log.info("%s: %s", sink.name, error)
    return changed


def _apply_state(connection: sa.Connection, ticket: sa.RowMapping, issue: Issue | None, now: datetime) -> bool:
    if issue is None:
        if ticket["state"] == "open":
            file_again(connection, ticket["ticket_id"], ticket["tracker"])
        return bool(ticket["state"] == "open")
    _store_state(connection, ticket, issue)
    found = _response_of(ticket, issue, now)
    if found is not None:
        response = Response(found[0], "a person", ticket["tracker"], until=found[1])
        respond(connection, ticket["fingerprint"], response, now)
    return found is not None


def _store_state(connection: sa.Connection, ticket: sa.RowMapping, issue: Issue) -> None:
    if (issue.key, issue.url, issue.state) != (ticket["external_key"], ticket["external_url"], ticket["known_state"]):
        connection.execute(
            sa.text(
                "update tickets.issue set external_key = :key, external_url = :url, state = :state"
                " where ticket_id = :id and tracker = :tracker"
            ),
            {
                "id": ticket["ticket_id"], "tracker": ticket["tracker"],
                "key": issue.key, "url": issue.url, "state": issue.state,
            },
        )  # fmt: skip


def _response_of(ticket: sa.RowMapping, issue: Issue, now: datetime) -> tuple[Verb, datetime | None] | None:
    """The response that an issue's state stands for, and the end of a snooze; None: nothing new."""
    is_open, muted = ticket["state"] == "open", ticket["muted"]
    match issue.state:
        case "wont_fix" if muted != "wont_fix":
            return "wont_fix", None
        case "closed" if is_open:
            return "close", None
        case "snoozed" if is_open and muted is None:
            return "snooze", min(issue.until or now + SNOOZE, now + MAX_SNOOZE)
        case "open" if muted == "wont_fix":
            return "unmute", None
        case "open" | "acknowledged" if muted == "snoozed" and ticket["known_state"] == "snoozed":
            return "unmute", None
        case "acknowledged" if is_open and ticket["acknowledged_by"] is None:
            return "acknowledge", None
    return None


_ISSUES = sa.text("""
    select t.*, i.tracker, i.external_key, i.external_url, i.state as known_state
    from tickets.issue as i
    inner join tickets.ticket as t on i.ticket_id = t.ticket_id
    where
      i.tracker = :tracker and i.external_key is not null and t.summary_ticket_id is null
      and (t.state = 'open' or t.muted = 'wont_fix')
      and (i.attempted_at > :settled and i.attempted_at <= :now) is not true
      and not exists (
        select from tickets.ticket as n where n.fingerprint = t.fingerprint and n.ticket_id > t.ticket_id
      )
      and not exists (
        select from tickets.change as c
        where
          c.ticket_id = i.ticket_id and c.change_id > i.delivered_change_id
          and coalesce(c.tracker, i.tracker) = i.tracker
      )
    order by t.ticket_id""")
