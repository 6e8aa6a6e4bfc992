"""Prometheus' JMX exporter as a Java agent, for tests against real JVMs; run as a module it locks the jars again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
from demo.jar_set import JarSet, ensure, write_locks
from demo.process import JVM_OPTIONS, Process, free_port

from spark_apps.runtime.class_archive import java

AGENT = JarSet(
    "jmx-exporter",
    ("io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1",),
    transitive=False,
    lock=Path(__file__).with_name("jars.lock"),
)
BESIDE = {
    version: JarSet(
        f"jmx-exporter-{version}",
        (f"io.prometheus.jmx:jmx_prometheus_{artifact}:{version}",),
        transitive=False,
        lock=Path(__file__).with_name("jars.lock"),
    )
    for version, artifact in {"0.16.1": "javaagent", "0.20.0": "httpserver", "1.0.1": "httpserver"}.items()
}
"""Versions that read another JVM over JMX-RMI. The first one's agent does so, too. Maven Central has no newer ones, and
0.18 and 0.19 only as agents."""
STRIMZI_REPORTER = JarSet(
    "strimzi-metrics-reporter",
    ("io.strimzi:metrics-reporter:0.2.0",),
    transitive=True,
    lock=Path(__file__).with_name("jars.lock"),
)
OTEL_AGENT = JarSet(
    "otel-agent",
    ("io.opentelemetry.javaagent:opentelemetry-javaagent:2.20.1",),
    transitive=False,
    lock=Path(__file__).with_name("jars.lock"),
)
WITHOUT_RULES = "{}"
Page, Answer = TypeVar("Page"), TypeVar("Answer")
_IDLE = "public class Idle { public static void main(String[] a) throws Exception { Thread.sleep(600_000); } }"


def exposed_beside(version: str, rules: str, folder: Path) -> str:
    """The page of an exporter of some version that reads the JVM which its rules name; empty where it fails."""
    jar, port = ensure(BESIDE[version])[0], free_port()
    file, idle = folder / "rules.yaml", folder / "Idle.java"
    file.write_text(rules)
    idle.write_text(_IDLE)
    agent, server = [f"-javaagent:{jar}=127.0.0.1:{port}:{file}", str(idle)], ["-jar", str(jar), f"127.0.0.1:{port}"]
    command = [java(), *JVM_OPTIONS, *(agent if "agent" in jar.name else [*server, str(file)])]
    exporter = Process(f"exporter-{version}", command, folder)
    with exporter:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            exporter.check()
            try:
                response = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60)
                return response.text if response.status_code == 200 else ""
            except httpx.TransportError:
                time.sleep(0.2)
    raise AssertionError("the exporter never listened")


def exposed_and_asked(
    expose: Callable[[], Page], ask: Callable[[], Answer], series: Callable[[Answer], object]
) -> tuple[Page, Answer]:
    """A page, and an answer with the same series before and after it: clients register metrics while they run."""
    before = ask()
    for _ in range(10):
        page, after = expose(), ask()
        if series(before) == series(after):
            return page, after
        before = after
    raise AssertionError("series were added or removed during each of 10 pages")


def jmx_rmi_options(port: int) -> list[str]:
    """Of a JVM that lets itself be read by JMX-RMI."""
    remote = "-Dcom.sun.management.jmxremote"
    given = {"port": port, "rmi.port": port, "authenticate": "false", "ssl": "false", "host": "127.0.0.1"}
    return [*(f"{remote}.{key}={value}" for key, value in given.items()), "-Djava.rmi.server.hostname=127.0.0.1"]


@contextmanager
def in_jvms_started_here(folder: Path, config: str) -> Iterator[str]:
    """JVMs started within the block run the exporter; yields the URL of its page."""
    file, port = folder / "exporter.yaml", free_port()
    file.write_text(config)
    before = dict(os.environ)
    os.environ["JAVA_TOOL_OPTIONS"] = f"-javaagent:{ensure(AGENT)[0]}=127.0.0.1:{port}:{file}"
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        os.environ.pop("JAVA_TOOL_OPTIONS")
        os.environ.update(before)


if __name__ == "__main__":
    write_locks(AGENT, *BESIDE.values(), STRIMZI_REPORTER, OTEL_AGENT)
