"""Slack: a ticket is a message, and updates are replies in its thread. Both carry metadata that identifies them.

Slack has no idempotency keys, and its history is read, not searched. The reaction `white_check_mark` marks a closed
ticket; people acknowledge with `eyes`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from streamwarden.base.config.trackers import Slack
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import (
    SETTLES,
    Issue,
    IssueDraft,
    IssueGone,
    Notification,
    State,
    TrackerDown,
    Unsure,
    Update,
)
from streamwarden.tickets.sinks.credentials import login
from streamwarden.tickets.sinks.http import Api, Network
from streamwarden.tickets.sinks.sections import Link, Section, fitting

TEXT_LIMIT = 4000  # Slack's recommendation; it truncates at 40,000
LOOK_BACK = timedelta(days=14)
PAGE = 200
TICKET, CHANGE = "streamwarden_ticket", "streamwarden_change"
CLOSED, ACKNOWLEDGED = "white_check_mark", "eyes"
ICONS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:", "info": ":large_blue_circle:"}
GONE = ("thread_not_found", "message_not_found")
DOWN = ("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "channel_not_found",
        "not_in_channel", "is_archived", "missing_scope")  # fmt: skip
LOCKED = ("restricted_action_thread_locked", "cannot_reply_to_message", "thread_locked", "too_many_reactions",
          "too_many_emoji")  # fmt: skip
"""Errors of a single message: its reply or reaction is skipped."""
ACTIONS = {
    "not_in_channel": "invite the app: /invite @streamwarden",
    "channel_not_found": "check `channel` (an id, C…), and invite the app",
}
_EMOJI = re.compile(r":(?=[A-Za-z0-9_+'-]+:)")
A = TypeVar("A", bound="_Answer")

log = logging.getLogger(__name__)


class _Answer(BaseModel):
    ok: bool
    error: str | None = None
    needed: str | None = None


class _Reaction(BaseModel):
    name: str
    users: list[str] = []


class _Metadata(BaseModel):
    event_type: str
    event_payload: dict[str, Any]


class _Message(BaseModel):
    ts: str
    metadata: _Metadata | None = None
    reactions: list[_Reaction] = []

    def is_marked(self, kind: str, key: str, value: str) -> bool:
        """Whether the message has Streamwarden's metadata with this value."""
        found = self.metadata
        return found is not None and found.event_type == kind and found.event_payload.get(key) == value


class _More(BaseModel):
    next_cursor: str = ""


class _Messages(_Answer):
    messages: list[_Message] = []
    response_metadata: _More = _More()


class _Posted(_Answer):
    channel: str | None = None
    ts: str | None = None


class _Identity(_Answer):
    url: str | None = None
    user: str | None = None


class Tracker:
    """Client of one channel, as a Slack app."""

    remembers = True
    takes_files = False
    settles = SETTLES

    def __init__(self, name: str, settings: Slack, network: Network = Network()) -> None:  # noqa: B008
        self.name = name
        self._settings = settings
        self._now = network.now
        _, token = login(name, settings)
        headers = {"Authorization": f"Bearer {token}"}
        self._api = Api(name, settings.url, network, headers=headers, secrets=(token,))
        self._site: str | None = None

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works, in words."""
        identity = self._read("auth.test", _Identity)
        self._read("conversations.history", _Messages, channel=self._settings.channel, limit=1)
        return f"{identity.user} reads channel {self._settings.channel}; the first ticket shows whether it may write"

    def find(self, fingerprint: str) -> Issue | None:
        """The newest message with this fingerprint, open or closed; None: there is none."""
        oldest = f"{(self._now() - LOOK_BACK).timestamp():.6f}"
        for message in self._pages("conversations.history", oldest=oldest):
            if message.is_marked(TICKET, "fingerprint", fingerprint):
                return self._issue_of(f"{self._settings.channel}/{message.ts}", message)
        return None

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The message with this key as it is now; None: it was deleted, or belongs to another finding."""
        try:
            message = next(self._pages("conversations.replies", ts=_ts(key)), None)
        except IssueGone:
            return None
        if message is None or not message.is_marked(TICKET, "fingerprint", fingerprint):
            return None
        return self._issue_of(key, message)

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""
        messages = self._pages("conversations.replies", ts=_ts(update.key))
        return any(message.is_marked(CHANGE, "marker", update.marker) for message in messages)

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Creates the message and returns it."""
        title = f"{ICONS[issue_draft.severity]} *{escaped(issue_draft.title)}*"
        payload = {
            "fingerprint": issue_draft.fingerprint,
            "detector": issue_draft.detector,
            "resource_name": issue_draft.resource_name[:200],
        }
        self._address()  # before the post, so that nothing fails after it
        posted = self._post(mrkdwn(issue_draft.notification, title), TICKET, payload)
        return self._issue_of(f"{posted.channel}/{posted.ts}", _Message(ts=str(posted.ts)))

    def update(self, update: Update) -> None:
        """Posts a change to the message. Raises IssueGone if it no longer exists."""
        if self.look(update.key, update.fingerprint) is None:
            raise IssueGone(f"{update.key}: is not the message that was posted.")
        if update.action in ("close", "reopen"):
            self._mark(update.key, CLOSED, is_there=update.action == "close")
        if update.answer == "acknowledged":
            self._mark(update.key, ACKNOWLEDGED, is_there=True)
        title = f"{ICONS[update.severity]} *{escaped(update.title)}*" if update.action == "reopen" else ""
        self._post(mrkdwn(update.notification, title), CHANGE, {"marker": update.marker}, thread_ts=_ts(update.key))

    def _warn_if_locked(self, key: str, answer: _Answer) -> None:
        """Logs an error that would repeat in every run and block all later changes."""
        if answer.error in LOCKED:
            log.warning("%s: %s: %s: the update was skipped", self._api.url, key, answer.error)

    def _mark(self, key: str, name: str, *, is_there: bool) -> None:
        channel, _, ts = key.partition("/")
        verb, enough = ("add", "already_reacted") if is_there else ("remove", "no_reaction")
        mark = {"channel": channel, "timestamp": ts, "name": name}
        answer = self._ask(f"reactions.{verb}", _Answer, {"json": mark}, enough=(enough, *LOCKED))
        self._warn_if_locked(key, answer)

    def _post(self, text: str, kind: str, payload: dict[str, str], **more: Any) -> _Posted:
        body = {
            "channel": self._settings.channel, "text": text, "unfurl_links": False, "unfurl_media": False,
            "metadata": {"event_type": kind, "event_payload": payload}, **more,
        }  # fmt: skip
        posted = self._ask("chat.postMessage", _Posted, {"json": body}, enough=LOCKED if more else ())
        self._warn_if_locked(str(more.get("thread_ts")), posted)
        if posted.ok and (posted.channel != self._settings.channel or not posted.ts):
            raise Unsure(f"{self._api.url}: chat.postMessage: returned another message than the one that was sent.")
        return posted

    def _pages(self, method: str, **asked: Any) -> Iterator[_Message]:
        cursor = ""
        while True:
            values = asked | {"channel": self._settings.channel, "limit": PAGE, "include_all_metadata": True}
            page = self._read(method, _Messages, **values, **({"cursor": cursor} if cursor else {}))
            yield from page.messages
            if not (cursor := page.response_metadata.next_cursor):
                return

    def _read(self, method: str, kind: type[A], **asked: Any) -> A:
        return self._ask(method, kind, {"params": asked})

    def _ask(self, method: str, kind: type[A], request: dict[str, Any], enough: tuple[str, ...] = ()) -> A:
        answer = self._api.request("GET" if "params" in request else "POST", f"/api/{method}", kind, **request)
        if answer.ok or answer.error in enough:
            return answer
        if answer.error in GONE:
            raise IssueGone(f"{self._api.url}: {method}: {answer.error}")
        needed = f": the app needs the scope {answer.needed}" if answer.needed else ""
        actions = f": {ACTIONS[answer.error]}" if answer.error in ACTIONS else needed
        refusal = TrackerDown if answer.error in DOWN else StreamwardenError
        raise refusal(f"{self._api.url}: {method}: {escaped(answer.error or 'no message given')}{actions}")

    def _issue_of(self, key: str, message: _Message) -> Issue:
        names = {reaction.name for reaction in message.reactions}
        state: State | None = "acknowledged" if ACKNOWLEDGED in names else None
        return Issue(key, f"{self._address()}archives/{key.replace('/', '/p').replace('.', '')}", state)

    def _address(self) -> str:
        if self._site is None:
            self._site = self._read("auth.test", _Identity).url or f"{self._api.url}/"
        return self._site


def mrkdwn(notification: Notification, title: str) -> str:
    """A notification in Slack's mrkdwn."""
    parts = fitting(notification, lambda some: len(_text(some, title)), TEXT_LIMIT)
    return _text(parts, title)


def escaped(text: str) -> str:
    """Text without mentions, links, and emoji. Asterisks and underscores are not escaped."""
    return _EMOJI.sub(":\u2060", _literal(text))


def _literal(text: str) -> str:
    """Text for URLs and code, where Slack replaces no emoji."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(sections: Sequence[Section], title: str) -> str:
    return "\n".join(filter(None, (title, *(part for section in sections for part in _parts(section)))))


def _parts(section: Section) -> Iterator[str]:
    if section.heading:
        yield f"*{escaped(section.heading)}*"
    yield from (escaped(line) for line in section.lines)
    for number, item in enumerate(section.items, 1):
        yield f"{f'{number}.' if section.are_ordered else '•'} {escaped(item)}"
    if section.commands:
        commands = "\n".join(_literal(line).replace("```", "'''") for line in section.commands)
        yield f"```\n{commands}\n```"
    yield from (f"{escaped(label)}: {escaped(text)}".removeprefix(": ") for label, text in section.metrics)
    yield from (_link(link) for link in section.links)


def _link(link: Link) -> str:
    title = f"<{_literal(link.url).replace('|', '%7C')}|{escaped(link.title)}>"
    return f"{escaped(link.before)}: {title} ({escaped(link.after)})" if link.before else title


def _ts(key: str) -> str:
    return re.sub(r".*/", "", key)
