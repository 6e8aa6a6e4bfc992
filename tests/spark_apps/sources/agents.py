"""Stand-ins for agents and exporters that misbehave, one per path of one local HTTP server.

A POST gets a response of Jolokia (or of a Prometheus server), a GET a page of metrics, both in the real format.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from spark_apps.sources.jmx import METRICS_OF
from tests.answering import answering

QUERY = "/api/v1/query_range"
VALUES: dict[str, dict[str, dict[str, Any]]] = {
    "java.lang:type=Memory": {
        "java.lang:type=Memory": {"HeapMemoryUsage": {"used": 10, "max": -1}, "NonHeapMemoryUsage": {"used": 3}}
    },
    "java.lang:type=OperatingSystem": {
        "java.lang:type=OperatingSystem": {"ProcessCpuTime": 2_000_000_000, "AvailableProcessors": 4}
    },
    "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions": {
        "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions": {"Value": float("nan")}
    },
}

PAGE = r"""# HELP process_start_time_seconds Start time
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7952551756E9
jvm_memory_used_bytes{area="heap"} 9.0567656E7
jvm_memory_max_bytes{area="heap"} -1.0
java_lang_OperatingSystem_AvailableProcessors 4.0
java_lang_OperatingSystem_ProcessCpuTime 2.0E9
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",} 700.0
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="a",} 300.0
kafka_server_BrokerTopicMetrics_OneMinuteRate{name="BytesInPerSec",topic="a",} 3.0
kafka_log_Log_Value{name="Size",partition="0",topic="a",} 5.0
kafka_log_Log_Value{name="Size",partition="1",topic="a",} 6.0
kafka_log_Log_Value{is_future="true",name="Size",partition="1",topic="a",} 100.0
kafka_server_ReplicaManager_Value{name="UnderReplicatedPartitions",} NaN
kafka_server_ReplicaManager_Value{name="UnderMinIsrPartitionCount",} +Inf
"""

SERVLET = {
    "version": "4.0.0",
    "gauges": {
        "jvm.attribute.name": {"value": "7@billing-1"},
        "jvm.attribute.uptime": {"value": 60_000},
        "jvm.buffers.direct.used": {"value": 81920},
        "jvm.gc.G1-Young-Generation.count": {"value": 4},
        "jvm.gc.G1-Young-Generation.time": {"value": 250},
        "jvm.memory.heap.max": {"value": -1},
        "jvm.memory.heap.used": {"value": 9_000_000},
        "jvm.memory.heap.usage": {"value": "NaN"},
        "jvm.memory.non-heap.used": {"error": "javax.management.AttributeNotFoundException"},
        "jvm.memory.pools.G1-Old-Gen.used": {"value": 700},
        "jvm.memory.pools.G1-Old-Gen.used-after-gc": {"value": 500},
        "jvm.threads.count": {"value": 23},
        "orders.cache.size": {"value": 7},
    },
    "counters": {"orders.pending": {"count": 1}},
    "histograms": {},
    "meters": {"orders.rate": {"count": 9, "m1_rate": 0.1, "units": "events/second"}},
    "timers": {},
}


def without_coverage(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the source `jmx` without those of what endpoints don't expose; `test_recognition.py` has these."""
    return [row for row in rows if not (row["resource"] or "").startswith(METRICS_OF)]


def reply_to(request: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A well-formed bulk response: MBeans outside of VALUES are a 404, and every second entry omits its request."""
    entries: list[dict[str, Any]] = []
    for number, one in enumerate(request):
        pattern = one["mbean"].removesuffix(",*")
        if pattern == "java.lang:type=Runtime":
            entries.append({"request": one, "status": 200, "value": {"Uptime": 60_000}})
        elif pattern in VALUES:
            entries.append({"request": one, "status": 200, "value": VALUES[pattern]})
        else:
            missing = {"status": 404, "error_type": "javax.management.InstanceNotFoundException", "error": pattern}
            entries.append(missing if number % 2 else {"request": one, **missing})
    return entries


class _Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(parse_qs(body) if self.path.endswith(QUERY) else json.loads(body))

    def do_GET(self) -> None:
        self._answer([])

    def _answer(self, request: Any) -> None:
        self.server.asked.append(self.path)
        getattr(self, self.path.split("?")[0].removesuffix(QUERY).rpartition("/")[2])(request)

    def good(self, request: Any) -> None:
        if self.path.endswith(QUERY):
            series = {"metric": {"__name__": "process_open_fds"}, "values": [[float(request["start"][0]), "7"]]}
            self._send(json.dumps({"status": "success", "data": {"result": [series]}}))
        else:  # json writes NaN, as some agents do
            self._send(PAGE if self.command == "GET" else json.dumps(reply_to(request)))

    def unknown(self, request: Any) -> None:
        """All MBeans are present, and all values are null."""
        if self.path.endswith(QUERY):
            series = {"metric": {"__name__": "process_open_fds"}, "values": [[float(request["start"][0]), "NaN"]]}
            self._send(json.dumps({"status": "success", "data": {"result": [series]}}))
        elif "servlet" in self.path:
            gauges = {name: {"value": None} for name in SERVLET["gauges"]}
            self._send(json.dumps(SERVLET | {"gauges": gauges}))
        elif self.command == "GET":
            self._send(re.sub(r"(?m)^(\w.*) \S+$", r"\1 NaN", PAGE))
        else:
            memory = {"HeapMemoryUsage": {"used": None, "max": float("nan")}}
            wanted = "java.lang:type=Memory"
            self._send(json.dumps([
                {"request": one, "status": 200, "value": {wanted: memory} if wanted in one["mbean"] else {}}
                for one in request
            ]))  # fmt: skip

    def odd(self, request: list[dict[str, Any]]) -> None:
        """In the requested format, with impossible numbers."""
        self._send(json.dumps([{"request": one, "status": 200, "value": {"Uptime": 10**300}} for one in request]))

    def denies(self, request: list[dict[str, Any]]) -> None:
        reply = reply_to(request)
        reply[1] = {"request": request[1], "status": 403, "error": "not allowed"}
        self._send(json.dumps(reply))

    def hangs(self, _request: list[dict[str, Any]]) -> None:
        self.server.freed.wait(60)
        self.close_connection = True

    def meets(self, request: list[dict[str, Any]]) -> None:
        """Responds as soon as `party` requests wait at once."""
        self.server.party.wait(60)
        self.good(request)

    def trickles(self, _request: list[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        while not self.server.freed.is_set():
            try:
                self.wfile.write(b" ")
            except OSError:
                return
            time.sleep(0.1)

    def locked(self, request: list[dict[str, Any]]) -> None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic" and b64decode(token) == b"reader:sesame":
            self.good(request)
        else:
            self._send("<html>who are you?</html>", 401)

    def forbidden(self, _request: list[dict[str, Any]]) -> None:
        self._send("no", 403)

    def fails(self, _request: list[dict[str, Any]]) -> None:
        self._send("out of memory", 500)

    def noise(self, _request: list[dict[str, Any]]) -> None:
        self._send(bytes(range(256)) * 8)

    def empty(self, _request: list[dict[str, Any]]) -> None:
        self._send("")

    def servlet(self, _request: list[dict[str, Any]]) -> None:
        self._send(json.dumps(SERVLET))

    def page(self, _request: list[dict[str, Any]]) -> None:
        """The page that the test has set."""
        self._send(self.server.page)

    def half(self, _request: list[dict[str, Any]]) -> None:
        """A truncated page that HTTP cannot detect: neither Content-Length nor chunks."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE[: PAGE.index("topic=") + 10].encode())
        self.close_connection = True

    def broken(self, _request: list[dict[str, Any]]) -> None:
        self._send("<html>this is a <login> page</html>")

    def single(self, _request: list[dict[str, Any]]) -> None:
        self._send(json.dumps({"status": 500, "error": "secret internals", "stacktrace": "at …"}))

    def short(self, request: list[dict[str, Any]]) -> None:
        self._send(json.dumps(reply_to(request)[:-1]))

    def strange(self, request: list[dict[str, Any]]) -> None:
        values = [7, "x", None, [], {"a": 1}, {"b": {"Value": {}, "Count": "7"}}]
        self._send(json.dumps([{"status": 200, "value": values[n % len(values)]} for n in range(len(request))]))

    def resets(self, _request: list[dict[str, Any]]) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n[{")
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _send(self, text: str | bytes, status: int = 200) -> None:
        body = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Agent)
        self.asked: list[str] = []
        self.page: str | bytes = ""
        self.freed = threading.Event()
        self.party = threading.Barrier(1)


class Agents:
    """The server: `url('hangs')` is the address of that agent, `asked` the paths in the order of their requests."""

    def __init__(self, server: _Server) -> None:
        self.base = f"http://127.0.0.1:{server.server_port}"
        self.asked = server.asked
        self._server = server

    def serve(self, page: str | bytes) -> str:
        """URL of a page with this text."""
        self._server.page = page
        return self.url("page")

    def meet(self, requests: int) -> str:
        """URL of an agent that responds to that many requests once all of them wait."""
        self._server.party = threading.Barrier(requests)
        return self.url("meets")

    def url(self, name: str) -> str:
        return f"{self.base}/{name}"


@contextmanager
def running_agents() -> Iterator[Agents]:
    """The agents, until the end of the block."""
    with answering(_Server()) as server:
        try:
            yield Agents(server)
        finally:
            server.freed.set()
