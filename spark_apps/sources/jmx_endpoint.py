"""One JVM (or host) as a task knows it, its response to one request, and how a request is sent.

A protocol (`jolokia`, `prometheus`, …) only defines how to read one endpoint once. Schedule, number of samples, and
handling of endpoints that do not respond are the same for all: see `spark_apps.sources.jmx`.
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

from spark_apps.sources.jmx_mbeans import Role


@dataclass(frozen=True)
class Endpoint:
    """One JVM, as options of a task have it: the address without credentials."""

    cluster: str
    role: Role
    app: str | None
    protocol: str
    address: str
    """As in `name_of`."""
    has_credentials: bool
    timeout_seconds: float
    match: str | None = None
    """Label matchers of its series, for a Prometheus server."""
    section: str = "jmx"
    """Section of the config with its credentials; see `spark_apps.sources.targets`."""

    @property
    def url(self) -> str:
        """URL that is requested."""
        return self.address.removesuffix(f"{{{self.match}}}")

    @property
    def resource(self) -> str:
        """Name of the resource, for messages."""
        return f"{self.app or self.role} of {self.cluster} at {self.address}"


@dataclass
class Answer:
    """Response of one endpoint at one time."""

    at: datetime
    process_started_at: datetime | None
    readings: list[tuple[str, str, float | None]]
    """Metric, labels as JSON, value."""
    denied: str | None = None
    """MBeans that were denied, as a message."""
    reported_start: datetime | None = None
    """The start time that the process itself reports: equal in every response, so that an equal time is exact."""
    clashes: tuple[str, ...] = ()
    """Names of metrics that could be read in two ways, and why."""


LARGE_BYTES = 2**18
PARSER = ThreadPoolExecutor(1)
"""Parses large responses in a thread, so that responses and timeouts of other endpoints are not delayed. One thread:
more would compete for the interpreter, and hold a response each."""

SAME_START = timedelta(minutes=1)
"""Start times of a process that differ by less are the same: one computed from two clocks varies with every
response."""


def start_of(at: datetime, uptime_ms: float | None, start: datetime | None) -> datetime | None:
    """Start time of a process by our clock, so that clock skew of its host does not affect rates.

    Args:
        at: time of the response, by our clock.
        uptime_ms: its uptime. A slow response makes `at` minus uptime late.
        start: the start time that it reports, by its own clock: equal in every response, so it is used if both agree.
    """
    by_uptime = at - timedelta(milliseconds=uptime_ms) if uptime_ms is not None else None
    if by_uptime is None or start is None:
        return by_uptime or start
    return min(start, at) if abs(start - by_uptime) < SAME_START else by_uptime


def time_of(seconds: float | None) -> datetime | None:
    """Time from seconds since 1970; null for values out of range."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def carried_over(answers: Iterable[Answer], known: Iterable[datetime]) -> None:
    """Replaces start times of one process by known ones: times within a minute are the same start.

    Args:
        answers: of one endpoint; the first of those that agree is the start of all of them.
        known: start times that earlier runs stored.
    """
    starts = sorted(known)
    for answer in answers:
        if (start := answer.process_started_at) is None:
            continue
        if start == answer.reported_start:
            continue  # exact: a different one is another process, however soon after the last
        near = next((one for one in starts if abs(one - start) < SAME_START), None)
        if near is None:
            starts.append(start)
        else:
            answer.process_started_at = near


NOTHING_THERE = "cannot connect (connection refused or unknown host)"
CREDENTIALS_REFUSED = "`user` or `password` of the endpoint is missing or was rejected"


class Refused(Exception):
    """Why an endpoint gave no data, without credentials."""


Ask = Callable[[httpx.AsyncClient, Endpoint, int, int], Awaitable[Answer]]
"""Reads an endpoint once: for sample number … (from 0) of …. Raises Refused or TimeoutError."""
AskHour = Callable[[httpx.AsyncClient, Endpoint, datetime], Awaitable[list[Answer]]]
"""Reads stored data of an hour [H, H + 1 h), which may be long past. Raises Refused or TimeoutError."""


def with_labels_as_json(
    readings: Iterable[tuple[str, dict[str, str], float | None]],
) -> list[tuple[str, str, float | None]]:
    """Readings with labels as JSON, as in `Answer`."""
    return [(metric, _as_json(tuple(labels.items())), value) for metric, labels, value in readings]


_NO_CHARACTER = re.compile(r"\\u0000|\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}")


@lru_cache(maxsize=2**16)
def _as_json(labels: tuple[tuple[str, str], ...]) -> str:
    text = json.dumps(dict(labels), sort_keys=True)
    # Client ids are arbitrary text; PostgreSQL's jsonb rejects NUL and unpaired surrogates.
    return _NO_CHARACTER.sub(r"\\ufffd", text) if "\\u" in text else text


def name_of(endpoint: JmxEndpoint) -> str:
    """Identifies an endpoint within its cluster: its address, and the `match` of the JVM on a Prometheus server."""
    return address_of(endpoint.url) + (f"{{{endpoint.match}}}" if endpoint.match else "")


async def request(
    client: httpx.AsyncClient, endpoint: Endpoint, method: str, path: str = "", **more: Any
) -> httpx.Response:
    """The complete response with status 200.

    Raises:
        Refused: any other response, with a message.
        TimeoutError: no complete response within the endpoint's timeout.
    """
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
        raise Refused("the address is not valid for its protocol") from None
    except httpx.DecodingError as error:
        raise Refused(f"the response cannot be decompressed: {error}") from None
    except httpx.HTTPError:
        raise Refused("the connection was closed before the response was complete") from None
    if response.status_code in (401, 403):
        raise Refused(f"HTTP {response.status_code}: {CREDENTIALS_REFUSED}")
    if response.status_code != 200:
        raise Refused(f"HTTP {response.status_code}")
    return response


async def json_document(response: httpx.Response) -> Any:
    """The response's JSON, None if it is not JSON; Refused above a limit. Other endpoints are not delayed."""
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
    raise Refused("the credentials are not in the config of the Spark worker")
