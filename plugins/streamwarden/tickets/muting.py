"""What people ask of tickets by hand: to see them, to have one quiet for a while or for good, to hear of it again."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.tickets.plan import STORM, plan_change, update_ticket
from streamwarden.words.readable import clean, moment


def listed(connection: sa.Connection) -> list[sa.RowMapping]:
    """Tickets that are open or muted, the newest of each finding; the worst and oldest first."""
    return list(connection.execute(_LISTED, {"storm": STORM}).mappings())


def find(connection: sa.Connection, start: str) -> sa.RowMapping:
    """The newest ticket of the finding whose fingerprint begins so.

    Raises:
        StreamwardenError: there is none, or there are several; one line.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{1,64}", start):
        raise StreamwardenError(
            f"'{start}': a fingerprint is hexadecimal digits; `streamwarden tickets list` shows how they begin."
        )
    found = connection.execute(_FOUND, {"start": start.lower(), "storm": STORM}).mappings().all()
    if not found:
        raise StreamwardenError(f"{start}: no ticket has such a fingerprint; `streamwarden tickets list` shows them.")
    if len(found) > 1:
        titles = "; ".join(f"{row['fingerprint'][:12]} {clean(row['title'])}" for row in found[:3])
        raise StreamwardenError(f"{start}: {len(found)} findings begin so, write more of it: {titles}.")
    return found[0]


def mute(
    engine: sa.Engine, ticket_id: int, *, until: datetime | None, who: str, why: str, now: datetime | None = None
) -> None:
    """Snoozes a ticket until a time, or for ever (won't fix: it is closed and stays so) when `until` is null.

    Raises:
        StreamwardenError: there is no such ticket, or the time is past.
    """
    now = now or datetime.now(UTC)
    if until is not None and until <= now:
        raise StreamwardenError(f"ticket {ticket_id}: the snooze would end at {moment(until)}, which is past.")
    said = f"{clean(who)}: {clean(why).rstrip('.')}."
    with engine.begin() as connection:
        ticket = _locked(connection, ticket_id)
        is_told = ticket["summary_ticket_id"] is None  # what stands in another's place has none in the tracker
        if until is not None:
            update_ticket(connection, ticket_id, muted="snoozed", muted_until=until)
            if is_told:
                text = f"Snoozed until {moment(until)} by {said} A rise in severity ends it earlier."
                plan_change(connection, ticket_id, "comment", start_of_hour(now), text)
        elif ticket["state"] == "open":
            close_as_wont_fix(connection, ticket_id, now)
            if is_told:
                plan_change(connection, ticket_id, "close", start_of_hour(now), f"Won't be fixed, says {said}")
        else:
            update_ticket(connection, ticket_id, muted="wont_fix", muted_until=None)


def unmute(engine: sa.Engine, ticket_id: int, *, who: str, now: datetime | None = None) -> None:
    """Lets a ticket be heard again: at once when it is open, else when its finding is in alarm.

    Raises:
        StreamwardenError: there is no such ticket, or it isn't muted.
    """
    now = now or datetime.now(UTC)
    with engine.begin() as connection:
        ticket = _locked(connection, ticket_id)
        if ticket["muted"] is None:
            raise StreamwardenError(f"ticket {ticket_id} ({clean(ticket['title'])}): isn't muted.")
        update_ticket(connection, ticket_id, muted=None, muted_until=None)
        if ticket["state"] == "open" and ticket["summary_ticket_id"] is None:
            text = f"No longer snoozed, says {clean(who)}."
            plan_change(connection, ticket_id, "reopen", start_of_hour(now), text)


def close_as_wont_fix(connection: sa.Connection, ticket_id: int, now: datetime) -> None:
    """Closes a ticket for good, as a person asked."""
    update_ticket(
        connection, ticket_id, state="closed", muted="wont_fix", muted_until=None,
        close_reason="wont_fix", closed_hour=start_of_hour(now),
    )  # fmt: skip


def _locked(connection: sa.Connection, ticket_id: int) -> sa.RowMapping:
    ticket = connection.execute(
        sa.text("select * from tickets.ticket where ticket_id = :id for update"), {"id": ticket_id}
    ).mappings().first()  # fmt: skip
    if ticket is None:
        raise StreamwardenError(f"ticket {ticket_id}: no such ticket; the table tickets.ticket has them.")
    return ticket


_NEWEST = """
    select distinct on (t.fingerprint) t.*, filed.external_url
    from tickets.ticket as t
    left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
    where t.detector <> :storm
    order by t.fingerprint, t.ticket_id desc"""
_LISTED = sa.text(f"""
    select * from ({_NEWEST}) as newest
    where state = 'open' or muted is not null
    order by muted is not null, public.severity_rank(severity), opened_hour""")  # noqa: S608
_FOUND = sa.text(f"""
    select * from ({_NEWEST}) as newest
    where starts_with(fingerprint, :start)
    order by fingerprint""")  # noqa: S608
