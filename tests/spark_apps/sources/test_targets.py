"""Target files in Prometheus' format, and tags of EC2 instances: an error is a gap for its targets only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from demo.aws_endpoint import AwsEndpoint
from demo.world import World
from pydantic import ValidationError
from streamwarden.base.config import Config, JmxEndpoint

from spark_apps.sources.targets import Gap, Jvms, _instances, _on_instance, jvms_of
from tests.spark_apps.aws_world import environment

BROKER = {"role": "broker", "cluster": "orders"}


def found_in(folder: Path, *groups: Any, defaults: dict[str, Any] | None = None) -> Jvms:
    (folder / "kafka-1.json").write_text(json.dumps(groups))
    return jvms_of(config_for(str(folder / "kafka-*.json"), defaults or {}))


def config_for(path: str, defaults: dict[str, Any]) -> Config:
    return Config.model_validate(
        {
            "kafka": [{"name": "orders", "bootstrap_servers": "b"}],
            "jmx": [{**BROKER, "url": "http://b1:8778/jolokia"}],
            "jmx_files": [{"path": path, "defaults": defaults}],
        }
    )


def test_targets_and_labels_become_endpoints(tmp_path: Path) -> None:
    jvms = found_in(
        tmp_path,
        {"targets": ["b2:7071", "b3:7071"], "labels": {**BROKER, "env": "prod"}},
        {
            "targets": ["a1:8080"],
            "labels": {"role": "app", "cluster": "orders", "app": "billing", "instance_id": "i-1"}
            | {"__scheme__": "https", "__metrics_path__": "/actuator/prometheus"},
        },
        {"targets": ["b4:8778"], "labels": {**BROKER, "protocol": "jolokia", "broker_id": "4"}},
    )
    assert not jvms.gaps
    assert [(e.protocol, e.url) for e in jvms.endpoints] == [
        ("jolokia", "http://b1:8778/jolokia"),
        ("prometheus", "http://b2:7071/metrics"),
        ("prometheus", "http://b3:7071/metrics"),
        ("prometheus", "https://a1:8080/actuator/prometheus"),
        ("jolokia", "http://b4:8778/jolokia"),
    ]
    assert jvms.endpoints[3].app == "billing" and jvms.endpoints[3].instance_id == "i-1"
    assert jvms.endpoints[4].broker_id == 4


def test_labels_override_defaults_and_credentials_come_from_defaults_only(tmp_path: Path) -> None:
    defaults = {**BROKER, "user": "reader", "password": "sesame", "timeout_seconds": 3}
    labels = {"role": "app", "app": "billing", "user": "mallory", "timeout_seconds": "99"}
    jvms = found_in(tmp_path, {"targets": ["b2:7071"]}, {"targets": ["a1:1"], "labels": labels}, defaults=defaults)
    _, broker, app = jvms.endpoints
    assert (broker.role, broker.cluster, broker.user, broker.timeout_seconds) == ("broker", "orders", "reader", 3)
    assert (app.role, app.app, app.user, app.timeout_seconds) == ("app", "billing", "reader", 3)


def test_yaml_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_text("- targets: [b2:7071]\n  labels: {role: broker, cluster: orders}\n")
    jvms = jvms_of(config_for(str(tmp_path / "t.yml"), {}))
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b2:7071/metrics"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "failed: neither JSON nor YAML"),
        ("", 'failed: not a list of {"targets"'),
        ("[7]", 'failed: not a list of {"targets"'),
        ("\x00", "failed: neither JSON nor YAML"),
        ('[{"targets": "b2:7071"}]', "failed: `targets` of a group is not a list"),
    ],
)
def test_a_broken_file_is_a_gap_and_the_others_are_read(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "kafka-2.json").write_text(text)
    jvms = found_in(tmp_path, {"targets": ["b2:7071"], "labels": BROKER})
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b2:7071/metrics"]
    (gap,) = jvms.gaps
    assert gap.resource == f"targets of {tmp_path}/kafka-2.json" and gap.reason.startswith(reason)


def test_no_file_is_a_gap(tmp_path: Path) -> None:
    (gap,) = jvms_of(config_for(f"{tmp_path}/none-*.json", {"role": "app"})).gaps
    assert (gap.reason, gap.role) == ("missing: no such file", "app")


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"cluster": "orders"}, "role Field required"),
        ({"role": "app", "cluster": "orders"}, "needs `app`"),
        ({"role": "broker", "cluster": "other"}, "the cluster 'other' is not under `kafka`"),
        ({**BROKER, "broker_id": "one"}, "broker_id"),
        ({**BROKER, "protocol": "snmp"}, "protocol"),
        ({**BROKER, "__metrics_path__": "/metrics?token=x"}, "the address has a user or a query"),
    ],
)
def test_an_invalid_target_is_a_gap(tmp_path: Path, labels: dict[str, str], reason: str) -> None:
    good = {"targets": ["b3:7071"], "labels": BROKER}
    jvms = found_in(tmp_path, {"targets": ["b2:7071"], "labels": labels}, good)
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b3:7071/metrics"]
    (gap,) = jvms.gaps
    assert gap.resource == f"target b2:7071 of {tmp_path}/kafka-1.json" and reason in gap.reason


@pytest.mark.parametrize("target", ["reader:hunter2@b2:7071", "b2:7071/metrics?token=hunter2", "reader:hunter2?@b2"])
def test_a_gap_does_not_have_the_credentials_that_a_target_must_not_have(tmp_path: Path, target: str) -> None:
    (gap,) = found_in(tmp_path, {"targets": [target], "labels": BROKER}).gaps
    assert gap.reason.startswith("failed: the address has a user or a query")
    assert gap.resource.startswith(("target b2:7071", "target … of")) and "hunter2" not in f"{gap}"


@pytest.mark.parametrize("protocol", ["prometheus", "jmx_rmi"])
def test_a_target_that_is_no_text_is_a_gap_and_the_others_are_read(tmp_path: Path, protocol: str) -> None:
    labels = {**BROKER, "protocol": protocol}
    jvms = found_in(tmp_path, {"targets": [9010, None], "labels": labels}, {"targets": ["b3:7071"], "labels": BROKER})
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b3:7071/metrics"]
    assert [(gap.resource, gap.reason) for gap in jvms.gaps] == [
        (f"target {target} of {tmp_path}/kafka-1.json", "failed: the target is not a text such as host:port")
        for target in (9010, None)
    ]


def test_members_missing_in_a_response_of_ec2_are_unknown() -> None:
    ec2, address = tagged(from_tags={"cluster": "kafka"}).jmx_ec2[0], {"PrivateIpAddress": "10.0.0.1"}
    tags = {"Tags": [{"Key": "kafka", "Value": "orders"}, {"Key": "empty"}, {}]}
    found = _on_instance(address | tags, ec2, {"orders"})
    assert isinstance(found, JmxEndpoint) and (found.url, found.instance_id) == ("http://10.0.0.1:7071/metrics", None)
    without = _on_instance(address, ec2, {"orders"})
    assert isinstance(without, Gap) and without.resource == "instance 10.0.0.1"


def test_defaults_are_checked_with_the_config() -> None:
    with pytest.raises(ValidationError, match="rôle"):
        config_for("x", {"rôle": "app"})
    with pytest.raises(ValidationError, match="url"):
        config_for("x", {"url": "http://b"})


ACCOUNT = "123456789012"


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    """Two brokers, an application without a known cluster, and instances that do not match."""
    world = World(seed=1, now=lambda: datetime(2026, 11, 18, 12, tzinfo=UTC))
    kafka = {"kafka": "orders", "part": "broker"}
    world.add_instance(ACCOUNT, "eu-central-1", "i-0b1", "m5.large", tags={**kafka, "node": "1"})
    world.add_instance(ACCOUNT, "eu-west-1", "i-0b2", "m5.large", tags={**kafka, "node": "2"})
    world.add_instance(ACCOUNT, "eu-west-1", "i-0b3", "m5.large", tags={"kafka": "other", "part": "broker"})
    world.add_instance(ACCOUNT, "eu-west-1", "i-0c1", "m5.large", tags={"part": "web"})
    world.add_instance("210987654321", "eu-west-1", "i-0d1", "m5.large", tags=kafka)
    _instances.cache_clear()
    with AwsEndpoint(world) as running:
        for name, value in environment(running, tmp_path, [AWS]).items():
            monkeypatch.setenv(name, value)
        yield running


AWS = {"account": ACCOUNT, "regions": ["eu-central-1", "eu-west-1"]}


def tagged(**ec2: Any) -> Config:
    wanted = {"account": ACCOUNT, "tags": {"part": "broker"}, "port": 7071, "from_tags": {"cluster": "kafka"}}
    wanted |= {"defaults": {"role": "broker", "user": "reader", "password": "sesame"}}
    clusters = [{"name": "orders", "bootstrap_servers": "b"}]
    return Config.model_validate({"kafka": clusters, "aws": [AWS], "jmx_ec2": [wanted | ec2]})


def test_tagged_instances_of_all_regions_become_endpoints(aws: AwsEndpoint) -> None:
    jvms = jvms_of(tagged(from_tags={"cluster": "kafka", "broker_id": "node"}))
    found = {e.instance_id: e for e in jvms.by_section["jmx_ec2.0"]}
    address = aws.world.instances["i-0b1"].private_ip
    assert found.keys() == {"i-0b1", "i-0b2"} and found["i-0b1"].url == f"http://{address}:7071/metrics"
    assert (found["i-0b2"].role, found["i-0b2"].broker_id, found["i-0b2"].user) == ("broker", 2, "reader")
    (gap,) = jvms.gaps
    assert gap.resource == "instance i-0b3" and gap.reason == "failed: the cluster 'other' is not under `kafka`"
    jvms_of(tagged())
    assert aws.calls["DescribeInstances"] == 2  # one snapshot for all steps of a run


@pytest.mark.parametrize(
    ("keys", "url"),
    [
        ({"protocol": "jolokia", "user": "u"}, "https://10.0.0.1:7071/jolokia"),
        ({"protocol": "jmx_rmi"}, "rmi://10.0.0.1:7071/jmxrmi"),
    ],
)
def test_addresses_are_those_of_the_protocol(aws: AwsEndpoint, keys: dict[str, Any], url: str) -> None:
    jvms = jvms_of(tagged(scheme="https", defaults={"role": "broker", **keys}))
    address = aws.world.instances["i-0b1"].private_ip
    assert jvms.by_section["jmx_ec2.0"][0].url == url.replace("10.0.0.1", address)


def test_a_failing_aws_call_is_a_gap_and_the_others_are_read(aws: AwsEndpoint) -> None:
    aws.faults.inject("deny", times=None, action="DescribeInstances", region="eu-west-1")
    jvms = jvms_of(tagged())
    assert [e.instance_id for e in jvms.endpoints] == ["i-0b1"]
    (gap,) = jvms.gaps
    assert gap.resource == f"instances with JVMs in {ACCOUNT}/eu-west-1" and gap.role == "broker"
    assert "access denied for ec2:DescribeInstances" in gap.reason


def test_no_matching_instance_is_a_gap(aws: AwsEndpoint) -> None:
    (gap,) = jvms_of(tagged(tags={"part": "broker", "kafka": "none*"})).gaps
    assert gap.reason == "missing: no running instance is tagged part=broker, kafka=none*"


def test_a_search_names_a_known_account_and_known_keys() -> None:
    with pytest.raises(ValidationError, match="which is not under `aws`"):
        tagged(account="999999999999")
    with pytest.raises(ValidationError, match="from_tags"):
        tagged(from_tags={"password": "secret"})
