"""Hears what people did in the trackers: acknowledged, snoozed, closed, won't fix, deleted. The others are told.

An issue that was just told something isn't listened to before its tracker had time to settle: what a list shows of it
may be from before. What people do there in the meantime is heard by the next run.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.responses import Response, ResponseError, Verb, respond
from streamwarden.tickets.routes import file_again
from streamwarden.tickets.sinks.contract import Issue, Sink, TrackerDown

SNOOZE = timedelta(days=7)  # how long a snooze without an end in the tracker keeps a ticket quiet

log = logging.getLogger(__name__)


def listen(engine: sa.Engine, sink: Sink, now: datetime | None = None) -> int:
    """Takes over what people did in a tracker. Returns how many tickets changed."""
    now = now or datetime.now(UTC)
    values = {"tracker": sink.name, "now": now, "settled": now - sink.settles}
    with engine.connect() as connection:
        tickets = connection.execute(_HEARD, values).mappings().all()
    changed = 0
    for ticket in tickets:
        try:
            issue = sink.look(ticket["external_key"], ticket["fingerprint"])
        except TrackerDown:
            raise
        except StreamwardenError as error:  # one issue that can't be read holds up no other
            log.warning("%s: %s", sink.name, error)
            continue
        try:
            with engine.begin() as connection:
                changed += _hear(connection, ticket, issue, now)
        except ResponseError as error:  # it was answered elsewhere since it was read here
            log.info("%s: %s", sink.name, error)
    return changed


def _hear(connection: sa.Connection, ticket: sa.RowMapping, issue: Issue | None, now: datetime) -> bool:
    if issue is None:
        if ticket["state"] == "open":
            file_again(connection, ticket["ticket_id"], ticket["tracker"])
        return bool(ticket["state"] == "open")
    _note(connection, ticket, issue)
    meant = _meant(ticket, issue, now)
    if meant is not None:
        said = Response(meant[0], "a person", ticket["tracker"], until=meant[1])
        respond(connection, ticket["fingerprint"], said, now)
    return meant is not None


def _note(connection: sa.Connection, ticket: sa.RowMapping, issue: Issue) -> None:
    if (issue.key, issue.url, issue.state) != (ticket["external_key"], ticket["external_url"], ticket["heard"]):
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


def _meant(ticket: sa.RowMapping, issue: Issue, now: datetime) -> tuple[Verb, datetime | None] | None:
    """What a person said by an issue's state, and until when; none: nothing that isn't known."""
    is_open, muted = ticket["state"] == "open", ticket["muted"]
    match issue.state:
        case "wont_fix" if muted != "wont_fix":
            return "wont_fix", None
        case "closed" if is_open:
            return "close", None
        case "snoozed" if is_open and muted is None:
            return "snooze", issue.until or now + SNOOZE
        case "open" if muted == "wont_fix":
            return "unmute", None
        case "open" | "acknowledged" if muted == "snoozed" and ticket["heard"] == "snoozed":
            return "unmute", None
        case "acknowledged" if is_open and ticket["acknowledged_by"] is None:
            return "acknowledge", None
    return None


_HEARD = sa.text("""
    select t.*, i.tracker, i.external_key, i.external_url, i.state as heard
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
