"""The one HTTP reader for responses from outside: limited in bytes, nesting, values, and seconds in total.

The response is read as a stream and decompressed here in pieces. Reading stops at the first exceeded limit, so an
endless, slow, or compressed response costs no more than the limit. `read` is for async code (many endpoints at once),
`BoundedClient` for synchronous code. Neither retries: the caller decides what a failure means.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import httpx

MIB = 2**20
LINE_BYTES = 2**16
"""Limit of a line of a text format. A line of an exporter is one series: a name, its labels, a number."""
_PIECE = 2**16
_BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - _BRACKETS.keys())
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32  # the header determines which


@dataclass(frozen=True)
class Limits:
    """Limits of a response. The parsed response takes at most about 10 times `max_bytes` of memory."""

    max_bytes: int = 32 * MIB
    """After decompression. A broker with 10,000 partitions exposes 10 MB over JMX."""
    depth: int = 64
    """Levels of JSON. Jolokia needs 5, a tracker's rich text some 20."""
    values: int = 1_000_000
    """Numbers, strings, lists and mappings of JSON, or lines of text (series)."""


LIMITS = Limits()
ALL_SCHEMAS = Limits(max_bytes=128 * MIB)
"""For Schema Registries without pagination, which return all schemas in one response."""


class LimitExceeded(Exception):
    """The response exceeds a limit; the message names the limit."""


async def read(
    client: httpx.AsyncClient,
    method: str,
    url: httpx.URL | str,
    *,
    seconds: float,
    limits: Limits = LIMITS,
    **request: Any,
) -> httpx.Response:
    """Sends one request and reads the whole response, decompressed.

    Args:
        seconds: total timeout, from the name resolution to the last byte.
        request: as for `httpx.AsyncClient.request`.

    Raises:
        LimitExceeded: the response has more bytes than `limits` allow.
        TimeoutError: the response is not complete in time.
        httpx.HTTPError, httpx.InvalidURL: raised by httpx; also if the body does not match its Content-Encoding.
    """
    request["headers"] = {**request.get("headers", {}), "Accept-Encoding": "gzip"}
    async with asyncio.timeout(seconds), client.stream(method, url, **request) as response:
        body = bytearray()
        async for piece in _decompressed(response):
            body += piece
            if len(body) > limits.max_bytes:
                after = " after decompression" if response.headers.get("Content-Encoding") else ""
                raise LimitExceeded(f"response exceeds {_size(limits.max_bytes)}{after}")
    headers = [(key, value) for key, value in response.headers.multi_items() if key.lower() not in _OF_THE_TRANSFER]
    return httpx.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)


_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")


async def _decompressed(response: httpx.Response) -> AsyncIterator[bytes]:
    """Pieces of the body. httpx would decompress each piece without a limit, and nested encodings too."""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)  # noqa: S101 the client is async
    if encoding == "identity":
        async for piece in stream:
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise httpx.DecodingError("the Content-Encoding was not requested", request=response.request)
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        async for piece in stream:
            while piece and not decoder.eof:
                yield decoder.decompress(piece, _PIECE)
                piece = decoder.unconsumed_tail
        while tail := decoder.decompress(b"", _PIECE):
            yield tail
    except zlib.error:
        raise httpx.DecodingError("the body does not match its Content-Encoding", request=response.request) from None
    if not decoder.eof:
        raise httpx.DecodingError("the compressed data ends early", request=response.request)


def json_of(body: bytes, limits: Limits = LIMITS) -> Any:
    """The parsed JSON document. Depth and number of values are checked before parsing.

    Raises:
        LimitExceeded: the document exceeds a limit.
        ValueError: the body is not JSON.
    """
    level = values = 0
    for piece in _without_strings(body):
        values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        if values > limits.values:
            raise LimitExceeded(f"response exceeds {limits.values:,} values")
        levels = list(accumulate(map(_BRACKETS.__getitem__, piece.translate(None, _NO_BRACKETS)), initial=level))
        if max(levels) > limits.depth:
            raise LimitExceeded(f"response is nested deeper than {limits.depth} levels")
        level = levels[-1]
    return json.loads(body)


def _without_strings(body: bytes) -> Iterator[bytes]:
    """The document in pieces, without the contents of its strings."""
    inside, kept = False, b""
    for start in range(0, len(body), _PIECE):
        piece = kept + body[start : start + _PIECE]
        escaping = (len(piece) - len(piece.rstrip(b"\\"))) % 2
        piece, kept = piece[: len(piece) - escaping], piece[len(piece) - escaping :]
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0


def lines_of(text: str, limits: Limits = LIMITS) -> list[str]:
    """Lines of a text format, including the last one, which is empty if the text ends with a line break.

    Raises:
        LimitExceeded: the text has more than `limits.values` lines, or a line is longer than LINE_BYTES.
    """
    if text.count("\n") > limits.values:
        raise LimitExceeded(f"response exceeds {limits.values:,} lines")
    lines = text.split("\n")
    if len(max(lines, key=len)) > LINE_BYTES:
        raise LimitExceeded(f"response has a line of more than {_size(LINE_BYTES)}")
    return lines


class BoundedClient:
    """`read` for synchronous code. Thread-safe."""

    def __init__(self, *, seconds: float, limits: Limits = LIMITS, **settings: Any) -> None:
        """`settings`: of `httpx.AsyncClient`; its `timeout` is for each step, `seconds` for the whole request."""
        self._seconds, self._limits = seconds, limits
        self._client = httpx.AsyncClient(**settings)
        self._loop = _loop(os.getpid())

    def request(self, method: str, url: str, **request: Any) -> httpx.Response:
        """Sends a request and returns its response. Raises as `read`, but httpx.ReadTimeout instead of TimeoutError."""
        reading = read(self._client, method, url, seconds=self._seconds, limits=self._limits, **request)
        waiting = asyncio.run_coroutine_threadsafe(reading, self._loop)
        try:
            return waiting.result()
        except TimeoutError:
            raise httpx.ReadTimeout(f"no complete response within {self._seconds:g} s") from None
        finally:
            waiting.cancel()  # has an effect only if this thread was interrupted

    def close(self) -> None:
        """Closes the connections."""
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()


@cache
def _loop(_pid: int) -> asyncio.AbstractEventLoop:
    """The event loop of this process, in its own thread; keyed by pid, because a fork has no threads of its parent."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="bounded-http", daemon=True).start()
    return loop


def _size(number: int) -> str:
    return f"{number // MIB} MiB" if number >= MIB else f"{number // 2**10} KiB"
