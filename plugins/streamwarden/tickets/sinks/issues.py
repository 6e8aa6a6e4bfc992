"""What trackers of issues over HTTP share: how an issue of ours is read, and told from one that is gone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import Issue, IssueGone
from streamwarden.tickets.sinks.http import Refused

T = TypeVar("T")
"""An issue as the tracker's API has it."""


class IssueTracker(ABC, Generic[T]):
    """A tracker whose issues are read by key."""

    def look(self, key: str, fingerprint: str) -> Issue | None:
        issue = self._get(key)
        return self._as_told(issue) if issue is not None and self._is_ours(issue, fingerprint) else None

    def _get(self, key: str) -> T | None:
        """The issue; None: it was deleted."""
        try:
            return self._read(key)
        except Refused as error:
            if isinstance(gone := self._gone_or(key, error), IssueGone):
                return None
            raise gone from None

    @abstractmethod
    def _read(self, key: str) -> T:
        """Asks the tracker for it."""

    @abstractmethod
    def _gone_or(self, key: str, error: Refused) -> StreamwardenError:
        """IssueGone where the refusal means that the issue was deleted, else what is to be raised."""

    @abstractmethod
    def _is_ours(self, issue: T, fingerprint: str) -> bool:
        """Whether it is the ticket of this finding."""

    @abstractmethod
    def _as_told(self, issue: T) -> Issue:
        """As `deliver` and `listen` know it."""
