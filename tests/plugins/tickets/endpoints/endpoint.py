"""What all endpoints share: routes, a clock, strict validation, a search index that lags, and network faults."""

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
    """A clock that advances only when `pause` is called."""

    now: datetime = datetime(2026, 1, 5, 12, tzinfo=UTC)

    def pause(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += timedelta(seconds=seconds)


@dataclass(frozen=True)
class StoredTicket:
    """A ticket as the endpoint stores it: its fingerprint, its state, its title, and its texts in order."""

    fingerprint: str
    is_open: bool
    title: str
    texts: tuple[str, ...]
    """The text of the issue, then the comments."""


class InvalidRequest(AssertionError):
    """A request that the API does not accept: a bug of the sink."""


class InMemory(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that responds at once, to synchronous and asynchronous clients."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self.handle_request(request)


@dataclass
class Endpoint(InMemory):
    """An in-memory API. A subclass has `routes` and a method for each, which returns (status, JSON) or a response."""

    clock: Clock = field(default_factory=Clock)
    lag: timedelta = timedelta(0)
    """Time until searches and lists show what was written."""
    requests: list[httpx.Request] = field(default_factory=list)
    routes: ClassVar[list[tuple[str, str, str]]] = []
    has_quick_actions: ClassVar[bool] = False
    """A line that begins with a slash is run as a command."""
    keeps_all_notes: ClassVar[bool] = True
    """Stores the note of every change. If false, notes of closings and of closed tickets are not stored."""
    is_confirmed_by_status: ClassVar[bool] = False
    """Any 2xx response means that the request was accepted, whatever its body."""
    has_mentions: ClassVar[bool] = False
    """A name in a text notifies that person."""
    supported_responses: ClassVar[tuple[str, ...]] = ("acknowledged", "snoozed", "closed", "wont_fix")
    """Responses that a person can give in this tracker and that the sink reads."""
    displayed_states: ClassVar[tuple[str, ...]] = ()
    """Responses given elsewhere for which this tracker has a state of its own."""
    can_delete: ClassVar[bool] = True
    """Whether a person can delete a ticket."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        if (refusal := self.refused(request)) is not None:
            return self._response(refusal)
        for method, path, name in self.routes:
            if method == request.method and (match := re.fullmatch(path, request.url.path)):
                return self._response(getattr(self, name)(request, *match.groups()))
        raise InvalidRequest(f"the API has no {request.method} {request.url.path}")

    def refused(self, request: httpx.Request) -> Any:
        """The response to wrong credentials; None if they are right."""
        return None

    def tickets(self) -> list[StoredTicket]:
        """All stored tickets, in the order in which they were filed."""
        raise InvalidRequest(f"{type(self).__name__} does not list its tickets")

    def delete(self, key: str) -> None:
        """A person deletes a ticket."""
        raise InvalidRequest("nothing can be deleted there")

    def answer(self, key: str, state: str) -> None:
        """A person gives one of `supported_responses`."""
        raise InvalidRequest(f"people cannot respond {state} there")

    def is_found(self, written: datetime) -> bool:
        """Whether searches already show what was written at this time."""
        return written + self.lag <= self.clock.now

    def _response(self, answer: Any) -> httpx.Response:
        if isinstance(answer, httpx.Response):
            return answer
        status, body, *headers = answer
        return httpx.Response(status, headers=headers[0] if headers else None, content=_content(body))


def _content(body: Any) -> bytes:
    return b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()


def body_of(request: httpx.Request, *, needs: set[str], may: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    """The JSON body of a request. Raises InvalidRequest if a key of `needs` is missing or a key is unknown."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise InvalidRequest(f"{request.url.path}: not JSON")
    values = json.loads(request.content)
    if needs - values.keys() or values.keys() - needs - may:
        raise InvalidRequest(f"{request.method} {request.url.path}: {sorted(values)} instead of {sorted(needs | may)}")
    return dict(values)


def numbers(request: httpx.Request, *allowed: str) -> dict[str, str]:
    """The query parameters. Raises InvalidRequest for an unknown one."""
    found = dict(request.url.params)
    if unknown := found.keys() - set(allowed):
        raise InvalidRequest(f"{request.url.path}: no parameter {sorted(unknown)}")
    return found


class Killed(BaseException):
    """The process was killed."""


FAULTS = (
    "fine", "killed before", "killed after", "no connection", "never", "lost", "late", "cut", "busy", "error before",
    "error after", "page before", "page after", "wrong before", "wrong after", "doubled",
)  # fmt: skip

REPEATABLE = ("GET", "PUT", "DELETE")
"""Methods that a proxy may send twice: the idempotent ones (RFC 9110 §9.2.2). PATCH is not (RFC 5789)."""


@dataclass
class Faulty(InMemory):
    """The network to an endpoint. Each request is subject to the next fault."""

    endpoint: Endpoint
    faults: Iterator[str]
    clock: Clock
    late: list[tuple[datetime, httpx.Request]] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    """Number of requests, by fault."""
    _turn: int = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.land()
        request.read()
        self._turn += 1
        fault = next(self.faults, "fine")
        self.met[fault] += 1
        return self._ways()[fault](request)

    def land(self, *, all_of_it: bool = False) -> None:
        """Passes on the delayed requests that are due; with `all_of_it`, all of them."""
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
