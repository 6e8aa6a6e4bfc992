"""JMX-RMI: what Jolokia's agent would be asked, asked of the JVM itself.

RMI is spoken by Java only, and Spark's Python workers have no Java at hand. So a task that has such endpoints starts a
small JVM of its own (`JmxRmi.java`, out of Spark's jars) for as long as it asks: the calls are spread over the tasks as
all others are, and one that hangs for ever ends with it. To the rest it is a way for requests to travel.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from base64 import b64decode
from itertools import count
from pathlib import Path
from typing import Self

import httpx
from pyspark.find_spark_home import _find_spark_home
from streamwarden.errors import StreamwardenError

from spark_apps.jvm import java
from spark_apps.sources.jvm_endpoint import CREDENTIALS_REFUSED, NOTHING_THERE, Refused

SCHEME = "rmi"
_HELPER = Path(__file__).with_name("JmxRmi.java")
_JARS = ("janino-*", "commons-compiler-*", "jackson-core-*", "jackson-databind-*", "jackson-annotations-*")
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_REASONS = {
    "locked": CREDENTIALS_REFUSED,
    "closed": NOTHING_THERE,
    "astray": "the JVM's registry names an address that can't be reached: set its java.rmi.server.hostname",
}


class JmxRmi(httpx.AsyncBaseTransport):
    """The way of requests to `rmi://host:port/jmxrmi`."""

    def __init__(self) -> None:
        self._jvm: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[tuple[str, bytes]]] = {}

    async def __aenter__(self) -> Self:
        jars = Path(_find_spark_home()) / "jars"
        classpath = ":".join(str(jar) for pattern in _JARS for jar in jars.glob(f"{pattern}.jar"))
        compiled = ("org.codehaus.janino.SimpleCompiler", str(_HELPER), "JmxRmi")
        try:
            self._jvm = await asyncio.create_subprocess_exec(
                java(), *_OPTIONS, "-cp", classpath, *compiled, stdin=PIPE, stdout=PIPE
            )
        except (OSError, StreamwardenError):
            return self
        self._listening = asyncio.create_task(self._listen(self._jvm))
        return self

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._jvm is None or self._jvm.stdin is None or self._jvm.returncode is not None:
            raise Refused("JMX-RMI needs Java where Spark's tasks run")
        number, (user, password) = next(self._numbers), _credentials(request)
        question = {"id": number, "url": f"service:jmx:rmi:///jndi/{request.url}", "user": user, "password": password}
        question["reads"] = json.loads(request.content)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._jvm.stdin.write(json.dumps(question).encode() + b"\n")
            status, reply = await waiting
        finally:
            del self._waiting[number]
        if status != "read":
            raise Refused(_REASONS.get(status) or f"JMX-RMI: {reply.decode(errors='replace')}")
        return httpx.Response(200, content=reply)

    async def _listen(self, jvm: Process) -> None:
        assert jvm.stdout is not None  # noqa: S101 it is a pipe
        while line := await jvm.stdout.readline():
            number, status, length = line.split()
            reply = await jvm.stdout.readexactly(int(length))
            waiting = self._waiting.get(int(number))
            if waiting and not waiting.done():  # else its time was out
                waiting.set_result((status.decode(), reply))
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(httpx.ReadError("the helper is gone"))

    async def aclose(self) -> None:
        if self._jvm is not None and self._listening is not None:
            self._listening.cancel()
            if self._jvm.returncode is None:
                self._jvm.kill()
            await self._jvm.wait()


def _credentials(request: httpx.Request) -> tuple[str | None, str | None]:
    """Out of the header that httpx has made of them."""
    _, _, told = request.headers.get("Authorization", "").partition(" ")
    user, found, password = b64decode(told).decode().partition(":")
    return (user, password) if found else (None, None)
