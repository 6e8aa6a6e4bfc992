"""A Schema Registry for tests: a local HTTP server that responds like Confluent's, or misbehaves, by its first path.

The server is strict: read-only, known paths and parameters only, an error code for each missing subject or path, at
most MOST schemas per page, and no `schemaType` for Avro schemas (as in Confluent's API).
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.answering import answering

MOST = 3
LOGIN = "Basic " + b64encode(b"reader:s3cret").decode()
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
MONEY = [{"name": "money.proto", "subject": "money", "version": 1}]
SCHEMAS: list[dict[str, Any]] = [
    {"subject": "orders-value", "version": 1, "id": 1, "schema": ORDER},
    {"subject": "orders-value", "version": 2, "id": 4, "schema": ORDER.replace("long", "string")},
    {"subject": "copies/of orders-value ü", "version": 1, "id": 1, "schema": ORDER},
    {"subject": "money", "version": 1, "id": 2, "schemaType": "PROTOBUF", "schema": "message Money {}"},
    {
        "subject": "bill-value",
        "version": 7,
        "id": 3,
        "schemaType": "PROTOBUF",
        "schema": "message Bill {}",
        "references": MONEY,
    },
]
LEVELS = {"orders-value": "FULL_TRANSITIVE", "copies/of orders-value ü": "NONE"}


class _Registry(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        _, behaviour, what, *rest = url.path.split("/")
        self.server.asked[behaviour, what] += 1
        getattr(self, behaviour)(what, [unquote(part) for part in rest], dict(parse_qsl(url.query)))

    def good(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if what == "schemas" and not rest and set(params) <= {"offset", "limit"}:
            first = int(params.get("offset", 0))
            self._send(200, self.server.schemas[first : first + min(int(params.get("limit", MOST)), MOST)])
        elif what == "config" and not rest and not params:
            self._send(200, {"compatibilityLevel": "BACKWARD"})
        elif what == "config" and len(rest) == 1 and not params:
            if rest[0] in LEVELS:
                self._send(200, {"compatibilityLevel": LEVELS[rest[0]]})
            else:
                self._fail(404, 40408, f"Subject '{rest[0]}' does not have subject-level compatibility configured")
        else:
            self._fail(404, 404, "HTTP 404 Not Found")

    def all_at_once(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        """An older registry without pagination."""
        if what == "schemas":
            self._send(200, self.server.schemas)
        else:
            self.good(what, rest, params)

    def secured(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if self.headers["authorization"] == LOGIN:
            self.good(what, rest, params)
        else:
            self._fail(401, 401, "Unauthorized")

    def busy(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        """Every second request is throttled."""
        if sum(n for (behaviour, _), n in self.server.asked.items() if behaviour == "busy") % 2:
            self._fail(429, 429, "Too many requests", {"Retry-After": "0"})
        else:
            self.good(what, rest, params)

    def throttled(self, *_: Any) -> None:
        self._fail(429, 429, "Too many requests", {"Retry-After": "0"})

    def one_broken(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if rest == ["money"]:
            self._fail(500, 50001, "Error in the backend datastore")
        else:
            self.good(what, rest, params)

    def null_level(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if rest == ["money"]:
            self._send(200, {"compatibilityLevel": None})
        else:
            self.good(what, rest, params)

    def no_version(self, *_: Any) -> None:
        self._send(200, [*SCHEMAS, SCHEMAS[0] | {"version": None}])

    def no_subject(self, *_: Any) -> None:
        self._send(200, [*SCHEMAS, SCHEMAS[0] | {"subject": None}])

    def large_id(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if what == "schemas":
            self._send(200, [SCHEMAS[0] | {"id": 2**40}])
        else:
            self.good(what, rest, params)

    def no_levels(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if what == "config":
            self._fail(403, 40301, "User is denied operation Read on Config")
        else:
            self.good(what, rest, params)

    def dies(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        """Returns the first page, then closes the connection in the middle of a response."""
        if what == "config" or params.get("offset") == "0":
            self.good(what, rest, params)
        else:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'[{"subject": "or')
            self.close_connection = True

    def empty(self, what: str, rest: list[str], params: dict[str, str]) -> None:
        if what == "schemas":
            self._send(200, [])
        else:
            self.good(what, rest, params)

    def page(self, *_: Any) -> None:
        self._send(200, "<html>Sign in</html>", text=True)

    def other(self, *_: Any) -> None:
        self._send(200, {"a": 1})

    def elsewhere(self, *_: Any) -> None:
        self._send(404, "<html>Not found</html>", text=True)

    def hangs(self, *_: Any) -> None:
        self.server.over.wait(20)

    def _fail(self, status: int, code: int, message: str, headers: dict[str, str] | None = None) -> None:
        self._send(status, {"error_code": code, "message": message}, headers)

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None, *, text: bool = False) -> None:
        data = (body if text else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    schemas: list[dict[str, Any]]
    asked: Counter[tuple[str, str]]
    over: threading.Event


@contextmanager
def registry(schemas: list[dict[str, Any]] = SCHEMAS) -> Iterator[tuple[str, Counter[tuple[str, str]]]]:
    """URL of the registry, to which a behaviour is appended as path, and request counts by (behaviour, endpoint)."""
    server = _Server(("127.0.0.1", 0), _Registry)
    server.schemas, server.asked, server.over = schemas, Counter(), threading.Event()
    with answering(server):
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.asked
        finally:
            server.over.set()
