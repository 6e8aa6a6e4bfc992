"""Kafka Connect's REST API for tests: a local HTTP server that behaves by the first part of the path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.answering import answering

RUNNING = {"state": "RUNNING", "worker_id": "w1:8083"}
SINK: dict[str, Any] = {
    "info": {"name": "s", "config": {"connector.class": "x.Sink", "password": "hunter2"}, "type": "sink"},
    "status": {"name": "s", "connector": RUNNING, "type": "sink", "tasks": [RUNNING | {"id": 0}]},
}
TRACE = """ConnectException: jdbc:postgresql://db:5432/shop?user=app&password=hunter2
Caused by: https://app:hunter2@api.example/v1: For input string: "\0abc"
"""
OF_GROUP = SINK | {"info": {"config": {"connector.class": "x.Sink", "consumer.override.group.id": "mine"}}}


class _Api(BaseHTTPRequestHandler):
    """Responds by the first part of the path, only to the one request that the source may send."""

    def do_GET(self) -> None:
        _, behavior, rest = self.path.split("/", 2)
        assert rest == "connectors?expand=info&expand=status", rest
        getattr(self, behavior)()

    def log_message(self, *_: Any) -> None:
        pass

    def _send(self, status: int, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def good(self) -> None:
        self._send(200, {"s": SINK, "t": OF_GROUP})

    def empty(self) -> None:
        self._send(200, {})

    def secured(self) -> None:
        self._send(200, {"s": SINK}) if self.headers["authorization"] else self._send(401, {})

    def rebalancing(self) -> None:
        self.server.calls = calls = getattr(self.server, "calls", 0) + 1  # type: ignore[attr-defined]
        self._send(409, {"error_code": 409}) if calls % 2 else self.good()

    def down(self) -> None:
        self._send(503, b"")

    def page(self) -> None:
        self._send(200, b"<html>")

    def other(self) -> None:
        self._send(200, {"s": {"info": {}}})

    def no_number(self) -> None:
        self._send(200, {"s": SINK | {"status": SINK["status"] | {"tasks": [RUNNING | {"id": "first"}]}}})

    def no_text(self) -> None:
        self._send(200, {"s": SINK | {"status": SINK["status"] | {"connector": RUNNING | {"worker_id": ["w1"]}}}})

    def no_state(self) -> None:
        self._send(200, {"s": SINK | {"status": SINK["status"] | {"connector": RUNNING | {"state": None}}}})

    def failed(self) -> None:
        task = {"state": "FAILED", "worker_id": "w1:8083", "id": 0, "trace": TRACE}
        self._send(200, {"s": SINK | {"status": SINK["status"] | {"tasks": [task]}}})

    def listing(self) -> None:
        self._send(200, ["s"])  # before Apache Kafka 2.3: names only


@contextmanager
def connect_api() -> Iterator[str]:
    """Its base address."""
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), _Api)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
