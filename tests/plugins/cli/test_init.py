"""`streamwarden init`: what it finds on a real fleet, that the written config passes its probe, and what it says of
what it cannot reach."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.demo_world import BROKER_INSTANCE_ID, ORDERS_INSTANCE_ID
from demo.faults import FAULTS
from demo.fleet import Fleet
from demo.msk_world import MskCluster
from demo.ports import Ports
from demo.process import free_port
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, load_config
from streamwarden.cli.init import ports
from streamwarden.cli.init.fleet import Fleet as Discovered
from streamwarden.cli.init.kafka import Cluster
from streamwarden.cli.init.ports import Responder, Scan, app_name, scan

from spark_apps.sources import msk_discovery as discovery
from tests.answering import answering
from tests.plugins.cli.test_cli import in_this_process
from tests.spark_apps.aws_world import ACCOUNT, REGION
from tests.spark_apps.sources.node_page import node_page
from tests.spark_apps.sources.test_rule_sets import PAGES as RULE_SETS

BROKER_PAGE = (RULE_SETS / "broker-kafka-2_0_0.yml-1.0.1.txt").read_bytes()
APP_PAGE = b'kafka_stream_state{client_id="pay-1b4e28ba-2fa1-11d2-883f-0016d3cca427"} 1\n'


class DemoFleet(Fleet):
    """The demo fleet with its application on an address of its own, as on an instance of its own."""

    app_host = "127.0.0.2"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFleet]:
    with DemoFleet(tmp_path_factory.mktemp("init"), frozenset(FAULTS), Ports(0, 0, 0, 0, 0), room_seconds=0) as running:
        # Where the parts really listen: as EC2 has the address of an instance.
        for instance_id, address in ((BROKER_INSTANCE_ID, "127.0.0.1"), (ORDERS_INSTANCE_ID, running.app_host)):
            running.world.instances[instance_id].private_ip = address
        yield running


@pytest.mark.slow
def test_the_demo_fleet_is_found_as_its_own_config_describes_it(
    fleet: DemoFleet, tmp_path: Path, warehouse_url: str
) -> None:
    """With that config, `make demo` finds 4 of 4: what is discovered equals it in every source."""
    target, known = tmp_path / "streamwarden.yaml", fleet.config()
    agents = [entry["url"].rpartition(":")[2].partition("/")[0] for entry in known["jmx"]]
    options = [f"--kafka=demo={fleet.broker.bootstrap_servers}", *(f"--port={port}" for port in agents)]
    environment = fleet.aws.environment(*known_place(known))
    begun = time.monotonic()
    done = in_this_process("init", str(target), *options, **environment)
    took_seconds = time.monotonic() - begun
    assert done.returncode == 0, done.stderr + done.stdout
    written = yaml.safe_load(target.read_text())
    assert {key: written[key] for key in ("aws", "kafka", "jmx")} == {
        key: known[key] for key in ("aws", "kafka", "jmx")
    }
    assert took_seconds < 60
    text = target.read_text()
    assert all(secret not in text for secret in (*environment.values(), warehouse_url) if len(secret) > 12)

    again = in_this_process("init", str(target), *options, **environment)
    assert again.returncode == 1 and "exists; use --force to overwrite the file" in again.stderr
    assert target.read_text() == text
    checked = in_this_process("config", "check", str(target), "--probe", **environment)
    assert checked.returncode == 0, checked.stderr + checked.stdout


@pytest.mark.rare
@pytest.mark.slow
def test_applications_of_an_msk_cluster_are_found_by_its_groups(
    fleet: DemoFleet, tmp_path: Path, warehouse_url: str
) -> None:
    """Must be the last test of the fleet: the cluster stays in its account."""
    discovery._discover.cache_clear()
    known = fleet.config()
    cluster = MskCluster(*known_place(known), "shop", brokers=1, authentications=("none",), level="PER_BROKER")
    cluster.hosts[1] = fleet.broker.bootstrap_servers
    fleet.world.msk.add(cluster)
    target = tmp_path / "streamwarden.yaml"
    agents = [entry["url"].rpartition(":")[2].partition("/")[0] for entry in known["jmx"]]
    environment = fleet.aws.environment(*known_place(known))
    done = in_this_process("init", str(target), *(f"--port={port}" for port in agents), **environment)
    assert done.returncode == 0, done.stderr + done.stdout
    written = yaml.safe_load(target.read_text())
    assert [entry["clusters"] for entry in written["msk"]] == ["*"] and "kafka" not in written
    [app] = [entry for entry in written["jmx"] if entry["role"] == "app"]
    assert app == {**known["jmx"][1], "cluster": "shop"}


def known_place(config: dict[str, Any]) -> tuple[str, str]:
    return config["aws"][0]["account"], config["aws"][0]["regions"][0]


class _Pages(BaseHTTPRequestHandler):
    """Serves `pages`: path → status and body."""

    pages: dict[str, tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.pages.get(self.path, (404, b""))
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def serving(pages: dict[str, tuple[int, bytes]]) -> Iterator[int]:
    handler = type("Pages", (_Pages,), {"pages": pages})
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield server.server_port


@pytest.mark.parametrize(
    ("path", "body", "kind", "role", "app"),
    [
        ("/metrics", BROKER_PAGE, "jvm", "broker", None),
        ("/metrics", node_page().encode(), "jvm", "node", None),
        ("/actuator/prometheus", APP_PAGE, "jvm", "app", "pay"),
        ("/metrics", b"go_goroutines 7\n", "jvm", None, None),
        ("/config", b'{"compatibilityLevel": "BACKWARD"}', "schema registry", None, None),
        ("/", b'{"version": "4.1", "kafka_cluster_id": "abc"}', "connect", None, None),
    ],
)
def test_a_port_is_known_by_its_response(path: str, body: bytes, kind: str, role: str | None, app: str | None) -> None:
    with serving({path: (200, body)}) as port:
        [found] = scan(["127.0.0.1", "localhost"], [port, free_port()]).responders
    assert (found.kind, found.role, found.app) == (kind, role, app)
    assert found.url == f"http://127.0.0.1:{port}{path if kind == 'jvm' else ''}"


@pytest.mark.parametrize("body", [b"<html>404</html>", b"", b"{", b"[" * 100_000, b'{"value": 1}', b'"kafka_server_"'])
def test_a_page_of_something_else_is_nothing(body: bytes) -> None:
    paths = ("/jolokia/version", "/metrics", "/actuator/prometheus", "/config", "/")
    with serving(dict.fromkeys(paths, (200, body))) as port:
        assert scan(["127.0.0.1"], [port]).responders == ()


def test_a_port_that_asks_for_credentials_is_reported() -> None:
    with serving({"/metrics": (401, b"")}) as port:
        [found] = scan(["127.0.0.1"], [port]).responders
    assert found.kind == "locked" and found.url.endswith("/metrics")


@contextmanager
def dropping() -> Iterator[int]:
    """A port that drops packets: the queue of its connections is full, and nothing accepts them."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_a_host_that_drops_packets_is_named_and_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with dropping() as port:
        found = scan(["127.0.0.1"], [port])
        assert found.responders == () and found.dropped == ("127.0.0.1",) and found.is_complete
        monkeypatch.setattr(ports, "SCAN_SECONDS", 0.3)
        monkeypatch.setattr(ports, "CONNECT_SECONDS", 100.0)
        begun = time.monotonic()
        assert not scan(["127.0.0.1"], [port]).is_complete
        assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("client_id", "name"),
    [
        ("orders-1b4e28ba-2fa1-11d2-883f-0016d3cca427", "orders"),
        ("orders-1b4e28ba-2fa1-11d2-883f-0016d3cca427-StreamThread-1-consumer", "orders"),
        ("consumer-billing-eu-12", "billing-eu"),
        ("shop", "shop"),
        ("", None),
    ],
)
def test_the_name_of_an_application(client_id: str, name: str | None) -> None:
    assert app_name(client_id) == name


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    discovery._discover.cache_clear()
    load_config.__globals__["_load_sent"].cache_clear()
    world = World(seed=1, now=lambda: datetime.now(UTC))
    world.add_volume(ACCOUNT, REGION, "vol-0a", "gp3", 10)
    monkeypatch.setenv(CONFIG_ENV, "/nowhere/streamwarden.yaml")
    with AwsEndpoint(world) as running:
        for name, value in running.environment(ACCOUNT, REGION).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.mark.rare
def test_msk_clusters_are_found_by_how_clients_log_in(
    endpoint: AwsEndpoint, tmp_path: Path, warehouse_url: str
) -> None:
    endpoint.world.msk.add(MskCluster(ACCOUNT, REGION, "orders", level="PER_BROKER"))
    endpoint.world.msk.add(MskCluster(ACCOUNT, REGION, "ledger", authentications=("scram",)))
    target = tmp_path / "streamwarden.yaml"
    in_this_process("init", str(target), "--no-scan")
    written = yaml.safe_load(target.read_text())
    common = {"account": ACCOUNT, "regions": [REGION], "open_monitoring": False}
    assert sorted(written["msk"], key=lambda entry: str(entry["clusters"])) == [
        common | {"clusters": "ledger", "authentication": "none", "connect": False},
        common | {"clusters": "orders", "authentication": "iam"},
    ]
    assert "Clients log in by scram: set `authentication: scram` and `secret`" in target.read_text()


def test_what_aws_denies_is_in_the_file_with_the_statement(
    endpoint: AwsEndpoint, tmp_path: Path, warehouse_url: str
) -> None:
    for action in ("DescribeInstances", "ListClustersV2"):
        endpoint.faults.inject("deny", times=None, action=action)
    target = tmp_path / "streamwarden.yaml"
    done = in_this_process("init", str(target))
    assert done.returncode == 1 and "failed: see the lines in red" in done.stderr
    text = target.read_text()
    assert yaml.safe_load(text) == {"aws": [{"account": ACCOUNT, "regions": [REGION]}]}
    for permission in ("ec2:DescribeInstances", "kafka:ListClustersV2"):
        assert f'"Action": ["{permission}"]' in text
        assert f"access denied for {permission}" in text


def test_one_connect_worker_of_a_cluster_is_written_and_several_are_named() -> None:
    def worker(host: str, cluster_id: str) -> Responder:
        return Responder(host, 8083, "connect", f"http://{host}:8083", cluster_id=cluster_id)

    clusters = [Cluster(name, cluster_id) for name, cluster_id in {"orders": "a", "billing": "b"}.items()]
    entries = [{"name": cluster.name, "bootstrap_servers": "b:9092"} for cluster in clusters]
    workers = (worker("w1", "a"), worker("w2", "b"), worker("w3", "b"), worker("w4", "other"))
    fleet = Discovered(clusters=clusters, kafka=entries, scan=Scan(workers, ()))
    found = {entry["name"]: entry.get("connect") for entry, _ in dict(fleet.sections())["kafka"]}
    assert found == {"orders": [{"name": "connect", "url": "http://w1:8083"}], "billing": None}
    assert [note[0] for note in fleet.notes()] == ["http://w2:8083", "http://w3:8083", "http://w4:8083"]


def test_nothing_found_writes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "streamwarden.yaml"
    done = in_this_process("init", str(target), "--no-aws")
    assert done.returncode == 1 and done.stderr.startswith("streamwarden: nothing to watch was found; name a cluster")
    assert not target.exists()


def test_a_cluster_that_is_away_is_written_with_the_reason(tmp_path: Path, warehouse_url: str) -> None:
    target, server = tmp_path / "streamwarden.yaml", f"127.0.0.1:{free_port()}"
    done = in_this_process("init", str(target), "--no-aws", f"--kafka=shop={server}")
    assert done.returncode == 1
    assert yaml.safe_load(target.read_text()) == {"kafka": [{"name": "shop", "bootstrap_servers": server}]}
    assert f"# - kafka shop: no broker of cluster 'shop' at {server} responded" in target.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--client=sasl.password=hunter2"], "--client sasl.password: a secret is not written to the file"),
        (["--client=security.protocol"], "--client security.protocol: write KEY=VALUE"),
        (["--kafka=broker"], "--kafka broker: write [NAME=]HOST:PORT"),
        (["--role=reader"], "--role reader: is no ARN of a role"),
    ],
)
def test_a_wrong_option_is_one_line(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "streamwarden.yaml"
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    done = in_this_process("init", str(target), *options)
    assert done.returncode == 1 and message in done.stderr and "hunter2" not in done.stderr
    assert not target.exists()


def test_text_from_outside_stays_in_its_comment(
    endpoint: AwsEndpoint, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamwarden.cli.init.fleet import Fleet as Found
    from streamwarden.cli.init.write import text_of

    found = Found(problems=[("a\nb: 1\x85c: 2\u2028d: 3", "x\r\ntickets: {}", 'http://u:hunter2@h/ "\n---"')])
    text = text_of(found)
    assert yaml.safe_load(text) is None and "hunter2" not in text
    assert json.dumps(text)
