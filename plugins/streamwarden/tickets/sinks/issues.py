"""What trackers of issues over HTTP share: how an issue of ours is read, and told from one that is gone.

An issue is known by its key, whatever people edit in it: only the mark of another finding says that it isn't ours.
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

    @contextmanager
    def _warned_of(self, key: str, left_out: str) -> Iterator[None]:
        """A part of a change that may be left out, such as a comment on a locked issue: a refusal is a warning.

        The tracker would refuse it in every run, and with it all that is still to come.

        Raises:
            StreamwardenError: the issue is gone, or the user lacks a right that all issues need.
        """
        try:
            yield
        except Refused as error:
            if isinstance(gone := self._gone_or(key, error), IssueGone):
                raise gone from None
            self._require_rights()
            log.warning("%s: %s: %s", key, error, left_out)

    @abstractmethod
    def _require_rights(self) -> None:
        """Raises StreamwardenError where the user lacks a right that all issues need."""

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
