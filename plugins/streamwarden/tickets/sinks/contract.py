"""Trackers: a sink is one module with three methods. `find` makes filing safe to repeat: ask before creating again.

A sink is handed what is to be told, not text: it writes the letter in its own tracker's markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.finding import Finding

State = Literal["open", "closed", "snoozed", "wont_fix"]


class TrackerDown(StreamwardenError):
    """The tracker can't be talked to at all: trying the next ticket is of no use."""


class IssueGone(StreamwardenError):
    """The tracker has no such ticket of ours: it was deleted, or the tracker is another one."""


@dataclass(frozen=True)
class Issue:
    """A ticket as the tracker has it."""

    key: str
    url: str | None
    state: State


@dataclass(frozen=True)
class Related:
    """Another ticket that has to do with this one."""

    relation: str
    title: str
    state: str
    url: str


@dataclass(frozen=True)
class Letter:
    """What is to be told, before any markup."""

    note: str
    """Text above the finding, or alone; paragraphs. Empty: the finding speaks for itself."""
    hour: datetime
    """The hour that led to it (UTC)."""
    finding: Finding | None = None
    since: datetime | None = None
    """Since when the finding is in alarm."""
    url: str = ""
    """Its page: plot, history, rule, SQL."""
    related: tuple[Related, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A ticket to be filed."""

    fingerprint: str
    detector: str
    resource: str
    title: str
    severity: str
    letter: Letter
    plot_png: bytes | None = None


@dataclass(frozen=True)
class Update:
    """A change to a filed ticket. `marker` is unique to it: what the tracker has already isn't said twice."""

    key: str
    fingerprint: str
    marker: str
    action: Literal["comment", "close", "reopen"]
    severity: str
    letter: Letter


class Sink(Protocol):
    """A tracker."""

    name: str
    remembers: bool
    takes_files: bool

    def find(self, fingerprint: str) -> Issue | None:
        """The newest ticket with this fingerprint, open or not."""

    def create(self, draft: Draft) -> Issue:
        """Files a ticket, once, however often the network fails.

        Raises:
            StreamwardenError: the tracker refuses; one line. TrackerDown: it can't be reached or doesn't know us.
        """

    def update(self, update: Update) -> None:
        """Comments, closes or reopens; raises as `create`, and IssueGone rather than touch what isn't ours."""
