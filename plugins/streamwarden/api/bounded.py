"""Limits the size of a request's body, which the server reads before it checks the login."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class BoundedBody:
    """ASGI middleware: a body over MAX_BYTES is answered with status 413."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BYTES:
                raise HTTPException(413, f"The body is larger than {MAX_BYTES // 1024} KiB.")
            return message

        await self.app(scope, bounded, send)
