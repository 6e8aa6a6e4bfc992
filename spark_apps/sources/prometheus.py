"""Pages in the Prometheus exposition format, scraped directly: JMX exporter, MSK's open monitoring, Micrometer, node
exporter.

A page of a broker with a thousand topics is several MB, of which a tenth is needed: lines are selected by name, and
only those in the catalog are parsed. One of these that cannot be parsed invalidates the page, as in Prometheus: sums
over series would be too small.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

import httpx
from streamwarden.base.bounded_http import LimitExceeded, lines_of

from spark_apps.sources.jmx_endpoint import (
    LARGE_BYTES,
    PARSER,
    Answer,
    Endpoint,
    Refused,
    request,
    start_of,
    time_of,
    with_labels_as_json,
)
from spark_apps.sources.jmx_series import OBJECT_NAME, Clash, Labels, Names, names_of, readings_of
from spark_apps.sources.known_series import STARTED, UPTIME
from spark_apps.sources.series_forms import squashed

ACCEPT = {"Accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1"}
_SKEW = timedelta(seconds=2)
"""Clocks that differ by less are the same: the Date header has no fractions."""
_LABEL = r'([a-zA-Z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"'
_SERIES = re.compile(
    rf"([a-zA-Z_:][\w:]*)[ \t]*(?:\{{[ \t]*((?:{_LABEL}[ \t]*(?:,[ \t]*|(?=\}})))*)\}})?[ \t]*"
    r"(?<=[ \t}])([^\s_]+)(?:[ \t]+-?[\d.]+)?[ \t]*(?:#.*)?",
    re.ASCII,
)
_LABELS = re.compile(_LABEL, re.ASCII)
_BRACED = re.compile(r'\{(?:[a-zA-Z_]\w*="[^"\\]*"(?:,|(?=\})))*\}', re.ASCII)
_FAILED_SCRAPE = re.compile(rb"^jmx_scrape_error(?:\{[^}\n]*\})?[ \t]+1(?:\.0)?[ \t\r]*$", re.MULTILINE)
"""The JMX exporter exposes what it had read until an error: sums would be too small."""
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


async def ask(client: httpx.AsyncClient, endpoint: Endpoint, sample: int, samples: int) -> Answer:
    """All metrics of one sample.

    Raises:
        Refused: the page is not a valid exposition of JVM metrics.
    """
    response = await request(client, endpoint, "GET", headers=ACCEPT)
    at = datetime.now(UTC)
    names = names_of(endpoint.role, sample, samples)
    if len(response.content) < LARGE_BYTES:
        return _answer(response, at, names)
    return await asyncio.get_running_loop().run_in_executor(PARSER, _answer, response, at, names)


def _answer(response: httpx.Response, at: datetime, names: Names) -> Answer:
    clashes: list[Clash] = []
    readings = list(readings_of(names, series_of(response.content, names), clashes))
    process_times = {metric: value for metric, _, value in readings if metric in (STARTED, UPTIME)}
    started_at = _started_at(at, _date_of(response), process_times.get(STARTED), process_times.get(UPTIME))
    ours = with_labels_as_json(r for r in readings if r[0] not in (STARTED, UPTIME))
    return Answer(at, started_at, ours, clashes=tuple(map(str, clashes)))


def _started_at(
    at: datetime, their_now: datetime | None, started: float | None, uptime_ms: float | None
) -> datetime | None:
    """The start time by our clock, so that clock skew of the host does not affect rates.

    The uptime is the JVM's own; the start time may be that of an exporter next to it, which the uptime then
    contradicts.
    """
    start = time_of(started)
    skew = their_now - at if their_now else timedelta()
    if start is not None and abs(skew) > _SKEW:
        start -= skew
    return start_of(at, uptime_ms, start)


def _date_of(response: httpx.Response) -> datetime | None:
    try:
        responded_at = parsedate_to_datetime(response.headers["Date"])
    except (KeyError, ValueError):
        return None
    return responded_at if responded_at.tzinfo else responded_at.replace(tzinfo=UTC)


def series_of(page: bytes, names: Names) -> Iterator[tuple[str, Labels, float]]:
    """Name, labels and value of the requested series.

    Raises:
        Refused: not in the exposition format, truncated, above a limit, or without any known metric.
    """
    try:
        text = page.decode()
    except UnicodeDecodeError:
        raise Refused("the response is not text; check that this is the address of an exporter") from None
    try:
        lines = lines_of(text.replace("\r\n", "\n") if "\r" in text else text)
    except LimitExceeded as limit:
        raise Refused(str(limit)) from None
    first = next((line for line in lines if line and not line.startswith("#")), None)
    if first is None or not _SERIES.fullmatch(first):
        raise Refused("the response is not in the Prometheus exposition format; check the address")
    if lines[-1]:
        raise Refused("the response ends in the middle of a line")
    if _FAILED_SCRAPE.search(page):
        raise Refused("the exporter could not read all MBeans (jmx_scrape_error is 1); see its log")
    known_as: dict[str, str | None] = {}
    found = False
    unwanted = "#"
    for number, line in enumerate(lines, 1):
        if line.startswith(unwanted):  # series of one name are contiguous
            continue
        name = line.partition("{")[0]
        if " " in name or "\t" in name:
            name = (name.split(None, 1) or [""])[0]
        if name not in known_as:
            is_known = squashed(name) in names.meanings or OBJECT_NAME in line
            known_as[name] = squashed(name) if is_known else None
        known = known_as[name]
        if known is None:
            unwanted = f"{name}{{"
        else:
            found = True
            if known not in names.hints or names.hints[known].search(line) or OBJECT_NAME in line:
                yield name, *(_plain(line, len(name)) or _parsed(line, number))
    if not found:
        raise Refused("the page has no expected metrics; check that this is the address of the right exporter")


def _plain(line: str, name_ends: int) -> tuple[Labels, float] | None:
    """Parses a line of just `name{label="value",…} value`, as nearly all are."""
    braced, _, value = line[name_ends:].rpartition(" ")
    labels = _labels_of(braced)
    try:
        return None if labels is None else (labels, float(value))
    except ValueError:
        return None


@lru_cache(maxsize=2**17)
def _labels_of(braced: str) -> Labels | None:
    """Labels in braces. Cached: all brokers of a cluster have the same."""
    return tuple(_LABELS.findall(braced)) if _BRACED.fullmatch(braced) else None


def _parsed(line: str, number: int) -> tuple[Labels, float]:
    parsed = _SERIES.fullmatch(line)
    try:
        value = float(parsed[5]) if parsed else None
    except ValueError:
        value = None
    if parsed is None or value is None:
        raise Refused(f"line {number} of the response is not in the Prometheus exposition format")
    labels = _LABELS.findall(parsed[2] or "")
    return tuple((key, re.sub(r"\\.", lambda m: _ESCAPED.get(m[0], m[0]), escaped)) for key, escaped in labels), value
