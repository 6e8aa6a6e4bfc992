"""Dropwizard's metrics servlet: JSON over HTTP, from applications that register the JVM's gauges (`metrics-jvm`).

Names are those of `io.dropwizard.metrics.jvm`, under `jvm.` (as Dropwizard and Spark register them), under any
prefix, or without one. Application-specific metrics have no common names and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx

from spark_apps.sources.jmx_endpoint import (
    Answer,
    Endpoint,
    Refused,
    json_document,
    request,
    start_of,
    with_labels_as_json,
)
from spark_apps.sources.jmx_metrics import METRICS
from spark_apps.sources.jmx_readings import number

_UPTIME = "uptime_ms"
_ROOT = r"(?:.+\.)?jvm\."
_MEMORY = rf"(?:{_ROOT}(?:memory\.)?|memory\.)"
_OTHER = rf"(?:{_ROOT})?"
GAUGES: tuple[tuple[re.Pattern[str], str, float], ...] = tuple(
    (re.compile(pattern), metric, factor)
    for pattern, metric, factor in (
        (rf"{_MEMORY}heap\.used", "heap_used_bytes", 1),
        (rf"{_MEMORY}heap\.max", "heap_max_bytes", 1),
        (rf"{_MEMORY}non-heap\.used", "non_heap_used_bytes", 1),
        (rf"{_MEMORY}pools\.(?P<pool>[^.]+)\.used", "memory_pool_used_bytes", 1),
        (rf"{_MEMORY}pools\.(?P<pool>[^.]+)\.used-after-gc", "memory_pool_used_after_gc_bytes", 1),
        (rf"{_OTHER}buffers\.direct\.used", "direct_buffer_bytes", 1),
        (rf"{_OTHER}threads\.count", "threads", 1),
        (rf"{_OTHER}gc\.(?P<collector>[^.]+)\.time", "gc_seconds_total", 1e-3),
        (rf"{_OTHER}gc\.(?P<collector>[^.]+)\.count", "gc_collections_total", 1),
        (rf"{_OTHER}attribute\.uptime", _UPTIME, 1),
    )
)
"""Name, our metric, factor; groups of the pattern are labels."""


async def ask(client: httpx.AsyncClient, endpoint: Endpoint, _sample: int, _samples: int) -> Answer:
    """All metrics of one sample.

    Raises:
        Refused: the response has no JVM metrics.
    """
    response = await request(client, endpoint, "GET", headers={"Accept": "application/json"})
    at = datetime.now(UTC)
    page = await json_document(response)
    gauges = page.get("gauges") if isinstance(page, Mapping) else None
    if not isinstance(gauges, Mapping):
        raise Refused("the response is not the JSON of a Dropwizard metrics servlet; check the address")
    found = list(readings_of(gauges))
    readings = [reading for reading in found if reading[0] in METRICS]
    if not readings:
        raise Refused("there is no JVM gauge; register the gauge sets of metrics-jvm under `jvm`")
    uptime_ms = next((value for metric, _, value in found if metric == _UPTIME), None)
    return Answer(at, start_of(at, uptime_ms, None), with_labels_as_json(readings))


def readings_of(gauges: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """Metric, labels, and value; the first of several gauges for the same metric."""
    seen = set()
    for name, gauge in gauges.items():
        for pattern, metric, factor in GAUGES:
            match = pattern.fullmatch(name)
            if match and (metric, match.groups()) not in seen:
                seen.add((metric, match.groups()))
                value = number(gauge.get("value")) if isinstance(gauge, Mapping) else None
                yield metric, match.groupdict(), None if value is None else value * factor
