"""Responses of people to findings, on a page, by the command line, or in a tracker: stored, applied, and delivered.

Pages, CLI, and `listen` call `respond`; only this module knows the effect of each verb.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.rendering.readable import clean, is_storable, moment
from streamwarden.tickets.plan import RECONCILING, STORM, Action, Answered, Ticket, plan_change, update_ticket

Verb = Literal["acknowledge", "snooze", "wont_fix", "unmute", "close", "false_positive", "comment", "split", "link"]
VERBS: tuple[Verb, ...] = get_args(Verb)
PAGE, COMMAND_LINE, API = "the page", "the command line", "the API"
MAX_CHARACTERS = 2000
MAX_SNOOZE = timedelta(days=366)
"""A longer snooze is a won't fix that nobody sees."""
_WITH_REASON = ("false_positive", "comment", "split", "link")
_WITHOUT_TICKET = ("false_positive", "comment")


class ResponseError(StreamwardenError):
    """The response cannot be applied; nothing was changed."""


@dataclass(frozen=True)
class Response:
    """A response of a person to a finding."""

    verb: Verb
    who: str
    place: str
    """PAGE, COMMAND_LINE, API, or the tracker's name in the config."""
    words: str = ""
    until: datetime | None = None
    """End of a snooze."""
    other: str | None = None
    """Fingerprint of the finding to link it to."""

    @property
    def tracker(self) -> str | None:
        """The tracker in which the person responded; None: on a page, by the command line, or by the API."""
        return None if self.place in (PAGE, COMMAND_LINE, API) else self.place

    @property
    def author(self) -> str:
        """Who responded, and in which tracker."""
        return clean(self.who) + (f" in {self.tracker}" if self.tracker else "")

    @property
    def by(self) -> str:
        """Who responded and why, as the end of a sentence."""
        return f"{self.author}: {clean(self.words).rstrip('.')}." if clean(self.words) else f"{self.author}."


@dataclass(frozen=True)
class _Update:
    """The change to deliver to the trackers."""

    action: Action
    text: str
    state: Answered | None = None


def respond(connection: sa.Connection, fingerprint: str, response: Response, now: datetime | None = None) -> list[str]:
    """Applies a response to a finding, stores it, and plans its delivery to the trackers.

    Args:
        fingerprint: of the finding.
        now: the moment of the response (UTC); the present by default.

    Returns:
        Of a split: the titles of the findings that stay in the incident; else nothing.

    Raises:
        ResponseError: the response cannot be applied: the ticket, the reason, or the end of a snooze is missing.
    """
    now = now or datetime.now(UTC)
    # Waits for a running reconcile, which has read the former state; the timeout keeps a page from waiting forever.
    connection.execute(sa.text("select set_config('lock_timeout', '15s', true)"))
    connection.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": RECONCILING})
    finding = connection.execute(_FINDING, {"fingerprint": fingerprint}).mappings().first()
    if finding is None:
        raise ResponseError(f"{fingerprint[:12]}: no such finding.")
    _check(finding, response, now)
    values = {
        **{name: finding[name] for name in ("fingerprint", "detector", "ticket_id")}, "verb": response.verb,
        "who": clean(response.who), "place": response.place, "words": response.words.strip() or None,
        "until": response.until, "other": response.other,
    }  # fmt: skip
    response_id = connection.execute(_RESPONSE, values).scalar_one()
    if response.verb == "split":
        return _split(connection, finding, response_id)
    if response.verb == "link":
        _link(connection, fingerprint, str(response.other), response_id, is_linked=True)
    elif (update := _apply(connection, finding, response, now)) is not None:
        _plan_delivery(connection, finding, response, update, start_of_hour(now))
    return []


def _check(finding: sa.RowMapping, response: Response, now: datetime) -> None:
    name = clean(finding["title"])
    if finding["ticket_id"] is None and response.verb not in _WITHOUT_TICKET:
        raise ResponseError(f"{name}: cannot apply {_verb(response)}: the finding has no ticket.")
    if response.verb in _WITH_REASON and not clean(response.words):
        raise ResponseError(f"{name}: cannot apply {_verb(response)} without a text: state the reason.")
    if len(response.words) > MAX_CHARACTERS:
        raise ResponseError(
            f"{name}: the text has {len(response.words):,} characters; the limit is {MAX_CHARACTERS:,}."
        )
    if not is_storable(response.words):
        raise ResponseError(f"{name}: the text has a NUL character, or characters that are not valid Unicode.")
    if response.verb in ("acknowledge", "close") and finding["state"] != "open":
        raise ResponseError(f"{name}: cannot apply {_verb(response)}: the ticket is closed.")
    if response.verb == "snooze" and response.until is None:
        raise ResponseError(f"{name}: cannot apply snooze without an end: state until when.")
    if response.until is not None and response.until <= now:
        raise ResponseError(f"{name}: cannot snooze until {moment(response.until)}: this time is in the past.")
    if response.until is not None and response.until > now + MAX_SNOOZE:
        raise ResponseError(
            f"{name}: cannot snooze until {moment(response.until)}: the limit is {MAX_SNOOZE.days} days,"
            f" {moment(now + MAX_SNOOZE)}. To keep the ticket closed, mark it as won't fix."
        )
    if response.verb == "unmute" and finding["muted"] is None:
        raise ResponseError(f"{name}: cannot apply unmute: the ticket is not muted.")
    if response.verb == "link" and response.other == finding["fingerprint"]:
        raise ResponseError(f"{name}: cannot link a finding to itself.")


def _verb(response: Response) -> str:
    return response.verb.replace("_", " ")


def _apply(connection: sa.Connection, ticket: sa.RowMapping, response: Response, now: datetime) -> _Update | None:
    """Changes the ticket. Returns the change to deliver, if there is one."""
    own, is_open, by = ticket["ticket_id"], ticket["state"] == "open", response.by
    match response.verb:
        case "acknowledge":
            # People work on what has an issue: a part of an incident is acknowledged with it.
            update_ticket(connection, ticket["place_id"], acknowledged_by=response.author)
            return _Update("comment", f"Acknowledged by {by}", "acknowledged")
        case "snooze":
            update_ticket(connection, own, muted="snoozed", muted_until=response.until)
            assert response.until is not None  # noqa: S101  `_check` requires it
            text = f"Snoozed until {moment(response.until)} by {by} A higher severity ends the snooze earlier."
            return _Update("comment", text, "snoozed")
        case "wont_fix":
            over: Ticket = {"state": "closed", "close_reason": "wont_fix", "closed_hour": start_of_hour(now)}
            update_ticket(connection, own, muted="wont_fix", muted_until=None, **(over if is_open else {}))
            return _Update("close", f"Marked as won't fix by {by}") if is_open else None
        case "unmute":
            update_ticket(connection, own, muted=None, muted_until=None)
            return _Update("reopen", f"Unmuted by {by}") if is_open else None
        case "close":
            update_ticket(connection, own, state="closed", close_reason="person", closed_hour=start_of_hour(now))
            return _Update("close", f"Closed by {by}")
        case "false_positive":
            return _Update("comment", f"Reported as a false positive by {by}")
        case _:
            return _Update("comment", f"Comment by {by}")


def _plan_delivery(
    connection: sa.Connection, ticket: sa.RowMapping, response: Response, update: _Update, hour: datetime
) -> None:
    """Plans the delivery to every tracker that has the ticket, except the one in which the person responded."""
    place_id = ticket["place_id"]
    if place_id is None or ticket["in_storm"]:
        return  # the ticket of an alert storm stands for too many findings
    is_own = place_id == ticket["ticket_id"]
    if not is_own:  # part of an incident: its issue stays open
        text = f"About {clean(ticket['title'])}: {update.text}"
        update = _Update("comment", text, update.state if response.verb == "acknowledge" else None)
    trackers: list[str | None] = [None]
    if response.tracker is not None:
        others = {"id": place_id, "tracker": response.tracker}
        trackers = list(connection.execute(_OTHERS, others).scalars())
    for tracker in trackers:
        plan_change(connection, place_id, update.action, hour, update.text, tracker=tracker, answer=update.state)


def _split(connection: sa.Connection, finding: sa.RowMapping, response_id: int) -> list[str]:
    """Splits a finding and its downstream effects off its incident. Returns the titles of those that stay."""
    members = [dict(row) for row in connection.execute(_INCIDENT, {"id": finding["ticket_id"]}).mappings()]
    gone = _below(finding["ticket_id"], members)
    stay = [row for row in members if row["ticket_id"] not in gone]
    if finding["state"] != "open" or not stay:
        raise ResponseError(f"{clean(finding['title'])}: cannot split: the finding is alone in its ticket.")
    for other in stay:
        _link(connection, finding["fingerprint"], other["fingerprint"], response_id, is_linked=False)
    return [clean(row["title"]) for row in stay]


def _below(ticket_id: int, members: list[Ticket]) -> set[int]:
    """Ids of a ticket and of its downstream effects."""
    found, more = {ticket_id}, True
    while more:
        below = {row["ticket_id"] for row in members if row["cause_ticket_id"] in found} - found
        found, more = found | below, bool(below)
    return found


def _link(connection: sa.Connection, one: str, other: str, response_id: int, *, is_linked: bool) -> None:
    """Stores a link or a split of two findings; only people change it."""
    known = connection.execute(
        sa.text("select from tickets.ticket where fingerprint = :other limit 1"), {"other": other}
    )
    if known.first() is None:
        raise ResponseError(f"{other[:12]}: no ticket has this fingerprint.")
    first, second = sorted([one, other])
    connection.execute(
        _MANUAL_LINK, {"one": first, "other": second, "is_linked": is_linked, "response_id": response_id}
    )


_FINDING = sa.text("""
    select
      e.fingerprint, coalesce(t.detector, e.detector) as detector, coalesce(t.title, e.resource_name) as title,
      t.ticket_id, t.state, t.muted, place.detector = :storm as in_storm,
      case when place.detector = :storm then t.ticket_id else place.ticket_id end as place_id
    from (select cast(:fingerprint as text) as fingerprint) as this
    left join lateral (
      select * from tickets.ticket as n where n.fingerprint = this.fingerprint and n.detector <> :storm
      order by n.ticket_id desc limit 1
    ) as t on true
    left join tickets.ticket as place on coalesce(t.summary_ticket_id, t.ticket_id) = place.ticket_id
    left join lateral (
      select v.detector, v.resource_name from detect.evaluation as v where v.fingerprint = this.fingerprint limit 1
    ) as v on true
    cross join lateral (
      select this.fingerprint, v.detector, v.resource_name where t.ticket_id is not null or v.detector is not null
    ) as e""").bindparams(storm=STORM)
_RESPONSE = sa.text("""
    insert into tickets.response (fingerprint, detector, ticket_id, verb, who, place, words, until, other)
    values (:fingerprint, :detector, :ticket_id, :verb, :who, :place, :words, :until, :other)
    returning response_id""")
_OTHERS = sa.text("select tracker from tickets.issue where ticket_id = :id and tracker <> :tracker order by tracker")
_INCIDENT = sa.text("""
    select t.* from tickets.ticket as t
    inner join tickets.ticket as this on this.ticket_id = :id
    where
      t.state = 'open' and coalesce(t.summary_ticket_id, t.ticket_id) = coalesce(this.summary_ticket_id, this.ticket_id)
      and t.detector <> :storm
    order by t.ticket_id""").bindparams(storm=STORM)
_MANUAL_LINK = sa.text("""
    insert into tickets.manual_link (one, other, is_linked, response_id) values (:one, :other, :is_linked, :response_id)
    on conflict (one, other) do update set is_linked = excluded.is_linked, response_id = excluded.response_id""")
