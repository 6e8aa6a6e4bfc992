"""Compares the open tickets in the tracker with the injected faults: found, missed, wrong, false positives.

A ticket has its detector and resource in lines `detector: …` and `resource_name: …`, and its effects in its text. It is
a false positive if this run opened it and no injected fault explains it. This includes an effect with its own ticket
next to that of its cause. Open tickets of earlier runs do not count. A found fault is wrong if its reason is none of
those that were injected, or if the root cause of its incident is another finding; both come from the warehouse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
from streamwarden.base.errors import StreamwardenError

from demo.faults import Injected

CLOSED = {"resolved", "done-cbb"}


@dataclass(frozen=True)
class Ticket:
    """An open issue of the tracker."""

    url: str
    title: str
    detector: str
    resource: str
    opened_at: datetime
    text: str = ""
    fingerprint: str = ""
    reason: str | None = None
    """Of its finding, in the hour in which that last fired; null: the warehouse does not know the ticket."""
    root: tuple[str, str] = ("", "")
    """Detector and resource of the root cause of its incident."""

    def explains(self, injected: Injected) -> bool:
        """Whether the ticket is about the fault; its resource may include the cluster, as in `demo/orders`."""
        return _is_about(injected, self.detector, self.resource)

    def has_right_reason(self, injected: Injected) -> bool:
        """Whether the reason is one of those that the fault must have."""
        return self.reason in injected.reasons

    def has_right_root(self, injected: Injected) -> bool:
        """Whether the root cause is the injected fault itself."""
        return _is_about(injected, *self.root)

    def missing_effects(self, injected: Injected) -> list[str]:
        """Effects of the fault that the ticket does not list. White space is ignored, because trackers wrap lines."""
        text = " ".join(self.text.split())
        return [effect for effect in injected.follows if effect not in text]


@dataclass(frozen=True)
class Score:
    """Result of a run: number of injected faults, missed faults, and false positives."""

    injected: int
    missed: tuple[Injected, ...]
    false: tuple[Ticket, ...]
    wrong: tuple[tuple[Injected, Ticket], ...] = ()
    """Found, but with another reason or another root cause."""

    @property
    def is_perfect(self) -> bool:
        """Whether exactly the injected faults were found, each with its reason and as its own root cause."""
        return not (self.missed or self.false or self.wrong)

    def __str__(self) -> str:
        found, each = self.injected - len(self.missed), "" if self.injected == 1 else " each"
        incidents = "incident" if self.injected == 1 else "incidents"
        return (
            f"{found} of {self.injected} {incidents} in exactly one ticket{each},"
            f" {len(self.wrong)} with a wrong reason or root cause, {len(self.false)} false"
        )


def score(truth: Sequence[Injected], tickets: Sequence[Ticket], since: datetime) -> Score:
    """`since`: when the run started; tickets opened before belong to earlier runs."""
    new = [ticket for ticket in tickets if ticket.opened_at >= since]
    return Score(
        injected=len(truth),
        missed=tuple(line for line in truth if not _is_found(line, tickets)),
        false=tuple(ticket for ticket in new if not any(ticket.explains(line) for line in truth)),
        wrong=tuple(
            (line, ticket)
            for line in truth
            if _is_found(line, tickets)
            for ticket in tickets
            if ticket.explains(line) and not (ticket.has_right_reason(line) and ticket.has_right_root(line))
        ),
    )


def _is_about(injected: Injected, detector: str, resource: str) -> bool:
    return detector == injected.detector and injected.resource in re.split(r"[\s/|,:]+", resource)


def _is_found(line: Injected, tickets: Sequence[Ticket]) -> bool:
    """Whether exactly one ticket is about the fault, and lists all its effects."""
    found = [ticket for ticket in tickets if ticket.explains(line)]
    return len(found) == 1 and not found[0].missing_effects(line)


def open_tickets(url: str, user: str, password: str) -> list[Ticket]:
    """The tracker's open issues, over its REST API.

    Raises:
        StreamwardenError: the tracker does not respond, or rejects the request.
    """
    try:
        with httpx.Client(base_url=f"{url}/rest/data", auth=(user, password), timeout=10) as client:
            fields = {"@verbose": 2, "@fields": "title,status,messages,creation"}
            issues = _ask(client, "/issue", fields)["collection"]
            return [_ticket(client, url, issue) for issue in issues if issue["status"]["name"] not in CLOSED]
    except httpx.HTTPError as error:
        raise StreamwardenError(f"the tracker at {url} cannot be read: {error}") from None


def _ticket(client: httpx.Client, url: str, issue: dict) -> Ticket:
    ids = [message["id"] for message in issue["messages"]]
    text = "\n".join(_ask(client, f"/msg/{number}/content")["data"] for number in ids)
    return Ticket(
        url=f"{url}/issue{issue['id']}",
        title=issue["title"],
        detector=_line("detector", text),
        resource=_line("resource_name", text),
        opened_at=datetime.strptime(issue["creation"], "%Y-%m-%d.%H:%M:%S").replace(tzinfo=UTC),
        text=text,
        fingerprint=_line("fingerprint", text),
    )


def _ask(client: httpx.Client, path: str, parameters: dict | None = None) -> dict:
    answer = client.get(path, params=parameters)
    answer.raise_for_status()
    return answer.json()["data"]


def _line(key: str, text: str) -> str:
    found = re.search(rf"^{key}:\s*(.+?)\s*$", text, re.MULTILINE)
    return found[1] if found else ""
