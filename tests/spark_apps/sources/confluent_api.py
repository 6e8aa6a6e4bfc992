"""Confluent Cloud's Metrics API for tests: a local HTTP server by the OpenAPI document of version 2.

It refuses what the document does not allow: fields, functions, and intervals of a query, plain keys, foreign clusters.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.answering import answering

KEY, SECRET, CLUSTER = "CLOUDKEY", "s3cret/Value", "lkc-abc12"
COUNTERS = ("received_bytes", "sent_bytes", "received_records", "sent_records")
_FIELDS = {"aggregations", "filter", "granularity", "group_by", "intervals", "limit", "order_by", "format"}
_INTERVAL = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


@dataclass
class Cloud:
    """What the API has, and what it was asked."""

    rates: dict[str, dict[str, float]]
    """Metric → topic → value per minute of a counter, value of a gauge."""
    page: int = 1000
    """Groups that it puts on a page, at most."""
    throttled: int = 0
    """Requests that it answers with 429 before it answers one."""
    retry_after: str | None = None
    status: int = 200
    body: bytes | None = None
    url: str = ""
    queries: list[dict[str, Any]] = field(default_factory=list)


class _Invalid(Exception):
    pass


def _points(cloud: Cloud, query: dict[str, Any]) -> list[dict[str, Any]]:
    if unknown := query.keys() - _FIELDS:
        raise _Invalid(f"unknown fields {sorted(unknown)}")
    [aggregation] = query["aggregations"]
    prefix, _, metric = aggregation["metric"].rpartition("/")
    if prefix != "io.confluent.kafka.server" or metric not in cloud.rates:
        raise _Invalid(f"unknown metric {aggregation['metric']}")
    if metric not in COUNTERS and aggregation.get("agg") == "SUM":
        raise _Invalid(f"SUM is no aggregation of {metric}")
    if query["granularity"] != "ALL" or query["group_by"] != ["metric.topic"]:
        raise _Invalid("only ALL by topic is emulated")
    if not 1 <= query.get("limit", 100) <= 1000:
        raise _Invalid("limit must be between 1 and 1000")
    if query["filter"] != {"field": "resource.kafka.id", "op": "EQ", "value": CLUSTER}:
        raise PermissionError
    [interval] = query["intervals"]
    if not (found := _INTERVAL.fullmatch(interval)):
        raise _Invalid(f"not an interval: {interval}")
    start, end = (datetime.fromisoformat(moment) for moment in found.groups())
    times = (end - start).total_seconds() / 60 if metric in COUNTERS else 1
    return [
        {"metric.topic": topic, "timestamp": f"{start:%Y-%m-%dT%H:%M:%SZ}", "value": rate * times}
        for topic, rate in sorted(cloud.rates[metric].items())
    ]


class _Api(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        cloud: Cloud = self.server.cloud  # type: ignore[attr-defined]
        url, length = urlsplit(self.path), int(self.headers["Content-Length"])
        query = json.loads(self.rfile.read(length))
        cloud.queries.append(query)
        login = base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
        if url.path != "/v2/metrics/cloud/query":
            self._send(404, {"errors": [{"status": "404", "detail": "no such path"}]})
        elif self.headers["Authorization"] != f"Basic {login}":
            self._send(401, {"errors": [{"status": "401", "detail": "invalid API key"}]})
        elif cloud.throttled > 0:
            cloud.throttled -= 1
            self._send(429, {"errors": [{"status": "429", "detail": "Too many requests"}]})
        elif cloud.status != 200:
            self._send(cloud.status, {"errors": [{"status": str(cloud.status), "detail": "internal"}]})
        else:
            self._query(cloud, query, parse_qs(url.query).get("page_token", ["0"])[0])

    def _query(self, cloud: Cloud, query: dict[str, Any], token: str) -> None:
        try:
            points = _points(cloud, query)
        except PermissionError:
            self._send(403, {"errors": [{"status": "403", "detail": "not authorized for the resource"}]})
            return
        except (_Invalid, KeyError, ValueError) as error:
            self._send(400, {"errors": [{"status": "400", "detail": str(error)}]})
            return
        size = min(cloud.page, query.get("limit", 100))
        first = int(token)
        pagination: dict[str, Any] = {"page_size": size}
        if first + size < len(points):
            pagination["next_page_token"] = str(first + size)
        self._send(200, {"data": points[first : first + size], "meta": {"pagination": pagination}})

    def _send(self, status: int, document: Any) -> None:
        cloud: Cloud = self.server.cloud  # type: ignore[attr-defined]
        content = cloud.body if status == 200 and cloud.body is not None else json.dumps(document).encode()
        self.send_response(status)
        if status == 429 and cloud.retry_after:
            self.send_header("Retry-After", cloud.retry_after)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def confluent_api(**settings: Any) -> Iterator[Cloud]:
    """A running API."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    cloud = Cloud(**settings)
    cloud.url = f"http://127.0.0.1:{server.server_port}"
    server.cloud = cloud  # type: ignore[attr-defined]
    with answering(server):
        yield cloud
