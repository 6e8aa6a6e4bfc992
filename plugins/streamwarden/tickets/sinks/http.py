"""HTTP requests to trackers.

A failed read is retried. A write is retried only if it certainly had no effect (no connection, HTTP 429), because a
request that timed out may still take effect. Redirects to other hosts are refused, so that credentials stay with their
host. A response that does not match its schema counts as no response.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from streamwarden.base.bounded_http import BoundedClient, LimitExceeded, json_of
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.version import USER_AGENT
from streamwarden.rendering.readable import clean, span
from streamwarden.tickets.sinks.contract import TrackerDown, Unsure

TIMEOUT_SECONDS = 15
"""Timeout of each step: to connect, and between two pieces of the response."""
TOTAL_SECONDS = 30
ATTEMPTS = 4
PATIENCE_SECONDS = 90  # longest wait that a tracker may request
REDIRECTS = 3
PAGE = 100
T = TypeVar("T")

log = logging.getLogger(__name__)


class Refused(StreamwardenError):
    """The tracker rejected the request; it had no effect."""

    def __init__(self, line: str, status: int, message: str) -> None:
        super().__init__(line)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Network:
    """Transport, pauses, and clock; tests replace them."""

    transport: httpx.AsyncBaseTransport | None = None
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class _Again(Exception):
    """The request may be repeated, after `wait` seconds where the tracker requests a wait."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Api:
    """The HTTP interface of one tracker."""

    def __init__(
        self,
        tracker: str,
        url: str,
        network: Network,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        """`secrets`: texts that are masked in every message."""
        self.tracker = tracker
        self.url = url.rstrip("/")
        self._network = network
        self._secrets = tuple(secret for secret in (*secrets, *(auth or ())[1:]) if secret)
        self._client = BoundedClient(
            seconds=TOTAL_SECONDS,
            auth=auth,
            timeout=TIMEOUT_SECONDS,
            transport=network.transport,
            follow_redirects=False,
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", **(headers or {})},
        )

    def get(self, path: str, kind: type[T], **params: Any) -> T:
        """A read. `kind`: type of the response, validated by pydantic; errors as `request`."""
        return self.request("GET", path, kind, params=params)

    def pages(self, path: str, kind: type[T], **params: Any) -> Iterator[T]:
        """All entries of a list with numbered pages (GitHub, GitLab); pages are fetched when needed."""
        for page in count(1):
            found = self.get(path, list[kind], **params, per_page=PAGE, page=page)  # type: ignore[valid-type]
            yield from found
            if len(found) < PAGE:
                return

    def request(self, method: str, path: str, kind: type[T], *, harmless: bool = False, **request: Any) -> T:
        """One request.

        Args:
            kind: type of the response, validated by pydantic.
            harmless: whether it may be done twice, though it is not a GET.

        Raises:
            TrackerDown: the tracker is not reachable; nothing was done.
            Unsure: the response was lost; the request may have been done.
            Refused: the tracker refused it; nothing was done.
        """
        repeatable = harmless or method == "GET"
        again = Retrying(
            retry=retry_if_exception_type(_Again),
            stop=stop_after_attempt(ATTEMPTS),
            wait=_wait,
            sleep=self._network.pause,
            reraise=True,
        )
        try:
            return again(self._once, method, path, kind, repeatable, request)
        except _Again as error:
            raise TrackerDown(f"{self.url}: the tracker does not respond: {error}") from None

    def refusal(self, method: str, path: str, body: Any, status: int) -> Refused:
        """A refusal with the messages in the body of the response, in one line."""
        message = self._plain("; ".join(dict.fromkeys(_messages(body))) or "no message given")
        return Refused(f"{self.url}: {method} {path.partition('?')[0]}: {message} (HTTP {status})", status, message)

    def _once(self, method: str, path: str, kind: type[T], repeatable: bool, request: dict[str, Any]) -> T:
        answer = self._answer(method, path, repeatable, request)
        try:
            body = json_of(answer.content)
        except LimitExceeded as limit:
            raise self._beyond(f"{method} {path.partition('?')[0]}: {limit}", repeatable) from None
        except ValueError:
            body = None
        if answer.status_code == 401:
            raise TrackerDown(
                f"{self.url}: the tracker rejects the credentials (HTTP 401): check `user` and `password`"
                f" (or `connection`) of tickets.trackers.{self.tracker}."
            )
        if answer.status_code >= 400:
            raise self.refusal(method, path, body, answer.status_code)
        if kind is type(None) and answer.content:
            raise self._lost(f"{method} {path}: the response is not empty", repeatable)
        try:
            return _adapter(kind).validate_python(body)  # type: ignore[arg-type]
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            why = f"{method} {path.partition('?')[0]}: response does not match the API{f' ({place})' if place else ''}"
            raise self._lost(why, repeatable) from None

    def _answer(self, method: str, path: str, repeatable: bool, request: dict[str, Any]) -> httpx.Response:
        url = path if path.startswith(("https://", "http://")) else f"{self.url}{path}"
        for _ in range(REDIRECTS + 1):
            try:
                answer = self._client.request(method, url, **request)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
                raise _Again(self._plain(str(error)) or type(error).__name__) from None
            except LimitExceeded as limit:
                raise self._beyond(f"{method} {path.partition('?')[0]}: {limit}", repeatable) from None
            except httpx.HTTPError as error:
                raise self._lost(self._plain(str(error)) or type(error).__name__, repeatable) from None
            if (wait := _requested_wait(answer, self._network.now())) is not None:
                if wait > PATIENCE_SECONDS:
                    raise TrackerDown(f"{self.url}: rate limit exceeded: the tracker requests a wait of {span(wait)}.")
                raise _Again(f"HTTP {answer.status_code}", wait)
            if answer.status_code >= 500:
                raise self._lost(f"HTTP {answer.status_code}", repeatable)
            if answer.status_code not in (301, 302, 307, 308):
                return answer
            url = self._moved(url, answer)
        raise TrackerDown(f"{self.url}: too many redirects.")

    def _moved(self, url: str, answer: httpx.Response) -> str:
        target = urljoin(url, answer.headers.get("Location", ""))
        here, there = urlsplit(self.url), urlsplit(target)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            host = f"{there.scheme}://{there.netloc.rpartition('@')[2]}"
            raise TrackerDown(
                f"{self.url}: redirects to {clean(host)}. Credentials are not sent to another host: check `url`."
            )
        log.warning("tickets.trackers.%s: %s has moved to %s", self.tracker, urlsplit(url).path, there.path)
        return target

    def _lost(self, why: str, repeatable: bool) -> Exception:
        return _Again(why) if repeatable else Unsure(f"{self.url}: no clear response: {why}")

    def _beyond(self, why: str, repeatable: bool) -> Exception:
        """A retry would have the same result."""
        return (TrackerDown if repeatable else Unsure)(f"{self.url}: {why}.")

    def _plain(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        line = clean(text)
        return line if len(line) <= 300 else f"{line[:299]}…"


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _Again) and error.wait is not None:
        return error.wait
    return wait_random_exponential(multiplier=0.2, max=3)(state)


def _requested_wait(answer: httpx.Response, now: datetime) -> float | None:
    """Seconds to wait, where the tracker limits the rate of requests."""
    headers = answer.headers
    exhausted = headers.get("x-ratelimit-remaining") == "0"
    if answer.status_code != 429 and not (answer.status_code == 403 and (exhausted or "retry-after" in headers)):
        return None
    try:
        if "retry-after" in headers:
            wait = headers["retry-after"]
            seconds = float(wait) if wait.isdigit() else (parsedate_to_datetime(wait) - now).total_seconds()
        elif exhausted and "x-ratelimit-reset" in headers:
            seconds = float(headers["x-ratelimit-reset"]) - now.timestamp()
        else:
            seconds = 1.0
    except (TypeError, ValueError):
        seconds = 1.0
    return max(seconds, 0.0)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


_MESSAGE_KEYS = ("message", "error", "errors", "errorMessages", "detail", "error_description", "msg", "description")


def _messages(body: Any) -> Iterator[str]:
    """The messages in the body of an error: `message` and `errors` of GitHub, `errorMessages` of Jira, …"""
    if isinstance(body, str):
        yield body
    elif isinstance(body, list):
        for part in body:
            yield from _messages(part)
    elif isinstance(body, dict) and any(key in body for key in _MESSAGE_KEYS):
        for key in _MESSAGE_KEYS:
            yield from _messages(body.get(key))
    elif isinstance(body, dict):
        for key, value in body.items():
            text = ", ".join(_messages(value)) if isinstance(value, list | dict) else str(value)
            yield f"{key}: {text}"
