"""A Prometheus server that has scraped a JVM: the hour out of its range API, also an hour long past.

The endpoint's `match` tells which series are this JVM's. Names are those of `spark_apps.sources.jmx_series`; a server
answers with what it held at the moments asked for. Two queries: what is read at each moment, and the wide metrics (one
series per topic) at the hour's edges, so that the counts of consecutive hours join.

An answer that the server itself calls partial is none: figures that are sums over series would come out too small.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from streamwarden.base.hours import HOUR

from spark_apps.sources.jmx_endpoint import (
    Answer,
    Endpoint,
    Refused,
    json_document,
    request,
    start_of,
    time_of,
    with_labels_as_json,
)
from spark_apps.sources.jmx_series import Clash, Labels, Names, names_of, readings_of, replicas_in
from spark_apps.sources.known_series import STARTED, UPTIME
from spark_apps.sources.series_forms import rendered

MOMENTS = 12
"""Gauges are read every five minutes of a whole hour."""
_LONGEST_WARNING = 300


async def ask_hour(client: httpx.AsyncClient, endpoint: Endpoint, hour: datetime) -> list[Answer]:
    """All metrics of an hour, moment by moment."""
    end = min(hour + HOUR, datetime.now(UTC))
    role = endpoint.role
    first, each, last = (names_of(role, sample, 3) for sample in range(3))
    narrow, wide = each.queries, last.queries - each.queries
    found = await _query(client, endpoint, narrow, hour, end, (end - hour) / MOMENTS)
    at_edges = await _query(client, endpoint, wide, hour, end, end - hour) if wide else {}
    if not found and not at_edges:
        raise Refused("the server has no series of this JVM for this hour; is `match` right?")

    def names_at(at: datetime) -> Names:
        return first if at == hour else last if at == end else each

    return [
        await asyncio.to_thread(_answer, names_at(at), at, found.get(at, []) + at_edges.get(at, []))
        for at in sorted(found.keys() | at_edges.keys())
    ]


async def ask_replicas(client: httpx.AsyncClient, endpoint: Endpoint, hour: datetime) -> dict[str, set[str]]:
    """Labels other than key properties in which series that `match` selects differ, by the values at the hour's start:
    of servers of a highly available pair, or of several JVMs. Raises Refused or TimeoutError."""
    names = names_of(endpoint.role, 0, 1)
    found = await _query(client, endpoint, names.queries, hour, hour, HOUR)
    return replicas_in(names, found.get(hour, []))


_Series = list[tuple[str, Labels, float]]


def _answer(names: Names, at: datetime, series: _Series) -> Answer:
    clashes: list[Clash] = []
    readings = list(readings_of(names, series, clashes))
    beside = {metric: value for metric, _, value in readings if metric in (STARTED, UPTIME)}
    started, uptime_ms = beside.get(STARTED), beside.get(UPTIME)
    # The start first: an uptime is as old as the scrape it comes from.
    started_at = time_of(started) if started is not None else start_of(at, uptime_ms, None)
    ours = with_labels_as_json(r for r in readings if r[0] not in (STARTED, UPTIME))
    return Answer(at, started_at, ours, clashes=tuple(map(str, clashes)))


async def _query(
    client: httpx.AsyncClient,
    endpoint: Endpoint,
    queries: Collection[tuple[str, str]],
    start: datetime,
    end: datetime,
    step: timedelta,
) -> dict[datetime, _Series]:
    """Series by moment."""
    form = {
        "query": f'{{__name__=~"(?i:{rendered(queries)})",{endpoint.match}}}',
        "start": f"{start.timestamp():.3f}",
        "end": f"{end.timestamp() + 0.001:.3f}",  # a step that doesn't divide the span mustn't lose the last moment
        "step": f"{step.total_seconds():.6f}",
    }
    response = await request(client, endpoint, "POST", path="/api/v1/query_range", data=form)
    reply = await json_document(response)
    try:
        series = reply["data"]["result"] if reply["status"] == "success" else None
        moments = _by_moment(series, start, end, step) if series is not None else None
        lacking = _lacking(reply)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused("the answer isn't a Prometheus server's; is this its address?") from None
    if moments is None:
        raise Refused("the server couldn't answer the query")
    if lacking:
        raise Refused(f"the server's answer is partial: {lacking}")
    return moments


def _lacking(reply: dict[str, Any]) -> str | None:
    """What the server says is missing from its answer: warnings of Prometheus, Thanos, Mimir; VictoriaMetrics' mark.

    `infos` are about the query, and leave nothing out.
    """
    if warnings := reply.get("warnings"):
        text = "; ".join(map(str, warnings)) if isinstance(warnings, list) else str(warnings)
        return text if len(text) <= _LONGEST_WARNING else f"{text[:_LONGEST_WARNING]}…"
    return "some of its storage nodes didn't answer" if reply.get("isPartial") else None


def _by_moment(series: list[Any], start: datetime, end: datetime, step: timedelta) -> dict[datetime, _Series]:
    """Of series that say the same, as two servers of a pair do, the one that goes on the longest stands last."""
    moments: dict[datetime, _Series] = {}
    for one in sorted(series, key=lambda one: (one["values"][-1][0], sorted(one["metric"].items()))):
        labels = tuple((key, value) for key, value in one["metric"].items() if key != "__name__")
        for seconds, value in one["values"]:
            # Exactly the moment asked for: the server rounds to milliseconds, a step to microseconds.
            at = start + step * round((seconds - start.timestamp()) / step.total_seconds())
            at = end if end - at < timedelta(milliseconds=1) else at
            moments.setdefault(at, []).append((one["metric"]["__name__"], labels, float(value)))
    return moments
