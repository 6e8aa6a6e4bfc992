"""HTTP as trackers need it.

A question is repeated when it fails; what writes is repeated only when it surely wasn't done (no connection, 429), for
a request that was given up may still land. Credentials stay with their host: redirects are followed there and nowhere
else. An answer that isn't of its shape is none.
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
from streamwarden.rendering.readable import clean, span
from streamwarden.tickets.sinks.contract import TrackerDown, Unsure

TIMEOUT_SECONDS = 15
"""For each step: to connect, and between two pieces of the answer."""
TOTAL_SECONDS = 30
ATTEMPTS = 4
PATIENCE_SECONDS = 90  # the longest that a tracker may ask us to wait
REDIRECTS = 3
PAGE = 100
T = TypeVar("T")

log = logging.getLogger(__name__)


class Refused(StreamwardenError):
    """The tracker understood and said no: nothing was done."""

    def __init__(self, line: str, status: int, message: str) -> None:
        super().__init__(line)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Network:
    """How the world is reached."""

    transport: httpx.AsyncBaseTransport | None = None
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class _Again(Exception):
    """Worth another try, after `wait` seconds where the tracker says how many."""

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
        """`secrets`: what no message may hold, though the tracker repeats it."""
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
            headers={"User-Agent": "streamwarden", "Accept": "application/json", **(headers or {})},
        )

    def get(self, path: str, kind: type[T], **params: Any) -> T:
        """Asks. `kind`: what the answer must be, as pydantic checks it."""
        return self.ask("GET", path, kind, params=params)

    def pages(self, path: str, kind: type[T], **params: Any) -> Iterator[T]:
        """All of a list that is numbered in pages, as GitHub and GitLab do; the next is asked for when it is needed."""
        for page in count(1):
            found = self.get(path, list[kind], **params, per_page=PAGE, page=page)  # type: ignore[valid-type]
            yield from found
            if len(found) < PAGE:
                return

    def ask(self, method: str, path: str, kind: type[T], *, harmless: bool = False, **request: Any) -> T:
        """One request. `harmless`: it may be done twice, though it isn't a GET.

        Raises:
            TrackerDown: it can't be talked to; nothing was done.
            Unsure: it may have been done.
            Refused: the tracker says no.
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
            raise TrackerDown(f"{self.url}: the tracker doesn't answer: {error}") from None

    def refusal(self, method: str, path: str, said: Any, status: int) -> Refused:
        """What a tracker says instead of doing it, in one line."""
        message = self._plain("; ".join(dict.fromkeys(_reasons(said))) or "no reason given")
        return Refused(f"{self.url}: {method} {path.partition('?')[0]}: {message} (HTTP {status})", status, message)

    def _once(self, method: str, path: str, kind: type[T], repeatable: bool, request: dict[str, Any]) -> T:
        answer = self._answer(method, path, repeatable, request)
        try:
            said = json_of(answer.content)
        except LimitExceeded as limit:
            raise self._beyond(f"{method} {path.partition('?')[0]}: {limit}", repeatable) from None
        except ValueError:
            said = None
        if answer.status_code == 401:
            raise TrackerDown(
                f"{self.url}: the tracker doesn't know us (HTTP 401): check `password` (or `connection`) of"
                f" tickets.trackers.{self.tracker}."
            )
        if answer.status_code >= 400:
            raise self.refusal(method, path, said, answer.status_code)
        if kind is type(None) and answer.content:
            raise self._lost(f"{method} {path}: the answer isn't empty", repeatable)
        try:
            return _adapter(kind).validate_python(said)  # type: ignore[arg-type]
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            why = (
                f"{method} {path.partition('?')[0]}: the answer isn't what its API says{f' ({place})' if place else ''}"
            )
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
            if (wait := _asked_to_wait(answer, self._network.now())) is not None:
                if wait > PATIENCE_SECONDS:
                    raise TrackerDown(f"{self.url}: too many requests; it asks to wait for {span(wait)}.")
                raise _Again(f"HTTP {answer.status_code}", wait)
            if answer.status_code >= 500:
                raise self._lost(f"HTTP {answer.status_code}", repeatable)
            if answer.status_code not in (301, 302, 307, 308):
                return answer
            url = self._moved(url, answer)
        raise TrackerDown(f"{self.url}: it leads from one address to the next.")

    def _moved(self, url: str, answer: httpx.Response) -> str:
        target = urljoin(url, answer.headers.get("Location", ""))
        here, there = urlsplit(self.url), urlsplit(target)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            host = f"{there.scheme}://{there.netloc.rpartition('@')[2]}"
            raise TrackerDown(f"{self.url}: it leads to {clean(host)}, where credentials aren't sent: check `url`.")
        log.warning("tickets.trackers.%s: %s has moved to %s", self.tracker, urlsplit(url).path, there.path)
        return target

    def _lost(self, why: str, repeatable: bool) -> Exception:
        return _Again(why) if repeatable else Unsure(f"{self.url}: no clear answer: {why}")

    def _beyond(self, why: str, repeatable: bool) -> Exception:
        """To ask again would cost as much again."""
        return (TrackerDown if repeatable else Unsure)(f"{self.url}: {why}.")

    def _plain(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        told = clean(text)
        return told if len(told) <= 300 else f"{told[:299]}…"


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _Again) and error.wait is not None:
        return error.wait
    return wait_random_exponential(multiplier=0.2, max=3)(state)


def _asked_to_wait(answer: httpx.Response, now: datetime) -> float | None:
    """Seconds, where the tracker says that these were too many requests."""
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


_SAY = ("message", "error", "errors", "errorMessages", "detail", "error_description", "msg", "description")


def _reasons(said: Any) -> Iterator[str]:
    """The words in an error's body: GitHub's `message` and `errors`, Jira's `errorMessages`, ServiceNow's `error`, …"""
    if isinstance(said, str):
        yield said
    elif isinstance(said, list):
        for part in said:
            yield from _reasons(part)
    elif isinstance(said, dict) and any(key in said for key in _SAY):
        for key in _SAY:
            yield from _reasons(said.get(key))
    elif isinstance(said, dict):
        for key, value in said.items():
            told = ", ".join(_reasons(value)) if isinstance(value, list | dict) else str(value)
            yield f"{key}: {told}"
