"""One JVM (or its machine) as a task knows it, what it answers to one question, and how a question goes to it.

A protocol (`jolokia`, `prometheus`, …) is: how to read one endpoint once. When, how often and what becomes of an
endpoint that doesn't answer is the same for all of them: see `spark_apps.sources.jmx`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import httpx
from streamwarden.base.addresses import address_of
from streamwarden.base.bounded_http import LimitExceeded, json_of, read
from streamwarden.base.config import JmxEndpoint, load_config

from spark_apps.sources.jmx_catalog import Role


@dataclass(frozen=True)
class Endpoint:
    """One JVM, as far as a task may be told: the address stands without credentials."""

    cluster: str
    role: Role
    app: str | None
    protocol: str
    address: str
    """As in `name_of`."""
    has_credentials: bool
    timeout_seconds: float
    match: str | None = None
    """Label matchers of its series, where a Prometheus server is asked for it."""
    section: str = "jmx"
    """Where the config has its credentials; see `spark_apps.sources.targets`."""

    @property
    def url(self) -> str:
        """Where it is asked."""
        return self.address.removesuffix(f"{{{self.match}}}")

    @property
    def resource(self) -> str:
        """What is asked, for people."""
        return f"{self.app or self.role} of {self.cluster} at {self.address}"


@dataclass
class Answer:
    """What one endpoint said at one moment."""

    at: datetime
    process_started_at: datetime | None
    readings: list[tuple[str, str, float | None]]
    """Metric, labels as JSON, value."""
    denied: str | None = None
    """What it wouldn't tell."""
    reported_start: datetime | None = None
    """The start that the process itself reports: the same with every answer, so that equal to it is exact."""
    clashes: tuple[str, ...] = ()
    """Names of metrics that could be read in two ways, and why."""


LARGE_BYTES = 2**18
PARSER = ThreadPoolExecutor(1)
"""Reads large answers, so that neither the other endpoints' answers wait, nor their time-outs pass. One: more would
fight for the interpreter, and hold an answer each."""

SAME_START = timedelta(minutes=1)
"""Starts of a process that differ by less are one start: a start out of two clocks differs with every answer."""


def start_of(at: datetime, uptime_ms: float | None, start: datetime | None) -> datetime | None:
    """When a process started, by our own clock, so that a skewed clock over there spoils no rate.

    Args:
        at: when it answered, by our clock.
        uptime_ms: its uptime. An answer that takes long makes `at` less this late.
        start: the start that it reports, by its own clock: the same with every answer, so that is what counts where
            the two agree.
    """
    by_uptime = at - timedelta(milliseconds=uptime_ms) if uptime_ms is not None else None
    if by_uptime is None or start is None:
        return by_uptime or start
    return min(start, at) if abs(start - by_uptime) < SAME_START else by_uptime


def time_of(seconds: float | None) -> datetime | None:
    """The moment so many seconds after 1970; null where it is none."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def carried_over(answers: Iterable[Answer], known: Iterable[datetime]) -> None:
    """Gives answers of one process the starts that are known already: a start within a minute of one is that one.

    Args:
        answers: of one endpoint; the first of them that agree is the start of all of them.
        known: starts that earlier runs stored.
    """
    starts = sorted(known)
    for answer in answers:
        if (start := answer.process_started_at) is None:
            continue
        if start == answer.reported_start:
            continue  # exact: another one, however soon after the last, is another life
        near = next((one for one in starts if abs(one - start) < SAME_START), None)
        if near is None:
            starts.append(start)
        else:
            answer.process_started_at = near


NOTHING_THERE = "nothing accepts connections there"
CREDENTIALS_REFUSED = "`user` or `password` of the endpoint is missing or not accepted"


class Refused(Exception):
    """Why an endpoint gave nothing; no credentials in it."""


Ask = Callable[[httpx.AsyncClient, Endpoint, int, int], Awaitable[Answer]]
"""Reads an endpoint once: for sample number … (from 0) of …. Raises Refused or TimeoutError."""
AskHour = Callable[[httpx.AsyncClient, Endpoint, datetime], Awaitable[list[Answer]]]
"""Reads what is kept of an hour [H, H + 1 h), which may be long past. Raises the same."""


def with_labels_as_json(
    readings: Iterable[tuple[str, dict[str, str], float | None]],
) -> list[tuple[str, str, float | None]]:
    """Readings as an answer holds them."""
    return [(metric, _as_json(tuple(labels.items())), value) for metric, labels, value in readings]


_NO_CHARACTER = re.compile(r"\\u0000|\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}")


@lru_cache(maxsize=2**16)
def _as_json(labels: tuple[tuple[str, str], ...]) -> str:
    text = json.dumps(dict(labels), sort_keys=True)
    # A client calls itself what it likes; PostgreSQL's jsonb takes neither NUL nor half a surrogate pair.
    return _NO_CHARACTER.sub(r"\\ufffd", text) if "\\u" in text else text


def name_of(endpoint: JmxEndpoint) -> str:
    """What tells an endpoint from the others of its cluster: its address, and which JVM that is asked about."""
    return address_of(endpoint.url) + (f"{{{endpoint.match}}}" if endpoint.match else "")


async def request(
    client: httpx.AsyncClient, endpoint: Endpoint, method: str, path: str = "", **more: Any
) -> httpx.Response:
    """The whole answer with status 200, or Refused with the reason in plain words; TimeoutError after its time-out."""
    try:
        address, auth = _with_credentials(endpoint)
        url = httpx.URL(address)
        url = url.copy_with(path=url.path.rstrip("/") + path) if path else url
        seconds = endpoint.timeout_seconds
        response = await read(client, method, url, seconds=seconds, auth=auth or httpx.USE_CLIENT_DEFAULT, **more)
    except LimitExceeded as limit:
        raise Refused(str(limit)) from None
    except httpx.ConnectError:
        raise Refused(NOTHING_THERE) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise Refused("the address isn't one for its protocol") from None
    except httpx.DecodingError as error:
        raise Refused(f"the answer can't be decompressed: {error}") from None
    except httpx.HTTPError:
        raise Refused("the connection broke off before the answer was complete") from None
    if response.status_code in (401, 403):
        raise Refused(f"HTTP {response.status_code}: {CREDENTIALS_REFUSED}")
    if response.status_code != 200:
        raise Refused(f"HTTP {response.status_code}")
    return response


async def json_document(response: httpx.Response) -> Any:
    """The answer's JSON, None where it isn't JSON; Refused past a limit. The other endpoints don't wait for it."""
    try:
        if len(response.content) < LARGE_BYTES:
            return json_of(response.content)
        return await asyncio.get_running_loop().run_in_executor(PARSER, json_of, response.content)
    except LimitExceeded as limit:
        raise Refused(str(limit)) from None
    except ValueError:
        return None


def _with_credentials(endpoint: Endpoint) -> tuple[str, tuple[str, str] | None]:
    """The address as configured, with its credentials, which only the task reads."""
    if not endpoint.has_credentials:
        return endpoint.url, None
    config, (section, _, number) = load_config(), endpoint.section.partition(".")
    if section == "jmx":
        for e in config.jmx:
            if (e.cluster, e.role, name_of(e)) == (endpoint.cluster, endpoint.role, endpoint.address):
                return e.url, (e.user, e.password or "") if e.user is not None else None
    elif int(number) < len(sections := getattr(config, section)) and "user" in (
        defaults := sections[int(number)].defaults
    ):
        return endpoint.url, (str(defaults["user"]), str(defaults.get("password", "")))
    raise Refused("its credentials aren't in the config of the Spark worker")
