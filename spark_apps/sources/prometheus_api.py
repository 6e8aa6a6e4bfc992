"""A Prometheus server that has scraped a JVM: the hour out of its range API, also an hour long past.

The endpoint's `match` tells which series are this JVM's. Names are those of `spark_apps.sources.jmx_series`; a server
answers with what it held at the moments asked for. Two queries: what is read at each moment, and the wide metrics (one
series per topic) at the hour's edges, so that the counts of consecutive hours join.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from streamwarden.base.hours import HOUR

from spark_apps.sources.jmx_endpoint import Answer, Endpoint, Refused, json_document, request, with_labels_as_json
from spark_apps.sources.jmx_series import STARTED, UPTIME, Labels, Names, names_of, readings_of

MOMENTS = 12
"""Gauges are read every five minutes of a whole hour."""


async def ask_hour(client: httpx.AsyncClient, endpoint: Endpoint, hour: datetime) -> list[Answer]:
    """All metrics of an hour, moment by moment."""
    end = min(hour + HOUR, datetime.now(UTC))
    role = endpoint.role
    first, each, last = (names_of(role, sample, 3) for sample in range(3))
    narrow, wide = each.meanings.keys(), last.meanings.keys() - each.meanings.keys()
    found = await _query(client, endpoint, sorted(narrow), hour, end, (end - hour) / MOMENTS)
    at_edges = await _query(client, endpoint, sorted(wide), hour, end, end - hour) if wide else {}
    if not found and not at_edges:
        raise Refused("the server has no series of this JVM for this hour; is `match` right?")

    def names_at(at: datetime) -> Names:
        return first if at == hour else last if at == end else each

    return [
        await asyncio.to_thread(_answer, names_at(at), at, found.get(at, []) + at_edges.get(at, []))
        for at in sorted(found.keys() | at_edges.keys())
    ]


_Series = list[tuple[str, Labels, float]]


def _answer(names: Names, at: datetime, series: _Series) -> Answer:
    readings = list(readings_of(names, (one for one in series if one[0] in names.meanings)))
    beside = {metric: value for metric, _, value in readings if metric in (STARTED, UPTIME)}
    started, uptime_ms = beside.get(STARTED), beside.get(UPTIME)
    # The start first: an uptime is as old as the scrape it comes from.
    if started is not None:
        started_at = _time(started)
    else:
        started_at = at - timedelta(milliseconds=uptime_ms) if uptime_ms is not None else None
    return Answer(at, started_at, with_labels_as_json(r for r in readings if r[0] not in (STARTED, UPTIME)))


async def _query(
    client: httpx.AsyncClient, endpoint: Endpoint, names: list[str], start: datetime, end: datetime, step: timedelta
) -> dict[datetime, _Series]:
    """Series by moment."""
    form = {
        "query": f'{{__name__=~"(?i:{"|".join(names)})",{endpoint.match}}}',
        "start": f"{start.timestamp():.3f}",
        "end": f"{end.timestamp() + 0.001:.3f}",  # a step that doesn't divide the span mustn't lose the last moment
        "step": f"{step.total_seconds():.6f}",
    }
    response = await request(client, endpoint, "POST", path="/api/v1/query_range", data=form)
    reply = await json_document(response)
    try:
        series = reply["data"]["result"] if reply["status"] == "success" else None
        moments = _by_moment(series, start, end, step) if series is not None else None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refused("the answer isn't a Prometheus server's; is this its address?") from None
    if moments is None:
        raise Refused("the server couldn't answer the query")
    return moments


def _by_moment(series: list[Any], start: datetime, end: datetime, step: timedelta) -> dict[datetime, _Series]:
    moments: dict[datetime, _Series] = {}
    for one in series:
        labels = tuple((key, value) for key, value in one["metric"].items() if key != "__name__")
        for seconds, value in one["values"]:
            # Exactly the moment asked for: the server rounds to milliseconds, a step to microseconds.
            at = start + step * round((seconds - start.timestamp()) / step.total_seconds())
            at = end if end - at < timedelta(milliseconds=1) else at
            moments.setdefault(at, []).append((one["metric"]["__name__"].lower(), labels, float(value)))
    return moments


def _time(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
