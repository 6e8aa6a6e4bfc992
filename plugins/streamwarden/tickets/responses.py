"""What people say of findings, on a page, by the command line or in a tracker: it is kept, done, and told to others.

Whoever hears people calls `answer`; what each verb does stands here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import start_of_hour
from streamwarden.rendering.readable import clean, moment
from streamwarden.tickets.plan import RECONCILING, STORM, Action, Answered, Ticket, plan_change, update_ticket

Verb = Literal["acknowledge", "snooze", "wont_fix", "unmute", "close", "wrong", "comment", "split", "join"]
VERBS: tuple[Verb, ...] = get_args(Verb)
PAGE, COMMAND_LINE = "the page", "the command line"
MOST_WORDS = 2000
_NEED_WORDS = ("wrong", "comment", "split", "join")
_NEED_NO_TICKET = ("wrong", "comment")
_NAMES = {"wrong": "this is wrong", "comment": "a comment", "split": "to split it off", "join": "to join it"}


class ResponseError(StreamwardenError):
    """What was said can't be done; nothing was."""


@dataclass(frozen=True)
class Response:
    """What somebody said of a finding."""

    verb: Verb
    who: str
    place: str
    """PAGE, COMMAND_LINE, or the tracker's name in the config."""
    words: str = ""
    until: datetime | None = None
    """End of a snooze."""
    other: str | None = None
    """Fingerprint of the finding to join it with."""

    @property
    def tracker(self) -> str | None:
        """The tracker in which it was said, if it was."""
        return None if self.place in (PAGE, COMMAND_LINE) else self.place

    @property
    def speaker(self) -> str:
        """Who said it."""
        return clean(self.who) + (f" in {self.tracker}" if self.tracker else "")

    @property
    def by(self) -> str:
        """Who said it and why, as the end of a sentence."""
        return f"{self.speaker}: {clean(self.words).rstrip('.')}." if clean(self.words) else f"{self.speaker}."


@dataclass(frozen=True)
class _News:
    """What the others are to be told."""

    action: Action
    text: str
    answer: Answered | None = None


def respond(connection: sa.Connection, fingerprint: str, said: Response, now: datetime | None = None) -> list[str]:
    """Does what somebody said of a finding, keeps it and plans to tell it. Returns titles of what it was split from.

    Raises:
        AnswerError: it can't be done: there is no ticket, no reason, or no time.
    """
    now = now or datetime.now(UTC)
    # Not while a run decides by what stood there before; a page doesn't wait for ever.
    connection.execute(sa.text("select set_config('lock_timeout', '15s', true)"))
    connection.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": RECONCILING})
    finding = connection.execute(_FINDING, {"fingerprint": fingerprint}).mappings().first()
    if finding is None:
        raise ResponseError(f"{fingerprint[:12]}: there is no such finding.")
    _refuse(finding, said, now)
    values = {
        **{name: finding[name] for name in ("fingerprint", "detector", "ticket_id")}, "verb": said.verb,
        "who": clean(said.who), "place": said.place, "words": said.words.strip() or None, "until": said.until,
        "other": said.other,
    }  # fmt: skip
    response_id = connection.execute(_KEEP, values).scalar_one()
    if said.verb == "split":
        return _split(connection, finding, response_id)
    if said.verb == "join":
        _bind(connection, fingerprint, str(said.other), response_id, is_joined=True)
    elif (news := _do(connection, finding, said, now)) is not None:
        _tell(connection, finding, said, news, start_of_hour(now))
    return []


def _refuse(finding: sa.RowMapping, said: Response, now: datetime) -> None:
    name = clean(finding["title"])
    if finding["ticket_id"] is None and said.verb not in _NEED_NO_TICKET:
        raise ResponseError(f"{name}: has no ticket, so there is nothing to be done about it.")
    if said.verb in _NEED_WORDS and not clean(said.words):
        raise ResponseError(f"{name}: {_NAMES[said.verb]} needs a few words, so that others understand it.")
    if len(said.words) > MOST_WORDS:
        raise ResponseError(f"{name}: {len(said.words):,} characters; at most {MOST_WORDS:,} are kept.")
    if said.verb in ("acknowledge", "close") and finding["state"] != "open":
        raise ResponseError(f"{name}: its ticket is closed.")
    if said.verb == "snooze" and said.until is None:
        raise ResponseError(f"{name}: a snooze needs a time at which it ends.")
    if said.until is not None and said.until <= now:
        raise ResponseError(f"{name}: the snooze would end at {moment(said.until)}, which is past.")
    if said.verb == "unmute" and finding["muted"] is None:
        raise ResponseError(f"{name}: isn't muted.")
    if said.verb == "join" and said.other == finding["fingerprint"]:
        raise ResponseError(f"{name}: is one finding, there is nothing to join.")


def _do(connection: sa.Connection, ticket: sa.RowMapping, said: Response, now: datetime) -> _News | None:
    """Changes the ticket. Returns what is to be told, if anything is."""
    own, is_open, by = ticket["ticket_id"], ticket["state"] == "open", said.by
    match said.verb:
        case "acknowledge":
            # People work on what has an issue: a part of an incident is acknowledged with it.
            update_ticket(connection, ticket["place_id"], acknowledged_by=said.speaker)
            return _News("comment", f"Acknowledged by {by}", "acknowledged")
        case "snooze":
            update_ticket(connection, own, muted="snoozed", muted_until=said.until)
            assert said.until is not None  # noqa: S101  `_refuse` saw to it
            text = f"Snoozed until {moment(said.until)} by {by} A rise in severity ends it earlier."
            return _News("comment", text, "snoozed")
        case "wont_fix":
            over: Ticket = {"state": "closed", "close_reason": "wont_fix", "closed_hour": start_of_hour(now)}
            update_ticket(connection, own, muted="wont_fix", muted_until=None, **(over if is_open else {}))
            return _News("close", f"Won't be fixed, says {by}") if is_open else None
        case "unmute":
            update_ticket(connection, own, muted=None, muted_until=None)
            return _News("reopen", f"No longer snoozed, says {by}") if is_open else None
        case "close":
            update_ticket(connection, own, state="closed", close_reason="person", closed_hour=start_of_hour(now))
            return _News("close", f"Closed by {by}")
        case "wrong":
            return _News("comment", f"This is wrong, says {by}")
        case _:
            return _News("comment", by)


def _tell(connection: sa.Connection, ticket: sa.RowMapping, said: Response, news: _News, hour: datetime) -> None:
    """Plans to tell it to every tracker that has the ticket, but for the one in which it was said."""
    place_id = ticket["place_id"]
    if place_id is None or ticket["in_storm"]:
        return  # a storm's ticket stands for too many to tell of one
    is_own = place_id == ticket["ticket_id"]
    if not is_own:  # a part of an incident: the incident's issue goes on
        text = f"About {clean(ticket['title'])}: {news.text}"
        news = _News("comment", text, news.answer if said.verb == "acknowledge" else None)
    trackers: list[str | None] = [None]
    if said.tracker is not None:
        others = {"id": place_id, "tracker": said.tracker}
        trackers = list(connection.execute(_OTHERS, others).scalars())
    for tracker in trackers:
        plan_change(connection, place_id, news.action, hour, news.text, tracker=tracker, answer=news.answer)


def _split(connection: sa.Connection, finding: sa.RowMapping, response_id: int) -> list[str]:
    """Takes a finding out of its incident, with what follows from it. Returns the titles of those that stay there."""
    members = [dict(row) for row in connection.execute(_INCIDENT, {"id": finding["ticket_id"]}).mappings()]
    gone = _below(finding["ticket_id"], members)
    stay = [row for row in members if row["ticket_id"] not in gone]
    if finding["state"] != "open" or not stay:
        raise ResponseError(f"{clean(finding['title'])}: shares its ticket with nothing that it could be split from.")
    for other in stay:
        _bind(connection, finding["fingerprint"], other["fingerprint"], response_id, is_joined=False)
    return [clean(row["title"]) for row in stay]


def _below(ticket_id: int, members: list[Ticket]) -> set[int]:
    """A ticket and what follows from it."""
    found, more = {ticket_id}, True
    while more:
        below = {row["ticket_id"] for row in members if row["cause_ticket_id"] in found} - found
        found, more = found | below, bool(below)
    return found


def _bind(connection: sa.Connection, one: str, other: str, response_id: int, *, is_joined: bool) -> None:
    """What people say of two findings is never undone by the machine."""
    known = connection.execute(
        sa.text("select from tickets.ticket where fingerprint = :other limit 1"), {"other": other}
    )
    if known.first() is None:
        raise ResponseError(f"{other[:12]}: no ticket has such a fingerprint.")
    first, second = sorted([one, other])
    connection.execute(_BOND, {"one": first, "other": second, "is_joined": is_joined, "response_id": response_id})


_FINDING = sa.text("""
    select
      e.fingerprint, coalesce(t.detector, e.detector) as detector, coalesce(t.title, e.resource_name) as title, t.ticket_id,
      t.state, t.muted, place.detector = :storm as in_storm,
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
_KEEP = sa.text("""
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
_BOND = sa.text("""
    insert into tickets.manual_link (one, other, is_joined, response_id) values (:one, :other, :is_joined, :response_id)
    on conflict (one, other) do update set is_joined = excluded.is_joined, response_id = excluded.response_id""")
