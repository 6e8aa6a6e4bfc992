"""Jolokia's JVM agent, and JMX-RMI through the same interface: one bulk POST reads all MBeans of a sample."""

from __future__ import annotations

from collections.abc import Mapping
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
    time_of,
    with_labels_as_json,
)
from spark_apps.sources.jmx_readings import beans_of, number, readings_of

_RUNTIME = {"type": "read", "mbean": "java.lang:type=Runtime", "attribute": ["Uptime", "StartTime"]}


async def ask(client: httpx.AsyncClient, endpoint: Endpoint, sample: int, samples: int) -> Answer:
    """All metrics of one sample.

    Raises:
        Refused: the response is not Jolokia's, or an error.
    """
    beans = beans_of(endpoint.role, sample, samples)
    # Patterns throughout: with an exact name, one unknown attribute would lose the whole MBean to a 404.
    wanted = [_RUNTIME] + [
        {"type": "read", "mbean": f"{b.pattern},*", "attribute": b.attributes, "config": {"ignoreErrors": True}}
        for b in beans
    ]
    entries = await _post(client, endpoint, wanted)
    at = datetime.now(UTC)
    runtime = _value_of(entries[0])
    start_ms = number(runtime.get("StartTime"))
    start = time_of(None if start_ms is None else start_ms / 1000)
    answer = Answer(at, start_of(at, number(runtime.get("Uptime")), start), [], reported_start=start)
    denied: list[str] = []
    for bean, entry in zip(beans, entries[1:], strict=True):  # by position: an entry may omit its request
        if entry.get("status") not in (200, 404):  # 404: this JVM does not have the MBean
            denied.append(bean.pattern)
        answer.readings += with_labels_as_json(readings_of(bean, _value_of(entry)))
    if denied:
        answer.denied = f"{len(denied)} of {len(beans)} groups of MBeans were denied, such as {denied[0]}"
    return answer


def _value_of(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    value = entry.get("value")
    return value if isinstance(value, Mapping) else {}


async def _post(client: httpx.AsyncClient, endpoint: Endpoint, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of the reply, one per request."""
    response = await request(client, endpoint, "POST", json=wanted)
    reply = await json_document(response)
    if reply is None:
        raise Refused("the response is not JSON; check that this is the address of a Jolokia agent")
    if isinstance(reply, dict) and isinstance(reply.get("status"), int):
        raise Refused(f"the agent responded with status {reply['status']}")
    if not isinstance(reply, list) or len(reply) != len(wanted) or not all(isinstance(e, dict) for e in reply):
        raise Refused(f"the response is not a Jolokia reply to {len(wanted)} requests")
    return reply
