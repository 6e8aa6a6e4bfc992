"""Compares the tickets that a run left open in the tracker with what was injected: found, missed, false.

A ticket names its detector and resource in lines `detector: …` and `resource: …`, and what follows from it in its text.
It is false when this run opened it and no injected fault explains it: an effect that has a ticket of its own beside its
cause's is false too. What an earlier run left open is no false alarm of this one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
from streamwarden.base.errors import StreamwardenError

from demo.fleet import Injected

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

    def explains(self, injected: Injected) -> bool:
        """A resource may be written with its surroundings, as in `demo/orders`."""
        return self.detector == injected.detector and injected.resource in re.split(r"[\s/|,:]+", self.resource)

    def lacks(self, injected: Injected) -> list[str]:
        """What follows from the fault and isn't named; lines of a tracker are wrapped anywhere."""
        told = " ".join(self.text.split())
        return [effect for effect in injected.follows if effect not in told]


@dataclass(frozen=True)
class Score:
    """What a run found of the truth."""

    injected: int
    missed: tuple[Injected, ...]
    false: tuple[Ticket, ...]

    @property
    def is_perfect(self) -> bool:
        return not self.missed and not self.false

    def __str__(self) -> str:
        found, each = self.injected - len(self.missed), "" if self.injected == 1 else " each"
        incidents = "incident" if self.injected == 1 else "incidents"
        return f"{found} of {self.injected} {incidents} in exactly one ticket{each}, {len(self.false)} false"


def score(truth: Sequence[Injected], tickets: Sequence[Ticket], since: datetime) -> Score:
    """`since`: when the run started; tickets opened before belong to earlier runs."""
    new = [ticket for ticket in tickets if ticket.opened_at >= since]
    return Score(
        injected=len(truth),
        missed=tuple(line for line in truth if not _is_found(line, tickets)),
        false=tuple(ticket for ticket in new if not any(ticket.explains(line) for line in truth)),
    )


def _is_found(line: Injected, tickets: Sequence[Ticket]) -> bool:
    """Whether one ticket, and no second, is about the fault and names all that follows from it."""
    resource = [ticket for ticket in tickets if ticket.explains(line)]
    return len(resource) == 1 and not resource[0].lacks(line)


def open_tickets(url: str, user: str, password: str) -> list[Ticket]:
    """The tracker's open issues, over its REST API.

    Raises:
        StreamwardenError: the tracker doesn't answer, or refuses.
    """
    try:
        with httpx.Client(base_url=f"{url}/rest/data", auth=(user, password), timeout=10) as client:
            fields = {"@verbose": 2, "@fields": "title,status,messages,creation"}
            issues = _ask(client, "/issue", fields)["collection"]
            return [_ticket(client, url, issue) for issue in issues if issue["status"]["name"] not in CLOSED]
    except httpx.HTTPError as error:
        raise StreamwardenError(f"the tracker at {url} can't be read: {error}") from None


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
    )


def _ask(client: httpx.Client, path: str, parameters: dict | None = None) -> dict:
    answer = client.get(path, params=parameters)
    answer.raise_for_status()
    return answer.json()["data"]


def _line(key: str, text: str) -> str:
    found = re.search(rf"^{key}:\s*(.+?)\s*$", text, re.MULTILINE)
    return found[1] if found else ""
