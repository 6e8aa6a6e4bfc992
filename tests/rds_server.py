"""An RDS endpoint with IAM authentication in front of a real PostgreSQL: refuses what RDS refuses of a token.

Written from AWS's "Connecting to your DB instance using IAM authentication" and "Signature Version 4", and PostgreSQL's
"Message Flow": it asks for a clear-text password, which is the token.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import socketserver
import struct
import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from tests.answering import answering

KEY, SECRET, REGION = "AKIAEXAMPLE", "wJalrXUtnFEMIexample", "eu-central-1"
_PLAIN_ONLY = (80877103, 80877104)
"""Codes of SSLRequest and GSSENCRequest."""


class RdsServer(socketserver.ThreadingTCPServer):
    """Accepts connections with a valid token for its host and port; `refusals` has the reasons of the others."""

    daemon_threads = True

    def __init__(self, postgres: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.postgres, self.clock = postgres, lambda: datetime.now(UTC)
        self.accepted, self.refusals = 0, list[str]()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Session(socketserver.BaseRequestHandler):
    server: RdsServer

    def handle(self) -> None:
        while (code := struct.unpack("!I", (start := self._message())[:4])[0]) in _PLAIN_ONLY:
            self.request.sendall(b"N")
        assert code >> 16 == 3, code
        words = start[4:].split(b"\0")
        user = words[words.index(b"user") + 1].decode()
        self.request.sendall(struct.pack("!cII", b"R", 8, 3))
        kind = self.request.recv(1)
        if kind != b"p":  # the client gave up: it has no password
            return
        if refusal := self._refusal(user, self._message().rstrip(b"\0").decode()):
            self.server.refusals.append(refusal)
            fields = f'SFATAL\0VFATAL\0C28000\0MPAM authentication failed for user "{user}"\0\0'.encode()
            self.request.sendall(struct.pack("!cI", b"E", 4 + len(fields)) + fields)
            return
        self.server.accepted += 1
        with socket.socket(socket.AF_UNIX) as upstream:
            upstream.connect(str(self.server.postgres))
            upstream.sendall(struct.pack("!I", 4 + len(start)) + start)
            threading.Thread(target=_pipe, args=(upstream, self.request), daemon=True).start()
            _pipe(self.request, upstream)

    def _message(self) -> bytes:
        size = struct.unpack("!I", self.request.recv(4, socket.MSG_WAITALL))[0] - 4
        return bytes(self.request.recv(size, socket.MSG_WAITALL))

    def _refusal(self, user: str, token: str) -> str:
        """Why RDS does not accept the token; empty if it does."""
        given = urlsplit(f"//{token}")
        fields = dict(parse_qsl(given.query))
        signature = fields.pop("X-Amz-Signature", "")
        made = datetime.strptime(fields.get("X-Amz-Date", "19700101T000000Z"), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        scope = f"{made:%Y%m%d}/{REGION}/rds-db/aws4_request"
        wanted = {"Action": "connect", "DBUser": user, "X-Amz-Credential": f"{KEY}/{scope}", "X-Amz-Expires": "900"}
        if given.port != self.server.port or given.hostname != "127.0.0.1":
            return f"made for {given.netloc}"
        if wrong := [name for name, value in wanted.items() if fields.get(name) != value]:
            return f"wrong {wrong[0]}"
        if not made - timedelta(minutes=5) <= self.server.clock() < made + timedelta(minutes=15):
            return "expired"
        query = "&".join(f"{quote(name, safe='')}={quote(fields[name], safe='')}" for name in sorted(fields))
        request = f"GET\n/\n{query}\nhost:{given.netloc}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
        to_sign = f"AWS4-HMAC-SHA256\n{fields['X-Amz-Date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{SECRET}".encode()
        for part in (*scope.split("/"), to_sign):
            key = hmac.digest(key, part.encode(), "sha256")
        return "" if hmac.compare_digest(key.hex(), signature) else "wrong signature"


def _pipe(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # the other direction ended first
        pass


def an_rds_server(postgres: Path) -> AbstractContextManager[RdsServer]:
    """A running server in front of the PostgreSQL with this Unix socket."""
    return answering(RdsServer(postgres))
