"""Shared code of issue trackers over HTTP: reads issues, and recognizes deleted ones.

An issue is identified by its key, whatever people edit in it. Only the marker of another finding shows that it is not
ours.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets.sinks.contract import Issue, IssueGone
from streamwarden.tickets.sinks.http import Refused

T = TypeVar("T")
"""An issue as the tracker's API has it."""

log = logging.getLogger(__name__)


class IssueTracker(ABC, Generic[T]):
    """A tracker whose issues are read by key."""

    def look(self, key: str, fingerprint: str) -> Issue | None:
        """The issue with this key as it is now; None: it was deleted, or belongs to another finding."""
        issue = self._get(key)
        return self._issue_of(issue) if issue is not None and self._is_ours(issue, fingerprint) else None

    def _get(self, key: str) -> T | None:
        """The issue; None: it was deleted."""
        try:
            return self._read(key)
        except Refused as error:
            if isinstance(gone := self._gone_or(key, error), IssueGone):
                return None
            raise gone from None

    @contextmanager
    def _warned_of(self, key: str, left_out: str) -> Iterator[None]:
        """Logs the refusal of an optional part of a change, such as a comment on a locked issue, as a warning.

        Otherwise the refusal would repeat in every run and block all later changes.

        Raises:
            StreamwardenError: the issue was deleted, or the user misses a permission that all issues need.
        """
        try:
            yield
        except Refused as error:
            if isinstance(gone := self._gone_or(key, error), IssueGone):
                raise gone from None
            self._require_permissions()
            log.warning("%s: %s: %s", key, error, left_out)

    @abstractmethod
    def _require_permissions(self) -> None:
        """Raises StreamwardenError if the user does not have a permission that all issues need."""

    @abstractmethod
    def _read(self, key: str) -> T:
        """Reads the issue from the tracker."""

    @abstractmethod
    def _gone_or(self, key: str, error: Refused) -> StreamwardenError:
        """IssueGone if the rejection means that the issue was deleted, else the error to raise."""

    @abstractmethod
    def _is_ours(self, issue: T, fingerprint: str) -> bool:
        """Whether the issue is the ticket of this finding."""

    @abstractmethod
    def _issue_of(self, issue: T) -> Issue:
        """The issue as `Issue`, for `deliver` and `listen`."""
