"""The fleet of FLEET=kubernetes: brokers and application are found by the Kubernetes API, with claims and owners."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from confluent_kafka.admin import AdminClient
from demo import kubernetes_fleet as demo
from demo.__main__ import _class_of
from demo.demo_world import ORDERS_VOLUME_ID
from demo.exporter_fleet import HOSTS
from demo.faults import FAULTS
from demo.kubernetes_api import PROGRAM
from demo.kubernetes_fleet import KubernetesFleet
from demo.ports import Ports
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.kafka_client import clusters_of
from spark_apps.sources.kube.discover import discover
from spark_apps.sources.targets import jvms_of
from tests.plugins.cli.test_cli import in_this_process

FREE = Ports(0, 0, 0, 0, 0)
needs_api = pytest.mark.skipif(not PROGRAM.exists(), reason="make kubernetes-api builds the API server")


def test_the_fleet_is_chosen_by_its_kind() -> None:
    assert _class_of("kubernetes", frozenset(FAULTS)) is KubernetesFleet
    with pytest.raises(StreamwardenError, match=r"^FLEET=kubernetes has no fault 'lag'; choose among ebs, memory,"):
        _class_of("kubernetes", frozenset({"lag"}))


def test_without_an_api_server_one_line_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PROGRAM", tmp_path / "missing")
    with (
        pytest.raises(
            StreamwardenError, match=r"^FLEET=kubernetes needs a Kubernetes API server: `make kubernetes-api"
        ),
        KubernetesFleet(tmp_path, frozenset(FAULTS), FREE, room_seconds=0),
    ):
        pass
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesFleet]:
    with KubernetesFleet(tmp_path_factory.mktemp("kubernetes"), frozenset(FAULTS), FREE, room_seconds=0) as running:
        yield running


@pytest.mark.rare
@pytest.mark.slow
@needs_api
def test_no_host_is_in_the_config_and_each_is_found(fleet: KubernetesFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fleet.environment().items():
        monkeypatch.setenv(name, value)
    config = load_config()
    assert not config.kafka and not config.jmx
    assert not any(host in fleet.config_file.read_text() for host in (*HOSTS.values(), demo.APP_HOST))
    [cluster] = clusters_of(config)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **cluster.client})
    assert {broker.host for broker in admin.list_topics(timeout=30).brokers.values()} == {*HOSTS.values()}
    for endpoint in jvms_of(config).endpoints:
        page = httpx.get(endpoint.url, timeout=60).text
        assert ("kafka_server_BrokerTopicMetrics" if endpoint.role == "broker" else "kafka_streams") in page
    found = discover(config)
    assert not found.gaps
    pods = {one.pod.name: one for one in found.pods}
    assert pods.keys() == {"demo-broker-1", "demo-broker-2", "orders-0"}
    app, neighbor = pods["orders-0"], pods["demo-broker-2"]
    assert (app.app, app.owner, app.container and app.container.memory_limit_bytes) == (
        "orders",
        "team-orders",
        4 * 2**30,
    )
    assert app.instance_id == neighbor.instance_id == demo.NODES[2], "nodes do not tell them apart; claims do"
    assert [[claim.volume_id for claim in one.claims] for one in (app, neighbor)] == [
        [ORDERS_VOLUME_ID], [demo.VOLUMES[2]]
    ]  # fmt: skip


@pytest.mark.rare
@pytest.mark.slow
@needs_api
def test_init_writes_a_config_that_finds_the_same_pods(
    fleet: KubernetesFleet, tmp_path: Path, warehouse_url: str
) -> None:
    known = fleet.config()
    [entry] = known["kubernetes"]
    kubeconfig = Path(entry["kubeconfig"])
    aws = fleet.aws.environment(known["aws"][0]["account"], known["aws"][0]["regions"][0])
    target, begun = tmp_path / "streamwarden.yaml", time.monotonic()
    done = in_this_process("init", str(target), "--no-scan", KUBECONFIG=str(kubeconfig), **aws)
    took_seconds = time.monotonic() - begun
    assert done.returncode == 0, done.stderr + done.stdout
    written = yaml.safe_load(target.read_text())
    assert written["aws"] == known["aws"] and "kafka" not in written and "jmx" not in written
    assert written["kubernetes"] == [
        {
            "name": "test", "context": "test", "kubeconfig": str(kubeconfig), "namespaces": ["kafka", "shop"],
            "selectors": {"apps": ["app.kubernetes.io/name=orders"]},
        }
    ]  # fmt: skip
    assert took_seconds < 60
    assert demo.READER not in target.read_text()
