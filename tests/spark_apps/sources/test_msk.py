"""Discovery of Amazon MSK against the strict AWS endpoint: clusters, brokers, addresses, and what becomes a gap."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config as ClientConfig
from botocore.exceptions import ClientError
from demo.aws_endpoint import AwsEndpoint
from demo.msk_world import MskCluster
from demo.world import World
from pydantic import ValidationError
from streamwarden.base.config import CONFIG_ENV, Config

from spark_apps.sources import aws_client, msk_discovery
from spark_apps.sources.kafka_client import clusters_of
from spark_apps.sources.msk_discovery import Found, discover
from spark_apps.sources.targets import jvms_of
from tests.spark_apps.aws_world import ACCOUNT, NOW, OTHER, REGION

Find = Callable[..., Found]


@pytest.fixture
def world() -> World:
    return World(seed=3, now=lambda: NOW)


@pytest.fixture
def endpoint(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    world.msk.add(MskCluster(ACCOUNT, REGION, "orders", jmx_exporter=True, node_exporter=True, level="PER_BROKER"))
    quick = ClientConfig(retries={"mode": "standard", "total_max_attempts": 2})
    monkeypatch.setattr(aws_client, "_CLIENT", aws_client._CLIENT.merge(quick))
    msk_discovery._discover.cache_clear()
    with AwsEndpoint(world) as running:
        for name, value in running.environment(ACCOUNT, REGION).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def find(endpoint: AwsEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Find:
    def found(*entries: dict[str, Any], **sections: Any) -> Found:
        config = config_of(*entries, **sections)
        file = tmp_path / "streamwarden.yaml"
        file.write_text(json.dumps(config.model_dump(mode="json", exclude_unset=True)))
        monkeypatch.setenv(CONFIG_ENV, str(file))
        return discover(config)

    return found


def config_of(*entries: dict[str, Any], **sections: Any) -> Config:
    of_all = {"account": ACCOUNT, "regions": [REGION]}
    return Config.model_validate({"msk": [of_all | entry for entry in entries or ({},)], **sections})


def test_a_cluster_with_its_brokers_and_where_clients_reach_it(find: Find, endpoint: AwsEndpoint) -> None:
    (cluster,) = find().clusters
    assert (cluster.cluster, cluster.kind, cluster.state, cluster.monitoring_level) == (
        "orders", "standard", "ACTIVE", "PER_BROKER"
    )  # fmt: skip
    assert (cluster.instance_type, cluster.volume_gib, cluster.provisioned_mib_s) == ("kafka.m5.large", 100, None)
    assert [broker.broker_id for broker in cluster.brokers] == [1, 2, 3]
    assert [broker.availability_zone for broker in cluster.brokers] == [f"{REGION}{zone}" for zone in "bca"]
    first = cluster.brokers[0].host
    assert first.startswith("b-1.orders.") and first.endswith(f".c2.kafka.{REGION}.amazonaws.com")
    assert cluster.bootstrap_servers and cluster.bootstrap_servers.startswith(f"{first}:9098,")
    assert cluster.gaps == () and find().gaps == ()
    assert endpoint.calls["ListClustersV2"] == endpoint.calls["ListNodes"] == 1  # the second answer was remembered


def test_all_pages_are_read(find: Find, world: World) -> None:
    for number in range(110):
        world.msk.add(MskCluster(ACCOUNT, REGION, f"many-{number:03}", brokers=3, is_serverless=True))
    world.msk.add(MskCluster(ACCOUNT, REGION, "wide", brokers=120, instance_type="express.m7g.large"))
    assert len(find({"clusters": "many-*"}).clusters) == 110
    (wide,) = find({"clusters": "wide"}).clusters
    assert len(wide.brokers) == 120


@pytest.mark.parametrize("state", ["CREATING", "DELETING", "FAILED"])
def test_a_cluster_that_comes_or_goes_is_a_gap_and_the_others_are_read(find: Find, world: World, state: str) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "young", state=state))
    found = find()
    assert {cluster.cluster: len(cluster.brokers) for cluster in found.clusters} == {"orders": 3, "young": 0}
    ((resource, reason),) = found.all_gaps
    assert resource == f"{ACCOUNT}/{REGION} MSK cluster young"
    assert reason == f"missing: the cluster is {state}; it is read once it is ACTIVE."


@pytest.mark.parametrize(
    ("action", "left", "permission"),
    [
        ("ListClustersV2", {}, "kafka:ListClustersV2"),
        ("GetBootstrapBrokers", {"orders": (3, False)}, "kafka:GetBootstrapBrokers"),
        ("ListNodes", {"orders": (0, True)}, "kafka:ListNodes"),
        ("DescribeSubnets", {"orders": (3, True)}, "ec2:DescribeSubnets"),
    ],
)
def test_a_missing_permission_is_named_and_costs_no_more_than_it_gives(
    find: Find, endpoint: AwsEndpoint, action: str, left: dict[str, tuple[int, bool]], permission: str
) -> None:
    endpoint.faults.inject("deny", action=action, times=None)
    found = find()
    read = {one.cluster: (len(one.brokers), one.bootstrap_servers is not None) for one in found.clusters}
    assert read == left
    ((_, reason),) = found.all_gaps
    assert f"access denied for {permission}; grant it" in reason


def test_throttling_is_ridden_out_and_then_a_gap(find: Find, endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("throttle", action="ListNodes", times=1)
    assert find().all_gaps == []
    endpoint.faults.inject("throttle", action="ListNodes", times=None)
    ((resource, reason),) = find({"clusters": "order?"}).all_gaps
    assert resource.endswith("MSK cluster orders brokers")
    assert "throttled ListNodes" in reason


@pytest.mark.parametrize("kind", ["malformed", "reset", "server_error"])
def test_an_answer_that_is_none_is_a_gap(find: Find, endpoint: AwsEndpoint, kind: Any) -> None:
    endpoint.faults.inject(kind, action="ListClustersV2", times=None)
    found = find()
    assert found.clusters == ()
    ((_, reason),) = found.gaps
    assert reason.startswith("failed: ")


def test_without_open_monitoring_the_gap_says_how_to_turn_it_on(find: Find, world: World) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "plain"))
    (cluster,) = find({"clusters": "plain"}).clusters
    ((resource, reason),) = cluster.gaps
    assert resource.endswith("plain open monitoring")
    assert "update-monitoring" in reason and cluster.arn in reason and "--current-version K13V1IB3VIYZZH" in reason
    assert find({"clusters": "plain", "open_monitoring": False}).all_gaps == []


def test_serverless_and_express_say_what_they_do_not_expose(find: Find, world: World) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "less", is_serverless=True))
    world.msk.add(MskCluster(ACCOUNT, REGION, "fast", instance_type="express.m7g.large", jmx_exporter=True))
    (less,) = find({"clusters": "less"}).clusters
    assert less.kind == "serverless" and ":9098" in str(less.bootstrap_servers)
    assert "Serverless has no brokers, storage, or instances" in less.gaps[0][1]
    (fast,) = find({"clusters": "fast"}).clusters
    assert fast.kind == "express" and len(fast.brokers) == 3 and fast.volume_gib is None
    assert "Express brokers expose no volume, heap" in fast.gaps[0][1]


def test_a_way_to_log_in_that_the_cluster_does_not_have(find: Find) -> None:
    (cluster,) = find({"authentication": "scram", "secret": "AmazonMSK_watch"}).clusters
    assert cluster.bootstrap_servers is None
    ((_, reason),) = cluster.gaps
    assert reason.startswith("missing: no private address for `authentication: scram`; the cluster has iam: set")


@pytest.mark.parametrize(
    ("ways", "entry", "protocol", "port"),
    [
        (("scram",), {"authentication": "scram", "secret": "AmazonMSK_watch"}, "SASL_SSL", 9096),
        (("mtls",), {"authentication": "mtls", "certificate": "/c.pem", "key": "/k.pem"}, "SSL", 9094),
        (("none", "tls"), {"authentication": "none"}, "SSL", 9094),
        (("none",), {"authentication": "none"}, "PLAINTEXT", 9092),
    ],
)
def test_clients_of_each_way_to_log_in(
    find: Find, world: World, ways: tuple[str, ...], entry: dict[str, Any], protocol: str, port: int
) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "other", authentications=ways))
    entry = {"clusters": "other", **entry}
    assert find(entry).clusters
    (kafka,) = clusters_of(config_of(entry))
    assert kafka.bootstrap_servers.endswith(f":{port}") and kafka.client["security.protocol"] == protocol
    assert (kafka.aws_login is not None) == (protocol == "SASL_SSL")


def test_brokers_are_read_at_the_ports_of_open_monitoring(find: Find) -> None:
    find()
    jvms = jvms_of(config_of())
    assert [e.role for e in jvms.endpoints] == ["broker", "node"] * 3
    first = jvms.endpoints[0]
    assert first.url.endswith(":11001/metrics") and first.broker_id == 1 and first.instance_id == "msk-orders-b-1"
    assert jvms.endpoints[1].url.endswith(":11002/metrics") and jvms.endpoints[1].instance_id == "msk-orders-b-1"
    find({"open_monitoring": False})
    assert jvms_of(config_of({"open_monitoring": False})).endpoints == []


def test_a_broker_that_is_configured_by_hand_is_read_once(find: Find) -> None:
    host = find().clusters[0].brokers[1].host
    by_hand = {
        "kafka": [{"name": "shop", "bootstrap_servers": f"{host}:9098"}],
        "jmx": [
            {"role": "broker", "cluster": "shop", "protocol": "prometheus", "url": f"http://{host}:11001/metrics"},
            {"role": "broker", "cluster": "shop", "url": "http://10.9.9.9:8778/jolokia", "broker_id": 3},
        ],
    }
    (cluster,) = find(**by_hand).clusters
    assert cluster.cluster == "shop" and cluster.is_in_config
    config = config_of(**by_hand)
    assert [kafka.name for kafka in clusters_of(config)] == ["shop"]
    brokers = [e for e in jvms_of(config).endpoints if e.role == "broker"]
    assert sorted(str(e.instance_id) for e in brokers) == ["msk-orders-b-1", "msk-orders-b-2", "msk-orders-b-3"]


def test_names_that_meet(find: Find, world: World) -> None:
    world.msk.add(MskCluster(ACCOUNT, "eu-west-1", "orders"))
    both = {"regions": [REGION, "eu-west-1"], "open_monitoring": False}
    found = find(both)
    assert [(one.cluster, one.region) for one in found.clusters] == [("orders", REGION)]
    ((resource, reason),) = found.gaps
    assert resource == f"{ACCOUNT}/eu-west-1 MSK cluster orders" and "set `name` of its entry" in reason
    names = [one.cluster for one in find(both | {"name": "{region}-{name}"}).clusters]
    assert names == [f"{REGION}-orders", "eu-west-1-orders"]
    taken = find(kafka=[{"name": "orders", "bootstrap_servers": "elsewhere:9092"}])
    assert taken.clusters == () and "another cluster under `kafka`" in taken.gaps[0][1]


def test_another_account_is_read_by_its_role(find: Find, world: World) -> None:
    world.msk.add(MskCluster(OTHER, REGION, "theirs", jmx_exporter=True))
    role = f"arn:aws:iam::{OTHER}:role/streamwarden"
    (cluster,) = find({"account": OTHER, "role_arn": role}).clusters
    assert (cluster.account, cluster.msk_name) == (OTHER, "theirs")


def test_no_cluster_of_that_name(find: Find) -> None:
    ((_, reason),) = find({"clusters": "payments-*"}).gaps
    assert reason == f"missing: none of 1 MSK clusters in {ACCOUNT}/{REGION} has such a name."


@pytest.mark.parametrize(
    "entry",
    [
        {"regions": []},
        {"authentication": "scram"},
        {"authentication": "mtls", "certificate": "/c.pem"},
        {"secret": "AmazonMSK_x"},
        {"name": "msk"},
        {"name": "{id}"},
        {"account": "1"},
    ],
)
def test_entries_that_are_wrong(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        config_of(entry)


def test_regions_and_role_of_the_account_count_for_its_clusters() -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/r"
    config = config_of({"regions": []}, aws=[{"account": ACCOUNT, "regions": [REGION], "role_arn": role}])
    assert config.msk_regions(config.msk[0]) == [REGION]
    account = config.account_named(ACCOUNT)
    assert account and account.role_arn == role and config.account_named(OTHER) is None


@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        ("list_clusters_v2", {"MaxResults": 101}, "BadRequestException"),
        ("list_clusters_v2", {"NextToken": "x"}, "BadRequestException"),
        ("list_nodes", {"ClusterArn": "orders"}, "BadRequestException"),
        (
            "describe_cluster_v2",
            {"ClusterArn": f"arn:aws:kafka:{REGION}:{ACCOUNT}:cluster/no/1-2"},
            "NotFoundException",
        ),
    ],
)
def test_the_endpoint_refuses_what_msk_refuses(
    endpoint: AwsEndpoint, call: str, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(boto3.client("kafka"), call)(**arguments)
    assert refused.value.response["Error"]["Code"] == code
