"""Trackers: a sink is one module that writes into one kind of tracker, in that tracker's own markup.

A sink gets structured notifications, not text, and stores nothing. `deliver` stores which requests got no clear
response. It queries the tracker (`find`, `has`) before it sends them again, after the tracker's time to settle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, runtime_checkable

from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.finding import Finding

State = Literal["open", "acknowledged", "snoozed", "wont_fix", "closed"]
SETTLES = timedelta(minutes=10)
"""How long after a request without a response it may still take effect, or not yet be found."""


class TrackerDown(StreamwardenError):
    """The tracker is not reachable: the next ticket would fail as well. Nothing was done."""


class Unsure(StreamwardenError):
    """The response was lost: the request may or may not have taken effect."""


class IssueGone(StreamwardenError):
    """The tracker does not have this ticket: it was deleted, or the tracker was replaced."""


@dataclass(frozen=True)
class Issue:
    """A ticket as the tracker has it."""

    key: str
    url: str | None
    state: State | None
    """As people set it; None: the tracker has no states."""
    until: datetime | None = None
    """End of a snooze, where the tracker knows one (UTC)."""


@dataclass(frozen=True)
class Related:
    """A related ticket."""

    relation: str
    title: str
    state: str
    url: str


@dataclass(frozen=True)
class Notification:
    """A notification before any markup."""

    note: str
    """Text above the finding, or alone; paragraphs. May be empty."""
    hour: datetime
    """The hour that led to it (UTC)."""
    finding: Finding | None = None
    since: datetime | None = None
    """Start of the problem (UTC), where a sample gives it."""
    first_hour: datetime | None = None
    """The first hour in which the finding fired (UTC)."""
    until: datetime | None = None
    """Until when that is known (UTC): the end of the hour, or the present where the hour is not over."""
    url: str = ""
    """Its page: chart, history, detector, SQL."""
    runbook_url: str = ""
    """The page of its detector, with the runbook."""
    related: tuple[Related, ...] = ()
    follows: tuple[str, ...] = ()
    """Downstream effects of the finding, a line each."""
    refused: tuple[str, ...] = ()
    """Findings ruled out as downstream effects, with the reason, a line each."""
    before: tuple[str, ...] = ()
    """Recent changes, a line each."""
    unexplained: tuple[str, ...] = ()
    """That no root cause was found, then the findings that were ruled out, a line each; else empty."""


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
    resource: str | None = None
    """Key of the resource."""
    owner: str | None = None


@dataclass(frozen=True)
class Update:
    """A change to a filed ticket. `marker` is unique to it, so that no change is posted twice."""

    key: str
    fingerprint: str
    marker: str
    action: Literal["comment", "close", "reopen"]
    title: str
    severity: str
    notification: Notification
    is_wont_fix: bool = False
    """Closed permanently by a person."""
    is_open: bool = True
    """Whether the ticket is open now."""
    is_start_new: bool = False
    """Whether the change before filed or reopened the ticket, and the tracker may not show that yet (`settles`)."""
    answer: Literal["acknowledged", "snoozed"] | None = None
    """A response that people gave elsewhere; set as the tracker's own state where it has one."""
    is_muted: bool = False
    """Whether people have muted it: snoozed, or won't fix."""
    detector: str = ""
    resource_name: str = ""
    resource: str | None = None
    """Key of the resource."""
    owner: str | None = None


@runtime_checkable
class Forgetful(Protocol):
    """A sink of a tracker that ends what is not sent again: `refresh` sends the open tickets in every run."""

    def refresh(self, updates: Sequence[Update]) -> None:
        """Sends open tickets again as they are; raises as `Sink.create`."""


class Sink(Protocol):
    """A tracker of the config. All methods raise StreamwardenError in one line, without credentials."""

    name: str
    """Its name in the config."""
    remembers: bool
    """Whether it can be queried for its tickets; if not, it must accept duplicates."""
    takes_files: bool
    settles: timedelta
    """How long a ticket is not read after a request, and not sent again after one without a response."""

    def check(self) -> str:
        """Checks credentials and permissions. Returns what works; raises with what is missing."""

    def find(self, fingerprint: str) -> Issue | None:
        """The newest ticket with this fingerprint, open or closed; may miss those of the last minutes (`settles`)."""

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """A ticket as it is now, under its present key; None: it was deleted, or is not ours."""

    def has(self, update: Update) -> bool:
        """Whether the tracker has this change already."""

    def create(self, issue_draft: IssueDraft) -> Issue:
        """Files a ticket.

        Raises:
            TrackerDown, Unsure: see there; any other StreamwardenError: the tracker refuses.
        """

    def update(self, update: Update) -> None:
        """Comments, closes, or reopens; raises as `create`, and IssueGone where the ticket is not ours."""
