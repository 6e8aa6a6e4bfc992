"""Hears what people did in the trackers: acknowledged, snoozed, closed, won't fix, deleted. The others are told."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.tickets.muting import close_as_wont_fix
from streamwarden.tickets.plan import Action, plan_change, update_ticket
from streamwarden.tickets.routes import file_again
from streamwarden.tickets.sinks.contract import Issue, Sink, TrackerDown
from streamwarden.words.readable import moment

SNOOZE = timedelta(days=7)  # how long a snooze without an end in the tracker keeps a ticket quiet

log = logging.getLogger(__name__)


def listen(engine: sa.Engine, sink: Sink, now: datetime | None = None) -> int:
    """Takes over what people did in a tracker. Returns how many tickets changed."""
    now = now or datetime.now(UTC)
    with engine.connect() as connection:
        tickets = connection.execute(_HEARD, {"tracker": sink.name}).mappings().all()
    changed = 0
    for ticket in tickets:
        try:
            issue = sink.look(ticket["external_key"], ticket["fingerprint"])
        except TrackerDown:
            raise
        except StreamwardenError as error:  # one issue that can't be read holds up no other
            log.warning("%s: %s", sink.name, error)
            continue
        with engine.begin() as connection:
            if issue is not None:
                _note(connection, ticket, issue)
                changed += _take_over(connection, ticket, issue, now)
            elif ticket["state"] == "open":
                file_again(connection, ticket["ticket_id"], sink.name)
                changed += 1
    return changed


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


def _take_over(connection: sa.Connection, ticket: sa.RowMapping, issue: Issue, now: datetime) -> bool:
    is_open, hour, where = ticket["state"] == "open", start_of_hour(now), ticket["tracker"]
    if issue.state == "wont_fix" and ticket["muted"] != "wont_fix":
        close_as_wont_fix(connection, ticket["ticket_id"], now)
        _tell_others(connection, ticket, "close", hour, f"Won't be fixed, says {where}.")
    elif issue.state == "closed" and is_open:
        update_ticket(
            connection, ticket["ticket_id"], state="closed", close_reason="person", closed_hour=hour,
        )  # fmt: skip
        _tell_others(connection, ticket, "close", hour, f"Closed by a person in {where}.")
    elif issue.state == "snoozed" and is_open and ticket["muted"] is None:
        until = issue.until or now + SNOOZE
        update_ticket(connection, ticket["ticket_id"], muted="snoozed", muted_until=until)
        _tell_others(connection, ticket, "comment", hour, f"Snoozed until {moment(until)} by a person in {where}.")
    elif issue.state == "open" and ticket["muted"] == "wont_fix":
        update_ticket(connection, ticket["ticket_id"], muted=None)
    elif issue.state == "acknowledged" and is_open and ticket["heard"] != "acknowledged":
        _tell_others(connection, ticket, "comment", hour, f"Acknowledged by a person in {where}.")
    else:
        return False
    return True


def _tell_others(connection: sa.Connection, ticket: sa.RowMapping, action: Action, hour: datetime, note: str) -> None:
    others = connection.execute(
        sa.text("select tracker from tickets.issue where ticket_id = :id and tracker <> :tracker order by tracker"),
        {"id": ticket["ticket_id"], "tracker": ticket["tracker"]},
    )
    for tracker in others.scalars().all():
        plan_change(connection, ticket["ticket_id"], action, hour, note, tracker=tracker)


_HEARD = sa.text("""
    select t.*, i.tracker, i.external_key, i.external_url, i.state as heard
    from tickets.issue as i
    inner join tickets.ticket as t on i.ticket_id = t.ticket_id
    where
      i.tracker = :tracker and i.external_key is not null and t.summary_ticket_id is null
      and (t.state = 'open' or t.muted = 'wont_fix')
      and not exists (
        select from tickets.change as c
        where
          c.ticket_id = i.ticket_id and c.change_id > i.told_change_id
          and coalesce(c.tracker, i.tracker) = i.tracker
      )
    order by t.ticket_id""")
