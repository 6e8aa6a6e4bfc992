"""The fleet of FLEET=msk: which faults it has, and that its real brokers are found by MSK's API."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from demo.__main__ import _class_of
from demo.chain import Chain
from demo.faults import FAULTS
from demo.fleet import Fleet
from demo.msk_fleet import HOSTS, STARVED_BROKER, MskFleet
from demo.ports import Ports
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources import msk_discovery as discovery
from spark_apps.sources.kafka_client import clusters_of
from spark_apps.sources.targets import jvms_of


def test_a_fleet_is_chosen_by_its_kind_and_faults() -> None:
    assert _class_of("ec2", frozenset(FAULTS)) is Fleet
    assert _class_of("ec2", frozenset({"chain"})) is Chain
    assert _class_of("msk", frozenset(FAULTS)) is MskFleet
    with pytest.raises(StreamwardenError, match=r"^FLEET=msk has no fault 'lag'; choose among ebs, memory,"):
        _class_of("msk", frozenset({"ebs", "lag"}))
    with pytest.raises(StreamwardenError, match=r"^FLEET: 'moon' is unknown; choose among ec2, msk"):
        _class_of("moon", frozenset())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MskFleet]:
    with MskFleet(tmp_path_factory.mktemp("msk"), frozenset({"ebs"}), Ports(0, 0, 0, 0, 0), room_seconds=0) as running:
        yield running


@pytest.mark.rare
@pytest.mark.slow
def test_no_broker_is_in_the_config_and_each_is_found(fleet: MskFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fleet.environment().items():
        monkeypatch.setenv(name, value)
    discovery._discover.cache_clear()
    config = load_config()
    assert not config.kafka and {endpoint.role for endpoint in config.jmx} == {"app"}
    [cluster] = clusters_of(config)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **cluster.client})
    assert {broker.host for broker in admin.list_topics(timeout=30).brokers.values()} == {*HOSTS.values()}
    brokers = [endpoint for endpoint in jvms_of(config).endpoints if endpoint.role == "broker"]
    assert {endpoint.instance_id for endpoint in brokers} == {f"msk-demo-b-{number}" for number in HOSTS}
    for endpoint in brokers:
        assert "kafka_server_BrokerTopicMetrics" in httpx.get(endpoint.url, timeout=60).text
    assert [fault.resource for fault in fleet.truth] == [f"msk-demo-b-{STARVED_BROKER}-data"]
