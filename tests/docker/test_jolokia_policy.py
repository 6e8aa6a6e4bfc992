"""The Jolokia agent's line and policy from the docs: reads with the password, nothing else and nobody else."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from demo.jar_set import ensure
from demo.jars import JOLOKIA
from demo.process import free_port

from spark_apps.runtime.class_archive import java
from tests.docker.documented import block

pytestmark = pytest.mark.slow
MEMORY = {"mbean": "java.lang:type=Memory", "attribute": ["HeapMemoryUsage"]}
LOGIN = ("streamwarden", "CHANGE-ME")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a JVM with the documented agent, on a free port of the loopback."""
    folder: Path = tmp_path_factory.mktemp("jolokia")
    policy, source, port = folder / "access.xml", folder / "Sleep.java", free_port()
    policy.write_text(block("jolokia-access"))
    source.write_text("class Sleep { public static void main(String[] a) throws Exception { Thread.sleep(600_000); } }")
    line = block("jolokia-agent").strip()
    for documented, here in {
        "/opt/jolokia/jolokia-agent-jvm-javaagent.jar": str(ensure(JOLOKIA)[0]),
        "host=0.0.0.0": "host=127.0.0.1",
        "port=8778": f"port={port}",
        "file:///etc/jolokia/access.xml": policy.as_uri(),
    }.items():
        assert documented in line
        line = line.replace(documented, here)
    jvm = subprocess.Popen([java(), line, "-XX:TieredStopAtLevel=1", str(source)], stdout=subprocess.DEVNULL)
    try:
        yield _answering(f"http://127.0.0.1:{port}/jolokia", jvm)
    finally:
        jvm.terminate()
        jvm.wait(20)


def _answering(url: str, jvm: subprocess.Popen[bytes]) -> str:
    for _ in range(300):
        assert jvm.poll() is None, "the JVM refused the documented agent line"
        try:
            httpx.get(url)
            return url
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("the agent never answered")


def test_reads_with_the_password(agent: str) -> None:
    [entry] = httpx.post(agent, json=[{"type": "read", **MEMORY}], auth=LOGIN).json()
    assert entry["status"] == 200
    assert entry["value"]["HeapMemoryUsage"]["used"] > 0


@pytest.mark.parametrize(
    "request_",
    [
        {"type": "exec", "mbean": "java.lang:type=Memory", "operation": "gc"},
        {"type": "write", "mbean": "java.lang:type=Memory", "attribute": "Verbose", "value": True},
        {"type": "list"},
        {"type": "search", "mbean": "*:*"},
    ],
)
def test_does_nothing_else(agent: str, request_: dict[str, object]) -> None:
    [entry] = httpx.post(agent, json=[request_], auth=LOGIN).json()
    assert entry["status"] == 403


def test_answers_nobody_without_the_password(agent: str) -> None:
    assert httpx.post(agent, json=[{"type": "read", **MEMORY}]).status_code == 401
