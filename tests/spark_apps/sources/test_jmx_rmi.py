"""JMX-RMI of a real broker with a password, and with TLS: the values of Jolokia, and one gap per failure."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.process import Process, free_port
from streamwarden.base.config import CONFIG_ENV, JmxEndpoint, load_config
from streamwarden.base.hours import start_of_hour

from spark_apps.runtime.class_archive import java
from spark_apps.sources import jmx_rmi
from spark_apps.sources.jmx import Jmx
from spark_apps.sources.jmx_metrics import METRICS
from tests.secured_broker import STORE_PASSWORD, self_signed, truststore

MOVING = {"heap_used_bytes", "non_heap_used_bytes", "cpu_seconds_total", "open_file_descriptors"}
MOVING |= {metric for metric in METRICS if metric.startswith("log_flush")}
MOVING |= {"request_handler_idle_ratio", "cleaner_last_run_seconds"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, str]]:
    """A broker, and the address of its JMX-RMI port."""
    folder, port = tmp_path_factory.mktemp("rmi"), free_port()
    for name, text in {"access": "reader readonly\n", "password": "reader sesame\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    settings = {"port": port, "rmi.port": port, "host": "127.0.0.1", "ssl": "false"}
    settings |= {"access.file": folder / "access", "password.file": folder / "password"}
    options = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in settings.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(["-Djava.rmi.server.hostname=127.0.0.1", *options]))
        running = Broker(folder / "broker").start()
    try:
        yield running, f"127.0.0.1:{port}"
    finally:
        running.stop()


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Rows of these endpoints, read here instead of in a Spark task; credentials come from a config file."""
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "streamwarden.yaml"))

    def read(*jvms: dict[str, Any]) -> list[dict[str, Any]]:
        jvms = tuple({"role": "broker", "cluster": "c", "timeout_seconds": 20, **jvm} for jvm in jvms)
        config = {"kafka": [{"name": "c", "bootstrap_servers": "b"}], "jmx": jvms}
        (tmp_path / "streamwarden.yaml").write_text(json.dumps(config))
        endpoints = [
            {"cluster": "c", "role": "broker", "app": None, "protocol": e.protocol, "address": e.url}
            | {"has_credentials": e.user is not None, "timeout_seconds": e.timeout_seconds}
            for e in load_config().jmx
        ]
        options = {"samples": "2", "sample_seconds": "0.1", "partitions": "1", "endpoints": json.dumps(endpoints)}
        source = Jmx(options | {"hour": start_of_hour(datetime.now(UTC)).isoformat()})
        reader = source.reader(source.schema())
        return pa.Table.from_batches([b for part in reader.partitions() for b in reader.read(part)]).to_pylist()

    return read


def last_of(rows: list[dict[str, Any]], scheme: str) -> dict[tuple[str, str], float | None]:
    """(metric, labels) → the newest value."""
    ordered = sorted((row for row in rows if row["endpoint"].startswith(scheme)), key=lambda row: row["at"])
    return {(row["metric"], row["labels"]): row["value"] for row in ordered}


@pytest.mark.rare
@pytest.mark.slow
def test_a_real_broker_exposes_the_same_values_as_over_jolokia(broker: tuple[Broker, str], ask: Any) -> None:
    running, address = broker
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    admin.create_topics([NewTopic("t", 3)])["t"].result(20)
    producer = Producer({"bootstrap.servers": running.bootstrap_servers})
    for number in range(500):
        producer.produce("t", key=str(number), value=b"x" * 100)
    assert producer.flush(20) == 0
    by_rmi = {"protocol": "jmx_rmi", "url": address, "user": "reader", "password": "sesame"}
    rows = ask(by_rmi, {"url": running.jolokia_url})
    assert not any(row["gap"] for row in rows)
    by_jmx_rmi, expected = last_of(rows, "rmi://"), last_of(rows, "http://")
    assert by_jmx_rmi.keys() == expected.keys()
    steady = [s for s in by_jmx_rmi if s[0] not in MOVING and "__cluster_metadata" not in s[1]]
    assert {s: by_jmx_rmi[s] for s in steady} == {s: expected[s] for s in steady}
    assert by_jmx_rmi["messages_in_total", '{"topic": "t"}'] == 500 and by_jmx_rmi["heap_used_bytes", "{}"] > 1e6
    starts = {row["process_started_at"] for row in rows}
    assert max(starts) - min(starts) < timedelta(seconds=2)


@pytest.mark.slow
def test_each_failure_is_a_gap_and_the_other_rows_remain(broker: tuple[Broker, str], ask: Any) -> None:
    running, address = broker
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and does not respond
        hangs = f"127.0.0.1:{silent.getsockname()[1]}"
        jvms: dict[str, dict[str, Any]] = {
            f"rmi://localhost:{address.split(':')[1]}/jmxrmi": {"user": "reader", "password": "wrong"},
            f"rmi://{address}/nothing": {"user": "reader", "password": "sesame"},
            f"rmi://{hangs}/jmxrmi": {"timeout_seconds": 2},
            "rmi://127.0.0.1:1/jmxrmi": {},
            f"rmi://{running.jolokia_url.split('/')[2]}/jmxrmi": {"timeout_seconds": 2},
            f"rmi://{address}/jmxrmi": {"user": "reader", "password": "sesame"},
        }
        started = time.monotonic()
        rows = ask(*({"protocol": "jmx_rmi", "url": url, **keys} for url, keys in jvms.items()))
    assert time.monotonic() - started < 60
    gaps = {row["endpoint"]: row["gap"] for row in rows if row["gap"]}
    locked, unbound, silent_one, closed, no_rmi, good = jvms
    assert gaps[locked] == "failed: `user` or `password` of the endpoint is missing or was rejected"
    assert gaps[unbound].startswith("failed: JMX-RMI: ") and "nothing" in gaps[unbound]
    assert gaps[silent_one] == "failed: no answer within 2 s"
    assert gaps[closed] == "failed: cannot connect (connection refused or unknown host)"
    assert gaps[no_rmi].startswith("failed: ") and good not in gaps
    assert sum(row["endpoint"] == good for row in rows) > 40 and "sesame" not in str(rows)


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.parametrize("registry_too", [False, True])
def test_tls_with_a_truststore(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch, *, registry_too: bool
) -> None:
    port = free_port()
    keystore, certificate = self_signed(tmp_path)
    (tmp_path / "Idle.java").write_text(
        "class Idle { public static void main(String[] a) throws Exception { Thread.sleep(60_000); } }"
    )
    # Two ports, because one port cannot be both plaintext and TLS.
    settings = {"port": port, "rmi.port": free_port(), "host": "127.0.0.1", "authenticate": "false", "ssl": "true"}
    settings["registry.ssl"] = str(registry_too).lower()
    options = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in settings.items()]
    options += ["-Djava.rmi.server.hostname=127.0.0.1", f"-Djavax.net.ssl.keyStore={keystore}"]
    options += [f"-Djavax.net.ssl.keyStorePassword={STORE_PASSWORD}", str(tmp_path / "Idle.java")]
    with Process("idle", [java(), *options], tmp_path) as jvm:
        _wait_for(port, jvm)
        endpoint = {"protocol": "jmx_rmi", "url": f"127.0.0.1:{port}"}
        (stranger,) = ask(endpoint)
        assert stranger["gap"].startswith("failed: JMX-RMI: ") and "certification path" in stranger["gap"]
        trusts = truststore(certificate)
        monkeypatch.setenv(
            "JAVA_TOOL_OPTIONS",
            f"-Djavax.net.ssl.trustStore={trusts} -Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
        )
        rows = ask(endpoint)
    assert not any(row["gap"] for row in rows)
    assert last_of(rows, "rmi://")["heap_used_bytes", "{}"] > 1e6


def _wait_for(port: int, jvm: Process) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        jvm.check()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError("the JVM didn't open its port within a minute")


def test_no_java_is_a_gap(ask: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (row,) = ask({"protocol": "jmx_rmi", "url": "127.0.0.1:9999"})
    assert row["gap"] == "failed: JMX-RMI needs Java on the hosts of Spark's tasks"


def test_a_failing_java_is_a_gap(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jmx_rmi, "java", lambda: "false")
    (row,) = ask({"protocol": "jmx_rmi", "url": "127.0.0.1:9999"})
    assert row["gap"].startswith("failed: ")


@pytest.mark.parametrize(
    "url", ["h:9999", "service:jmx:rmi:///jndi/rmi://h:9999/jmxrmi", "service:jmx:rmi://h:1/jndi/rmi://h:9999/jmxrmi"]
)
def test_an_address_may_be_a_jmx_service_url(url: str) -> None:
    jvm = JmxEndpoint.model_validate({"role": "broker", "cluster": "c", "protocol": "jmx_rmi", "url": url})
    assert jvm.url == "rmi://h:9999/jmxrmi"
