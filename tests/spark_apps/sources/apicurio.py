"""An Apicurio Registry for tests: a local HTTP server with the parts of its API v2 and v3 that are read.

Strict: known paths and parameters only; a 404 is Apicurio's error object. Source: Apicurio Registry, Core Registry API
v2 and v3 (OpenAPI documents).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.answering import answering

MOST = 2
"""Artifacts or versions per page."""
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
CONTENTS = {
    7: ("AVRO", ORDER, []),
    8: ("AVRO", ORDER.replace("long", "string"), []),
    9: ("PROTOBUF", 'import "money.proto"; message Bill {}', ["money"]),
    10: ("PROTOBUF", "message Money {}", []),
    11: ("OPENAPI", "{}", []),
}
VERSIONS = [
    ("default", "orders-value", "1", 7, 107),
    ("default", "orders-value", "2", 8, 108),
    ("billing", "bills/ü", "1.0.0", 9, 109),
    ("billing", "money", "1", 10, 110),
    ("default", "api", "1", 11, 111),
]
"""Group, artifact, version, content id, and global id."""
RULES = {("default", "orders-value"): "FULL"}


class _Apicurio(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urlsplit(self.path)
        found = re.fullmatch(r"/(\w+)/apis/registry/(v[23])(/.*)", url.path)
        if found is None:
            self._send(404, b"<html>not here</html>")
            return
        behavior, version, path = found.groups()
        if behavior == "page":
            self._send(200, b"<html>")
        elif behavior == "secured" and "authorization" not in self.headers:
            self._send(401, b"")
        else:
            self._api(version == "v2", path, dict(parse_qsl(url.query)), behavior)

    def log_message(self, *_: Any) -> None:
        pass

    def _api(self, is_v2: bool, path: str, params: dict[str, str], behavior: str) -> None:
        assert set(params) <= {"limit", "offset"}, params
        first = int(params.get("offset", 0))
        page = slice(first, first + min(int(params.get("limit", 20)), MOST))
        named = re.match("/groups/([^/]+)/artifacts/([^/]+)/", path)
        group, artifact = (unquote(part) for part in named.groups()) if named else ("", "")
        if path == "/search/versions" and not is_v2:
            versions = [_version(*each) for each in VERSIONS]
            odd: dict[str, dict[str, Any]] = {"dated": {"version": "20261121053000"}, "odd": {"contentId": None}}
            versions[0] |= odd.get(behavior, {})
            if behavior == "overtaken":
                versions = [one | {"version": f"1.0.{n}"} for n, one in enumerate(versions)]
            self._send(200, {"count": len(VERSIONS), "versions": versions[page]})
        elif (behavior, path) == ("deleted", "/ids/contentIds/7/references"):
            self._send(404, {"error_code": 404, "name": "ContentNotFoundException", "message": "No content …"})
        elif path == "/search/artifacts" and is_v2:
            names = list(dict.fromkeys((group, name) for group, name, *_ in VERSIONS))
            rows = [{"id": name} | ({"groupId": group} if group != "default" else {}) for group, name in names]
            self._send(200, {"count": len(rows), "artifacts": rows[page]})
        elif path.endswith("/versions") and is_v2:
            rows = [_version(*each) for each in VERSIONS if each[:2] == (group, artifact)]
            rows = [{"type": row.pop("artifactType"), **row} for row in rows]
            self._send(200, {"count": len(rows), "versions": rows[page]})
        elif (behavior, path) == ("overtaken", "/ids/contentIds/7/references"):
            time.sleep(0.3)
            self._content(7, True)
        elif content := re.fullmatch(r"/ids/contentIds/(\d+)(/references)?", path):
            self._content(int(content[1]), bool(content[2]))
        elif path == "/admin/rules/COMPATIBILITY":
            self._send(200, {"type": "COMPATIBILITY", "config": "BACKWARD"})
        elif path.endswith("/rules/COMPATIBILITY") and (group, artifact) in RULES:
            self._send(200, {"type": "COMPATIBILITY", "config": RULES[group, artifact]})
        else:
            self._send(404, {"error_code": 404, "name": "RuleNotFoundException", "message": "No rule named …"})

    def _content(self, content_id: int, is_references: bool) -> None:
        _, text, needs = CONTENTS[content_id]
        references = [
            {"groupId": "billing", "artifactId": name, "version": "1", "name": f"{name}.proto"} for name in needs
        ]
        self._send(200, references if is_references else text.encode())

    def _send(self, status: int, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _version(group: str, name: str, version: str, content_id: int, global_id: int) -> dict[str, Any]:
    return {
        "groupId": group, "artifactId": name, "version": version, "state": "ENABLED",
        "artifactType": CONTENTS[content_id][0], "contentId": content_id, "globalId": global_id,
    }  # fmt: skip


@contextmanager
def apicurio() -> Iterator[str]:
    """Its base address; the first part of the path is its behavior: good, secured, page, and those in `_api`."""
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), _Apicurio)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
