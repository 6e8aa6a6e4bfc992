"""A server that responds to every request in one abusive way: endless, slow, deeply nested, huge, or truncated."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from socketserver import BaseRequestHandler, ThreadingTCPServer

from tests.answering import answering

LEVELS = 100_000
HUGE_BYTES = 300 * 2**20
_FILL = b'"' + b"x" * (2**20 - 3) + b'",'


@cache
def _bomb() -> bytes:
    """A gzip bomb: 0.5 GiB in 0.5 MB."""
    compressed = bytearray()
    packer = gzip.zlib.compressobj(9, gzip.zlib.DEFLATED, 31)  # type: ignore[attr-defined]
    for _ in range(512):
        compressed += packer.compress(b" " * 2**20)
    return bytes(compressed + packer.flush())


def _head(**headers: object) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n{lines}\r\n".encode()


def _answers(name: str) -> Iterator[bytes]:
    """Parts of the response; an empty one closes the sending side of the connection."""
    match name:
        case "endless":
            yield _head() + b"["
            while True:
                yield _FILL
        case "endless in chunks":
            yield _head(Transfer_Encoding="chunked")
            while True:
                yield b"%x\r\n%s\r\n" % (len(_FILL), _FILL)
        case "slow":
            yield _head(Content_Length=10**6) + b"["
            while True:
                time.sleep(0.2)
                yield b" "
        case "slow headers":
            yield b"HTTP/1.1 200 OK\r\n"
            while True:
                time.sleep(0.2)
                yield b"X-More: 1\r\n"
        case "deep":
            yield _head(Content_Length=2 * LEVELS) + b"[" * LEVELS + b"]" * LEVELS
        case "many":
            body = b"[" + b"{}," * 2_000_000 + b"1]\n"
            yield _head(Content_Length=len(body)) + body
        case "many lines":
            body = b'jvm_threads_current{a="1"} 1\n' * 1_100_000
            yield _head(Content_Length=len(body)) + body
        case "huge":
            yield _head(Content_Length=HUGE_BYTES) + b"["
            for _ in range(HUGE_BYTES // len(_FILL)):
                yield _FILL
        case "gzip bomb":
            yield _head(Content_Length=len(_bomb()), Content_Encoding="gzip") + _bomb()
        case "gzip in gzip":
            twice = gzip.compress(gzip.compress(b"[]"))
            yield _head(Content_Length=len(twice), Content_Encoding="gzip, gzip") + twice
        case "half a gzip":
            half = gzip.compress(b"[1, 2, 3]" * 1000)[:-20]
            yield _head(Content_Length=len(half), Content_Encoding="gzip") + half
        case "too short":
            yield _head(Content_Length=5000) + b"[{"
        case "half closed":
            yield _head(Content_Length=5000) + b"[{"
            yield b""  # see _Rude
            time.sleep(30)
        case _:
            raise AssertionError(name)


class _Rude(BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.request.recv(2**16)
        try:
            for piece in _answers(self.server.name):
                if piece:
                    self.request.sendall(piece)
                else:
                    self.request.shutdown(socket.SHUT_WR)
                if self.server.over.is_set():
                    return
            # Closing with an unread request would reset the connection.
            self.request.shutdown(socket.SHUT_WR)
            self.request.settimeout(2)
            while self.request.recv(2**16):
                pass
        except OSError:
            return  # the client has given up


class _Server(ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Rude)
        _bomb()  # created before a client waits for it
        self.name, self.over = name, threading.Event()


@contextmanager
def rude(name: str) -> Iterator[str]:
    """URL of a server that responds in this way during the block."""
    with answering(_Server(name)) as server:
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.over.set()
