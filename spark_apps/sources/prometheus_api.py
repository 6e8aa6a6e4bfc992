"""A Prometheus server that has scraped a JVM: the hour from its range API, even if it is long past.

The endpoint's `match` selects the series of the JVM. Names are those of `spark_apps.sources.jmx_series`. Two
queries: the metrics of each sample, and the wide metrics (one series per topic) at the start and end of the hour, so
that the counts of consecutive hours join.

A response that the server marks as partial is not used: sums over series would be too small.
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
    """All metrics of an hour, by time.

    Raises:
        Refused: the server has no series, or did not return them.
    """
    end = min(hour + HOUR, datetime.now(UTC))
    role = endpoint.role
    first, each, last = (names_of(role, sample, 3) for sample in range(3))
    narrow, wide = each.queries, last.queries - each.queries
    found = await _query(client, endpoint, narrow, hour, end, (end - hour) / MOMENTS)
    at_edges = await _query(client, endpoint, wide, hour, end, end - hour) if wide else {}
    if not found and not at_edges:
        raise Refused("the server has no series of this JVM for this hour; check `match`")

    def names_at(at: datetime) -> Names:
        """Metrics to read at this time."""
        return first if at == hour else last if at == end else each

    return [
        await asyncio.to_thread(_answer, names_at(at), at, found.get(at, []) + at_edges.get(at, []))
        for at in sorted(found.keys() | at_edges.keys())
    ]


async def ask_replicas(client: httpx.AsyncClient, endpoint: Endpoint, hour: datetime) -> dict[str, set[str]]:
    """Labels, other than key properties, in which series selected by `match` differ, with their values at the hour's
    start.

    They show replicas of a highly available pair, or several JVMs. Raises Refused or TimeoutError.
    """
    names = names_of(endpoint.role, 0, 1)
    found = await _query(client, endpoint, names.queries, hour, hour, HOUR)
    return replicas_in(names, found.get(hour, []))


_Series = list[tuple[str, Labels, float]]


def _answer(names: Names, at: datetime, series: _Series) -> Answer:
    clashes: list[Clash] = []
    readings = list(readings_of(names, series, clashes))
    process_times = {metric: value for metric, _, value in readings if metric in (STARTED, UPTIME)}
    started, uptime_ms = process_times.get(STARTED), process_times.get(UPTIME)
    # The start time first: an uptime is as old as its scrape.
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
    """Series by time."""
    form = {
        "query": f'{{__name__=~"(?i:{rendered(queries)})",{endpoint.match}}}',
        "start": f"{start.timestamp():.3f}",
        "end": f"{end.timestamp() + 0.001:.3f}",  # includes the last time, if the step does not divide the span
        "step": f"{step.total_seconds():.6f}",
    }
    response = await request(client, endpoint, "POST", path="/api/v1/query_range", data=form)
    reply = await json_document(response)
    try:
        series = reply["data"]["result"] if reply["status"] == "success" else None
        moments = _by_moment(series, start, end, step) if series is not None else None
        missing = _missing(reply) or response.headers.get("M3-Results-Limited")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused("the response is not from a Prometheus server; check the address") from None
    if moments is None:
        raise Refused("the server could not evaluate the query")
    if missing:
        raise Refused(f"the server's response is partial: {missing}")
    return moments


def _missing(reply: dict[str, Any]) -> str | None:
    """Missing data as reported by the server: warnings of Prometheus, Thanos, and Mimir; VictoriaMetrics' isPartial.

    `infos` are about the query, and mean no missing data.
    """
    if warnings := reply.get("warnings"):
        text = "; ".join(map(str, warnings)) if isinstance(warnings, list) else str(warnings)
        return text if len(text) <= _LONGEST_WARNING else f"{text[:_LONGEST_WARNING]}…"
    return "some storage nodes did not respond" if reply.get("isPartial") else None


def _by_moment(series: list[Any], start: datetime, end: datetime, step: timedelta) -> dict[datetime, _Series]:
    """Series by time; of equal series, as from two servers of a pair, the one that continues the longest comes last."""
    moments: dict[datetime, _Series] = {}
    with_numbers = [one for one in series if one.get("values")]  # native histograms have none
    for one in sorted(with_numbers, key=lambda one: (one["values"][-1][0], sorted(one["metric"].items()))):
        labels = tuple((key, value) for key, value in one["metric"].items() if key != "__name__")
        for seconds, value in one["values"]:
            # The exact requested time: the server rounds to milliseconds, a step to microseconds.
            at = start + step * round((seconds - start.timestamp()) / step.total_seconds())
            at = end if end - at < timedelta(milliseconds=1) else at
            moments.setdefault(at, []).append((one["metric"]["__name__"], labels, float(value)))
    return moments
