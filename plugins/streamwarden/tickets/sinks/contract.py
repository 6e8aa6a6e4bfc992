"""Trackers: a sink is one module that writes into one kind of tracker, in that tracker's own markup.

A sink is handed what is to be told, not text. It keeps nothing: `deliver` remembers what was sent without a clear
answer, asks (`find`, `has`) before it sends again, and does so only when the tracker has had time to settle.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.finding import Finding

State = Literal["open", "acknowledged", "snoozed", "wont_fix", "closed"]
SETTLES = timedelta(minutes=10)
"""How long after a request without an answer a tracker may still do it and then not yet find what it did."""


class TrackerDown(StreamwardenError):
    """The tracker can't be talked to at all: trying the next ticket is of no use. Nothing was done."""


class Unsure(StreamwardenError):
    """The answer is lost: the tracker may or may not have done what it was asked."""


class IssueGone(StreamwardenError):
    """The tracker has no such ticket of ours: it was deleted, or the tracker is another one."""


@dataclass(frozen=True)
class Issue:
    """A ticket as the tracker has it."""

    key: str
    url: str | None
    state: State | None
    """As people have it; None: the tracker has no states."""
    until: datetime | None = None
    """End of a snooze, where the tracker knows one (UTC)."""


@dataclass(frozen=True)
class Related:
    """Another ticket that has to do with this one."""

    relation: str
    title: str
    state: str
    url: str


@dataclass(frozen=True)
class Notification:
    """What is to be told, before any markup."""

    note: str
    """Text above the finding, or alone; paragraphs. Empty: the finding speaks for itself."""
    hour: datetime
    """The hour that led to it (UTC)."""
    finding: Finding | None = None
    since: datetime | None = None
    """Since when the finding is in alarm."""
    until: datetime | None = None
    """Up to when that is known: the end of the hour, or the moment of telling where the hour isn't over."""
    url: str = ""
    """Its page: plot, history, rule, SQL."""
    related: tuple[Related, ...] = ()
    follows: tuple[str, ...] = ()
    """What follows from the finding: a line each."""
    refused: tuple[str, ...] = ()
    """What was held against it and doesn't follow from it, and why."""
    before: tuple[str, ...] = ()
    """What changed there just before."""
    unexplained: tuple[str, ...] = ()
    """That no cause is known of what usually has one; then what was held against it, a line each."""


@dataclass(frozen=True)
class IssueDraft:
    """A ticket to be filed."""

    fingerprint: str
    detector: str
    resource_name: str
    title: str
    severity: str
    notification: Notification
    plot_png: bytes | None = None


@dataclass(frozen=True)
class Update:
    """A change to a filed ticket. `marker` is unique to it: what the tracker has already isn't said twice."""

    key: str
    fingerprint: str
    marker: str
    action: Literal["comment", "close", "reopen"]
    title: str
    severity: str
    notification: Notification
    is_wont_fix: bool = False
    """Closed for good, as a person asked."""
    is_open: bool = True
    """Whether the ticket stands open now."""
    answer: Literal["acknowledged", "snoozed"] | None = None
    """What people answered elsewhere: a comment says so, and the tracker's own state for it where it has one."""


class Sink(Protocol):
    """A tracker of the config. All methods raise StreamwardenError in one line, without credentials."""

    name: str
    """Its name in the config."""
    remembers: bool
    """Whether it can be asked what it has; else it must take the same thing twice as once."""
    takes_files: bool
    settles: timedelta
    """How long after a request a ticket isn't listened to, and after one without an answer is sent nothing anew."""

    def check(self) -> str:
        """Asks who we are there and whether tickets may be filed; says what works, or raises what the user lacks."""

    def find(self, fingerprint: str) -> Issue | None:
        """The newest ticket with this fingerprint, open or not. It may miss those of the last minutes (`settles`)."""

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """A ticket as it is now, under its present key; None: it was deleted, or isn't ours."""

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Files a ticket.

        Raises:
            TrackerDown, Unsure: see there; any other StreamwardenError: the tracker refuses.
        """

    def update(self, update: Update) -> None:
        """Comments, closes or reopens; raises as `create`, and IssueGone rather than touch what isn't ours."""
