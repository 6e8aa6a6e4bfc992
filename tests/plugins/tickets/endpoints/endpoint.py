"""What all endpoints share: routes, a clock, strictness, a search that lags, and the faults that a network can have."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import httpx

MOST_LATE_SECONDS = 300
MOST_LAG_MINUTES = 4  # together within what `settles` allows for


@dataclass
class Clock:
    """Time that passes only when somebody waits."""

    now: datetime = datetime(2026, 1, 5, 12, tzinfo=UTC)

    def pause(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Told:
    """A ticket as an endpoint has it: by whom it may be known again, whether it is open, what was said, in order."""

    fingerprint: str
    is_open: bool
    title: str
    said: tuple[str, ...]
    """The text of the issue, then the comments."""


class Wrong(AssertionError):
    """A request that the API doesn't have: a mistake of ours."""


class InMemory(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that answers at once, from whatever kind of client."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self.handle_request(request)


@dataclass
class Endpoint(InMemory):
    """An API in memory. A subclass has `routes` and a method for each; it answers (status, JSON) or a response."""

    clock: Clock = field(default_factory=Clock)
    lag: timedelta = timedelta(0)
    """How long searches and lists don't show what was written."""
    requests: list[httpx.Request] = field(default_factory=list)
    routes: ClassVar[list[tuple[str, str, str]]] = []
    has_quick_actions: ClassVar[bool] = False
    """A line that begins with a slash does something."""
    tells_all: ClassVar[bool] = True
    """Each change has a text there; else what is said of closings, and of closed tickets, isn't."""
    by_status_alone: ClassVar[bool] = False
    """Any answer with 2xx says that it was taken."""
    has_calls: ClassVar[bool] = False
    """Names in a text call people."""
    people_say: ClassVar[tuple[str, ...]] = ("acknowledged", "snoozed", "closed", "wont_fix")
    """What a person can answer there so that we hear it."""
    shows: ClassVar[tuple[str, ...]] = ()
    """Answers given elsewhere for which it has a state of its own."""
    can_delete: ClassVar[bool] = True
    """A person can delete a ticket."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        if (refusal := self.refused(request)) is not None:
            return self._response(refusal)
        for method, path, name in self.routes:
            if method == request.method and (match := re.fullmatch(path, request.url.path)):
                return self._response(getattr(self, name)(request, *match.groups()))
        raise Wrong(f"the API has no {request.method} {request.url.path}")

    def refused(self, request: httpx.Request) -> Any:
        """Wrong credentials."""
        return None

    def tickets(self) -> list[Told]:
        """What it has, in the order in which it was filed."""
        raise Wrong(f"{type(self).__name__} doesn't say what it has")

    def delete(self, key: str) -> None:
        """A person deletes a ticket."""
        raise Wrong("nothing can be deleted there")

    def answer(self, key: str, state: str) -> None:
        """A person answers, one of `people_say`."""
        raise Wrong(f"people can't say {state} there")

    def is_found(self, written: datetime) -> bool:
        """Whether searches show it yet."""
        return written + self.lag <= self.clock.now

    def _response(self, answer: Any) -> httpx.Response:
        if isinstance(answer, httpx.Response):
            return answer
        status, body, *headers = answer
        return httpx.Response(status, headers=headers[0] if headers else None, content=_content(body))


def _content(body: Any) -> bytes:
    return b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()


def body_of(request: httpx.Request, *, needs: set[str], may: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    """The JSON of a request, which has what is needed and nothing that the API doesn't know."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Wrong(f"{request.url.path}: isn't JSON")
    values = json.loads(request.content)
    if needs - values.keys() or values.keys() - needs - may:
        raise Wrong(f"{request.method} {request.url.path}: {sorted(values)} instead of {sorted(needs | may)}")
    return dict(values)


def numbers(request: httpx.Request, *allowed: str) -> dict[str, str]:
    """The query, in which nothing is that the API doesn't know."""
    found = dict(request.url.params)
    if unknown := found.keys() - set(allowed):
        raise Wrong(f"{request.url.path}: no parameter {sorted(unknown)}")
    return found


class Killed(BaseException):
    """The process is gone."""


FAULTS = (
    "fine", "killed before", "killed after", "no connection", "never", "lost", "late", "cut", "busy", "error before",
    "error after", "page before", "page after", "wrong before", "wrong after", "doubled",
)  # fmt: skip

REPEATABLE = ("GET", "PUT", "DELETE")
"""What a proxy may send twice: what is idempotent (RFC 9110 §9.2.2), which PATCH isn't (RFC 5789)."""


@dataclass
class Faulty(InMemory):
    """The way to an endpoint; each request meets the next fault."""

    endpoint: Endpoint
    faults: Iterator[str]
    clock: Clock
    late: list[tuple[datetime, httpx.Request]] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    """Faults that requests met, by kind."""
    _turn: int = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.land()
        request.read()
        self._turn += 1
        fault = next(self.faults, "fine")
        self.met[fault] += 1
        return self._ways()[fault](request)

    def land(self, *, all_of_it: bool = False) -> None:
        """What was given up and is late is done now, when its time has come."""
        due = [one for one in self.late if all_of_it or one[0] <= self.clock.now]
        self.late = [one for one in self.late if one not in due]
        for at, request in sorted(due, key=lambda one: one[0]):
            now, self.clock.now = self.clock.now, min(at, self.clock.now)
            self.endpoint.handle_request(request)
            self.clock.now = now

    def _ways(self) -> dict[str, Callable[[httpx.Request], httpx.Response]]:
        do = self.endpoint.handle_request
        page = "<html><body>Please log in</body></html>"
        return {
            "fine": do,
            "killed before": lambda request: _raise(Killed()),
            "killed after": lambda request: _raise(Killed(), do(request)),
            "no connection": lambda request: _raise(httpx.ConnectError("connection refused", request=request)),
            "never": lambda request: _raise(httpx.ReadTimeout("timed out", request=request)),
            "lost": lambda request: _raise(httpx.ReadTimeout("timed out", request=request), do(request)),
            "late": self._is_late,
            "cut": lambda request: _raise(httpx.RemoteProtocolError("cut off", request=request), do(request)),
            "busy": lambda request: httpx.Response(429, headers={"Retry-After": str(self._turn % 7)}),
            "error before": lambda request: httpx.Response(503, text=page),
            "error after": lambda request: _instead(httpx.Response(502, text=page), do(request)),
            "page before": lambda request: httpx.Response(200, text=page),
            "page after": lambda request: _instead(httpx.Response(200, text=page), do(request)),
            "wrong before": lambda request: httpx.Response(200, json=self._nonsense()),
            "wrong after": lambda request: _instead(httpx.Response(200, json=self._nonsense()), do(request)),
            "doubled": lambda request: (
                _instead(do(request), do(request)) if request.method in REPEATABLE else do(request)
            ),
        }

    def _nonsense(self) -> Any:
        return ({}, None, 7, "fine")[self._turn % 4]

    def _is_late(self, request: httpx.Request) -> httpx.Response:
        self.late.append((self.clock.now + timedelta(seconds=self._turn * 97 % MOST_LATE_SECONDS), request))
        raise httpx.ReadTimeout("timed out", request=request)


def _raise(error: BaseException, _: object = None) -> httpx.Response:
    raise error


def _instead(answer: httpx.Response, _: object) -> httpx.Response:
    return answer
