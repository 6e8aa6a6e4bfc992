"""What responds at the ports of a host: Jolokia, exporters, a Schema Registry, Kafka Connect.

One GET request per path, and one search by Jolokia; without credentials, each bounded in bytes and time.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from streamwarden.base.bounded_http import LimitExceeded, json_of, read

PORTS = (8778, 7071, 7072, 9404, 5556, 9100, 8080, 8081, 8083)
"""Jolokia; JMX exporter; the exporters of Strimzi and of Helm charts; node exporter; Spring's actuator; Schema
Registry; Kafka Connect. The ports of MSK's open monitoring come from its API."""
CONNECT_SECONDS = 1.5
ANSWER_SECONDS = 5.0
SCAN_SECONDS = 25.0
AT_ONCE = 128
MAX_TARGETS = 20_000
Kind = Literal["jvm", "schema registry", "connect", "locked"]
Role = Literal["broker", "app", "node"]
_ID = r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_STREAMS_CLIENT = re.compile(rf'client[-_]?id="([^"]+?){_ID}', re.IGNORECASE)
_LINE = re.compile(r"^[a-zA-Z_:][\w:]*(?:\{[^\n]*\})? [-+\d.NaIinfe]+", re.MULTILINE | re.ASCII)
_PAGE_OF: tuple[tuple[Role, re.Pattern[str]], ...] = (
    ("broker", re.compile(r"^kafka_(?:server|log|controller|network|cluster)_", re.MULTILINE)),
    ("node", re.compile(r"^node_(?:cpu|memory|filesystem|disk|network)_", re.MULTILINE)),
    ("app", re.compile(r"^kafka_(?:streams?|consumer|producer)_", re.MULTILINE)),
)
_SEARCHES = (
    {"type": "search", "mbean": "kafka.server:type=ReplicaManager,name=PartitionCount"},
    {"type": "read", "mbean": "kafka.streams:type=stream-metrics,client-id=*", "attribute": "application-id"},
    {"type": "search", "mbean": "kafka.consumer:type=consumer-metrics,client-id=*"},
    {"type": "search", "mbean": "kafka.producer:type=producer-metrics,client-id=*"},
    {"type": "read", "mbean": "kafka.server:type=KafkaServer,name=ClusterId", "attribute": "Value"},
)


@dataclass(frozen=True)
class Responder:
    """A service at a port."""

    host: str
    port: int
    kind: Kind
    url: str
    protocol: Literal["jolokia", "prometheus"] = "prometheus"
    role: Role | None = None
    """Of a JVM or host; None: it responds, and exposes nothing of Kafka."""
    app: str | None = None
    """Name of the application, where its client ids have it."""
    cluster_id: str | None = None
    """Of the Kafka cluster, where it exposes that."""


@dataclass(frozen=True)
class Scan:
    """The result of a scan."""

    responders: tuple[Responder, ...]
    dropped: tuple[str, ...]
    """Hosts that neither accepted nor refused any connection."""
    is_complete: bool = True
    """Whether every port was tried within SCAN_SECONDS."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Host → its address."""


def scan(hosts: Sequence[str], ports: Iterable[int]) -> Scan:
    """Tries all ports of all hosts, within SCAN_SECONDS. A host that is two names of one address is tried once."""
    return asyncio.run(_scan(hosts, list(dict.fromkeys(ports))))


def identify(urls: Sequence[str]) -> dict[str, Responder]:
    """What responds at the addresses of agents and exporters, within SCAN_SECONDS; those that do not are left out."""
    return asyncio.run(_identify(list(dict.fromkeys(urls))[:MAX_TARGETS]))


async def _identify(urls: list[str]) -> dict[str, Responder]:
    found: dict[str, Responder] = {}
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(client: httpx.AsyncClient, url: str) -> None:
        at, is_jolokia = httpx.URL(url), url.endswith("/jolokia")
        async with room:
            if not await _is_open(at.host, at.port or 80, set()):
                return
            answer = await _get(client, f"{url}/version" if is_jolokia else url)
            if answer is None or answer.status_code != httpx.codes.OK:
                return
            of_port = _jolokia if is_jolokia else _page
            if responder := of_port(at.host, at.port or 80, url.removesuffix("/jolokia"), answer):
                found[url] = await _role_by_jolokia(client, responder) if is_jolokia else responder

    async with httpx.AsyncClient(follow_redirects=False) as client:
        tasks = [asyncio.create_task(ask(client, url)) for url in urls]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=SCAN_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def _scan(hosts: Sequence[str], ports: list[int]) -> Scan:
    found: dict[tuple[str, int], Responder] = {}
    responsive: set[str] = set()
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(client: httpx.AsyncClient, host: str, port: int) -> None:
        async with room:
            if await _is_open(host, port, responsive) and (responder := await _what(client, host, port)):
                found[host, port] = responder

    addresses = await _addresses(hosts)
    own = list(addresses.values())
    targets = [(host, port) for host in own for port in ports][:MAX_TARGETS]
    is_complete = len(targets) == len(own) * len(ports)
    async with httpx.AsyncClient(follow_redirects=False) as client:
        tasks = [asyncio.create_task(ask(client, *target)) for target in targets]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=SCAN_SECONDS)
            is_complete = is_complete and not late
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return Scan(
        tuple(found[target] for target in targets if target in found),
        tuple(host for host in own if host not in responsive),
        is_complete,
        {host: address for address, host in addresses.items()},
    )


async def _addresses(hosts: Sequence[str]) -> dict[str, str]:
    """Address → the first of the hosts that has it."""
    loop = asyncio.get_running_loop()

    async def resolved(host: str) -> str:
        with suppress(OSError, TimeoutError, UnicodeError):
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                return str((await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM))[0][4][0])
        return host

    first: dict[str, str] = {}
    for host, address in zip(hosts, await asyncio.gather(*map(resolved, hosts)), strict=True):
        first.setdefault(address, host)
    return first


async def _is_open(host: str, port: int, responsive: set[str]) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        responsive.add(host)
        return False
    except (OSError, TimeoutError, UnicodeError):
        return False
    responsive.add(host)
    writer.close()
    return True


async def _what(client: httpx.AsyncClient, host: str, port: int) -> Responder | None:
    """What the port is, by its first response that has a known form."""
    base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    locked: Responder | None = None
    for path, identify in _PATHS:
        answer = await _get(client, base + path)
        if answer is None:
            continue
        if answer.status_code in (401, 403):
            locked = locked or Responder(host, port, "locked", base + path)
        elif answer.status_code == httpx.codes.OK and (found := identify(host, port, base, answer)):
            return await _role_by_jolokia(client, found) if found.protocol == "jolokia" else found
    return locked


async def _get(client: httpx.AsyncClient, url: str, method: str = "GET", **more: Any) -> httpx.Response | None:
    try:
        return await read(client, method, url, seconds=ANSWER_SECONDS, **more)
    except (httpx.HTTPError, httpx.InvalidURL, LimitExceeded, TimeoutError):
        return None


def _json(answer: httpx.Response) -> Any:
    try:
        return json_of(answer.content)
    except (ValueError, LimitExceeded):
        return None


def _jolokia(host: str, port: int, base: str, answer: httpx.Response) -> Responder | None:
    document = _json(answer)
    value = document.get("value") if isinstance(document, dict) else None
    if not (isinstance(value, dict) and "agent" in value):
        return None
    return Responder(host, port, "jvm", f"{base}/jolokia", "jolokia")


def _page(host: str, port: int, base: str, answer: httpx.Response) -> Responder | None:
    text = answer.text
    if not _LINE.search(text):
        return None
    url = str(answer.request.url)
    role = next((role for role, pattern in _PAGE_OF if pattern.search(text)), None)
    app = _STREAMS_CLIENT.search(text) if role == "app" else None
    return Responder(host, port, "jvm", url, role=role, app=app and app[1])


def _registry(host: str, port: int, base: str, answer: httpx.Response) -> Responder | None:
    document = _json(answer)
    is_one = isinstance(document, dict) and "compatibilityLevel" in document
    return Responder(host, port, "schema registry", base) if is_one else None


def _connect(host: str, port: int, base: str, answer: httpx.Response) -> Responder | None:
    document = _json(answer)
    if not (isinstance(document, dict) and "kafka_cluster_id" in document):
        return None
    cluster_id = document["kafka_cluster_id"]
    return Responder(host, port, "connect", base, cluster_id=cluster_id if isinstance(cluster_id, str) else None)


_PATHS = (
    ("/jolokia/version", _jolokia),
    ("/metrics", _page),
    ("/actuator/prometheus", _page),
    ("/config", _registry),
    ("/", _connect),
)
"""In this order: an exporter may serve its page at any path."""


async def _role_by_jolokia(client: httpx.AsyncClient, found: Responder) -> Responder:
    """The agent's JVM: a broker, an application with clients of Kafka, or something else."""
    answer = await _get(client, found.url, "POST", json=list(_SEARCHES))
    document = _json(answer) if answer is not None else None
    if not isinstance(document, list) or len(document) != len(_SEARCHES):
        return found
    values = [one.get("value") if isinstance(one, dict) and one.get("status") == 200 else None for one in document]
    streams = values[1] if isinstance(values[1], dict) else {}
    applications = [of.get("application-id") for of in streams.values() if isinstance(of, dict)]
    clients = [str(name) for of_kind in values[2:4] if isinstance(of_kind, list) for name in of_kind]
    role: Role | None = "broker" if values[0] else "app" if streams or clients else None
    app: str | None = None
    if role == "app":
        app = next((one for one in applications if isinstance(one, str) and one), None) or (
            app_name(clients[0].partition("client-id=")[2].partition(",")[0]) if clients else None
        )
    cluster_id = values[4] if isinstance(values[4], str) else None
    return Responder(found.host, found.port, "jvm", found.url, "jolokia", role, app, cluster_id)


def app_name(client_id: str) -> str | None:
    """Name of an application by the client id of its process: Kafka Streams makes `<application.id>-<uuid>` of it,
    and consumers without a client id are `consumer-<group>-<number>`. None: it has no name of that kind."""
    client_id = client_id.strip('"')
    of_consumer = re.fullmatch(r"consumer-(.+)-\d+", client_id)
    return re.sub(rf"{_ID}.*$", "", of_consumer[1] if of_consumer else client_id) or None
