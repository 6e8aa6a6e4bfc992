"""JMX-RMI: answers requests in Jolokia's format by calling the JVM's RMI connector.

Only Java can use RMI, and Spark's Python workers do not run in a JVM. So a task with such endpoints starts a small
helper JVM (`JmxRmi.java`, with Spark's jars) for the duration of its requests. Calls are distributed over the tasks
like all others, and a call that hangs ends with the helper. For other modules it is a transport of httpx.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from itertools import count
from pathlib import Path

import httpx
from pyspark.find_spark_home import _find_spark_home
from streamwarden.base.bounded_http import LIMITS
from streamwarden.base.errors import StreamwardenError

from spark_apps.runtime.class_archive import java
from spark_apps.sources.jmx_endpoint import CREDENTIALS_REFUSED, NOTHING_THERE, Refused

_SCHEME = "rmi://"
_HELPER = resources.files("spark_apps.sources") / "JmxRmi.java"
_JARS = ("janino-*", "commons-compiler-*", "jackson-core-*", "jackson-databind-*", "jackson-annotations-*")
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_MAX_BEANS = 100_000
"""Of one pattern: the names arrive all at once."""
_REASONS = {
    "locked": CREDENTIALS_REFUSED,
    "closed": NOTHING_THERE,
    "unreachable": "the JVM's RMI registry returns an unreachable address: set java.rmi.server.hostname of the JVM",
}


@asynccontextmanager
async def jmx_rmi(*, needed: bool) -> AsyncIterator[dict[str, httpx.AsyncBaseTransport]]:
    """Transports for httpx clients, by scheme; valid until the end of the block."""
    if not needed:
        yield {}
        return
    jars = Path(_find_spark_home()) / "jars"
    classpath = ":".join(str(jar) for pattern in _JARS for jar in jars.glob(f"{pattern}.jar"))
    with resources.as_file(_HELPER) as helper:  # an executor has our code as a zip
        compiled = ("org.codehaus.janino.SimpleCompiler", str(helper), "JmxRmi")
        try:
            jvm = await asyncio.create_subprocess_exec(
                java(), *_OPTIONS, "-cp", classpath, *compiled, stdin=PIPE, stdout=PIPE
            )
        except (OSError, StreamwardenError):
            yield {_SCHEME: _NoJava()}
            return
        transport = _JmxRmi(jvm)
        listening = asyncio.create_task(transport.listen())
        try:
            yield {_SCHEME: transport}
        finally:
            listening.cancel()
            with suppress(ProcessLookupError):
                jvm.kill()
            await jvm.wait()


class _NoJava(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Fails every request."""
        raise Refused("JMX-RMI needs Java on the hosts of Spark's tasks")


class _JmxRmi(httpx.AsyncBaseTransport):
    """Transport for requests to `rmi://host:port/jmxrmi`."""

    def __init__(self, jvm: Process) -> None:
        self._jvm = jvm
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[tuple[str, bytes]]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request to the helper JVM and waits for its response."""
        if self._jvm.returncode is not None:
            raise Refused("the helper JVM for JMX-RMI has ended; the reason is in the Spark task's log")
        number, (user, password) = next(self._numbers), _credentials(request)
        question = {"id": number, "url": f"service:jmx:rmi:///jndi/{request.url}", "user": user, "password": password}
        question |= {"reads": json.loads(request.content), "max_bytes": LIMITS.max_bytes, "max_beans": _MAX_BEANS}
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            assert self._jvm.stdin is not None  # noqa: S101 it is a pipe
            self._jvm.stdin.write(json.dumps(question).encode() + b"\n")
            status, reply = await waiting
        finally:
            del self._waiting[number]
        if status == "limit":
            raise Refused(reply.decode())
        if status != "read":
            raise Refused(_REASONS.get(status) or f"JMX-RMI: {reply.decode(errors='replace')}")
        return httpx.Response(200, stream=httpx.ByteStream(reply))

    async def listen(self) -> None:
        """Reads responses of the helper JVM and passes them to the waiting requests."""
        answers = self._jvm.stdout
        assert answers is not None  # noqa: S101 it is a pipe
        while line := await answers.readline():
            number, status, length = line.split()
            reply = await answers.readexactly(int(length))
            waiting = self._waiting.get(int(number))
            if waiting and not waiting.done():  # otherwise it timed out
                waiting.set_result((status.decode(), reply))
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(httpx.ReadError("the helper JVM for JMX-RMI has ended"))


def _credentials(request: httpx.Request) -> tuple[str | None, str | None]:
    """User and password from httpx's Authorization header."""
    _, _, encoded = request.headers.get("Authorization", "").partition(" ")
    user, found, password = b64decode(encoded).decode().partition(":")
    return (user, password) if found else (None, None)
