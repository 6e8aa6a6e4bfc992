"""The sources ec2_volumes and ec2_instances against the strict AWS endpoint: rows and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config as ClientConfig
from demo import aws_endpoint
from demo.aws_endpoint import HANDLERS, AwsEndpoint
from demo.world import World

from spark_apps.sources import aws_client
from spark_apps.sources.aws_client import Place
from spark_apps.sources.ec2 import Ec2Instances, Ec2InstanceTypes, Ec2Volumes
from tests.spark_apps.aws_world import (
    ACCOUNT,
    INSTANCE,
    NOW,
    OTHER,
    REGION,
    environment,
    gaps,
    read_place,
    volume_id,
    world_of,
)

HOME = Place(ACCOUNT, REGION)


@pytest.fixture
def endpoint(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    with AwsEndpoint(world) as running:
        for name, value in environment(running, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def world() -> World:
    return world_of(3)


@pytest.fixture
def two_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    two = ClientConfig(retries={"mode": "standard", "total_max_attempts": 2})
    monkeypatch.setattr(aws_client, "_CLIENT", aws_client._CLIENT.merge(two))


def hang(endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """No response to DescribeVolumes, and a client that waits for one second."""
    monkeypatch.setattr(aws_client, "_CLIENT", aws_client._CLIENT.merge(ClientConfig(read_timeout=1)))
    endpoint.faults.inject("hang", times=None, action="DescribeVolumes", seconds=60)


def test_volumes_with_their_attachments(endpoint: AwsEndpoint, world: World) -> None:
    world.add_volume(ACCOUNT, REGION, "vol-0d", "gp2", 10, tags={"Name": "spare", "owner": "me"})
    rows = {row["volume_id"]: row for row in read_place(Ec2Volumes, HOME)}
    assert len(rows) == 4 and all(row.get("gap") is None for row in rows.values())
    first = rows[volume_id(0)]
    assert (first["volume_type"], first["size_gib"], first["iops"], first["throughput_mib_s"]) == (
        "gp3",
        100,
        3000,
        125,
    )
    assert first["attachments"][0]["instance_id"] == INSTANCE and first["attachments"][0]["device"] == "/dev/sdf"
    spare = rows["vol-0d"]
    assert spare["attachments"] == [] and spare["state"] == "available" and spare["throughput_mib_s"] is None
    assert dict(spare["tags"]) == {"Name": "spare", "owner": "me"} and spare["created_at"] <= NOW


def test_instances_with_the_limits_of_their_type(endpoint: AwsEndpoint) -> None:
    instance, types = read_place(Ec2Instances, HOME)
    assert instance["vcpus"] == 16 and instance["memory_bytes"] == 64 * 1024**3 and instance["nitro"] is True
    assert instance["ebs_baseline_iops"] == 18750
    assert instance["ebs_baseline_bytes_per_second"] == 4750e6 / 8
    assert types["resource"] == f"{HOME} instance types" and types["gap"] is None
    assert endpoint.calls["DescribeInstanceTypes"] == 1


def test_all_pages_are_read(endpoint: AwsEndpoint, world: World) -> None:
    for number in range(3, 1100):
        world.add_volume(ACCOUNT, REGION, volume_id(number), "gp3", 1)
    assert len(read_place(Ec2Volumes, HOME)) == 1100
    assert endpoint.calls["DescribeVolumes"] == 3


def test_an_empty_region_has_answered(endpoint: AwsEndpoint) -> None:
    rows = read_place(Ec2Volumes, Place(ACCOUNT, "us-east-1"))
    assert [(row["resource"], row.get("volume_id"), row.get("gap")) for row in rows] == [
        (f"{ACCOUNT}/us-east-1 volumes", None, None)
    ]


def test_another_account_by_role_and_external_id(
    endpoint: AwsEndpoint, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_attempts: None
) -> None:
    world.add_volume(OTHER, REGION, "vol-0e", "gp3", 10)
    role = f"arn:aws:iam::{OTHER}:role/reader"
    endpoint.roles[role] = "sesame"

    def read(external_id: str | None) -> list[dict]:
        account = {"account": OTHER, "regions": [REGION], "role_arn": role, "external_id": external_id}
        for name, value in environment(endpoint, tmp_path, [account]).items():
            monkeypatch.setenv(name, value)
        aws_client.load_config.__globals__["_load"].cache_clear()
        return read_place(Ec2Volumes, Place(OTHER, REGION))

    assert [row["volume_id"] for row in read("sesame")] == ["vol-0e"]
    (refused,) = gaps(read("guess")).values()
    assert refused.startswith(f"failed: {OTHER}/{REGION}: {role} cannot be assumed; its trust policy must name")
    for kind in ("throttle", "server_error", "malformed", "reset"):
        endpoint.faults.inject(kind, times=None, action="AssumeRole")
        (failed,) = gaps(read("sesame")).values()
        assert failed.startswith("failed: ") and ("AssumeRole" in failed or f"{OTHER}/{REGION}" in failed)
        endpoint.faults.clear()
    monkeypatch.setattr(endpoint, "assume", lambda *who: AwsEndpoint.assume(endpoint, *who[:3], -1))
    (expired,) = gaps(read("sesame")).values()
    assert expired.endswith(f"the credentials for account {OTHER} (ExpiredToken, GetCallerIdentity); renew them.")


def test_credentials_of_another_account_are_not_taken(
    endpoint: AwsEndpoint, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_volume(OTHER, REGION, "vol-0e", "gp3", 10)
    environment(endpoint, tmp_path, [{"account": OTHER, "regions": [REGION]}])
    aws_client.load_config.__globals__["_load"].cache_clear()
    for source, options in ((Ec2Volumes, {}), (Ec2InstanceTypes, {"types": "m5.large"})):
        (gap,) = gaps(read_place(source, Place(OTHER, REGION), **options)).values()
        assert gap.startswith(f"failed: the AWS credentials are those of account {ACCOUNT}, not of {OTHER}; set role_a")


@pytest.mark.parametrize("kind", ["server_error", "reset", "malformed"])
def test_without_a_response_of_sts_the_account_of_the_config_is_used(
    kind: Any, endpoint: AwsEndpoint, two_attempts: None
) -> None:
    endpoint.faults.inject(kind, times=None, action="GetCallerIdentity")
    assert len(read_place(Ec2Volumes, HOME)) == 3
    assert endpoint.calls["GetCallerIdentity"] <= 2


def test_fields_missing_in_a_response_are_null(endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [{"InstanceType": "m9.x"}, {"InstanceType": "m9.y"}]
    answers: dict[str, dict[str, Any]] = {
        "DescribeVolumes": {"Volumes": [{"VolumeId": "vol-0a", "Attachments": [{}], "Tags": [{}, {"Key": "a"}]}]},
        "DescribeInstances": {"Reservations": [{}, {"Instances": [{"InstanceId": "i-0a"}, *kinds]}]},
        "DescribeInstanceTypes": {"InstanceTypes": [{}, {"InstanceType": "m9.x", "EbsInfo": {}}]},
    }
    for action, answer in answers.items():
        monkeypatch.setitem(HANDLERS, ("ec2", action), lambda *call, answer=answer: answer)
    (volume,) = read_place(Ec2Volumes, HOME)
    nothing = ("volume_type", "size_gib", "iops", "throughput_mib_s", "state", "multi_attach", "created_at")
    assert volume["volume_id"] == "vol-0a" and [volume[name] for name in nothing] == [None] * 7
    assert volume["tags"] == [("a", "")] and set(volume["attachments"][0].values()) == {None}
    bare, nameless, _, types = read_place(Ec2Instances, HOME)
    assert bare["instance_id"] == "i-0a" and bare["instance_type"] is bare["state"] is None
    assert nameless["instance_id"] is None and nameless["nitro"] is nameless["memory_bytes"] is None
    assert types["gap"].startswith(f"missing: {HOME}: EC2 does not describe m9.y: ")


def test_an_empty_list_may_be_left_out_but_not_by_others_than_aws(
    endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch, two_attempts: None
) -> None:
    monkeypatch.setitem(HANDLERS, ("ec2", "DescribeVolumes"), lambda *call: {})
    (row,) = read_place(Ec2Volumes, HOME)
    assert "volume_id" not in row and "gap" not in row
    portal = "text/html", b"<html><body>Sign in to the guest network</body></html>"
    sent = aws_endpoint.answer
    monkeypatch.setattr(
        aws_endpoint, "answer", lambda call, *rest: portal if call.service == "ec2" else sent(call, *rest)
    )
    assert "unreadable response: it has no Volumes." in str(gaps(read_place(Ec2Volumes, HOME)))


BAD_ANSWERS: dict[str, tuple[Callable[[AwsEndpoint, pytest.MonkeyPatch], None], str]] = {
    "no permission": (
        lambda e, m: e.faults.inject("deny", times=None, action="DescribeVolumes"),
        "access denied for ec2:DescribeVolumes; grant it to Streamwarden's role or user.",
    ),
    "throttled throughout": (
        lambda e, m: e.faults.inject("throttle", times=None, action="DescribeVolumes"),
        "throttled DescribeVolumes in each of",
    ),
    "server errors": (
        lambda e, m: e.faults.inject("server_error", times=None, action="DescribeVolumes"),
        f"{HOME}: AWS failed DescribeVolumes in each of 6 attempts (InternalError); run the hour again.",
    ),
    "half a page": (
        lambda e, m: e.faults.inject("malformed", times=None, action="DescribeVolumes"),
        "unreadable response",
    ),
    "a connection that dies": (
        lambda e, m: e.faults.inject("reset", times=None, action="DescribeVolumes"),
        "no response after",
    ),
    "no answer at all": (hang, "no response after"),
    "nothing listens": (lambda e, m: m.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), "no response after"),
    "unknown key": (
        lambda e, m: m.setenv("AWS_ACCESS_KEY_ID", "AKIAWRONG"),
        f"for account {ACCOUNT} (InvalidClientTokenId, GetCallerIdentity); renew them; where {REGION} is not enabled",
    ),
    "wrong secret": (lambda e, m: m.setenv("AWS_SECRET_ACCESS_KEY", "wrong"), "AWS rejects the credentials"),
    "no key": (lambda e, m: m.delenv("AWS_ACCESS_KEY_ID"), "no AWS credentials for account"),
    "a wrong clock": (
        lambda e, m: setattr(e, "clock_skew_seconds", 600),
        "(SignatureDoesNotMatch, GetCallerIdentity): this host's clock is 10 min behind AWS's; set it (NTP).",
    ),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_refusal_is_one_gap_in_one_sentence(
    name: str,
    endpoint: AwsEndpoint,
    two_attempts: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    spoil, sentence = BAD_ANSWERS[name]
    spoil(endpoint, monkeypatch)
    rows = read_place(Ec2Volumes, HOME)
    assert len(rows) == 1 and rows[0]["resource"] == f"{HOME} volumes"
    assert rows[0]["gap"].startswith("failed: ") and sentence in rows[0]["gap"] and "\n" not in rows[0]["gap"]
    secret = endpoint.access_key(ACCOUNT)[1]
    assert secret not in rows[0]["gap"]


def test_a_page_that_fails_keeps_the_pages_before(endpoint: AwsEndpoint, world: World, two_attempts: None) -> None:
    for number in range(3, 600):
        world.add_volume(ACCOUNT, REGION, volume_id(number), "gp3", 1)
    endpoint.faults.inject("deny", times=None, after=1, action="DescribeVolumes")
    rows = read_place(Ec2Volumes, HOME)
    assert sum("volume_id" in row for row in rows) == 500 and len(gaps(rows)) == 1


def test_throttled_calls_are_retried(endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("throttle", times=2, action="DescribeVolumes")
    assert len(read_place(Ec2Volumes, HOME)) == 3
    assert endpoint.calls["DescribeVolumes"] == 3


@pytest.mark.parametrize("kind", ["deny", "throttle", "server_error", "malformed", "reset"])
def test_each_call_fails_alone(kind: Any, endpoint: AwsEndpoint, two_attempts: None) -> None:
    endpoint.faults.inject(kind, times=None, action="DescribeInstanceTypes")
    instance, types = read_place(Ec2Instances, HOME)
    assert instance["instance_id"] == INSTANCE and "memory_bytes" not in instance
    assert types["gap"].startswith("failed: ") and (kind != "deny" or "ec2:DescribeInstanceTypes" in types["gap"])
    endpoint.faults.inject(kind, times=None, action="DescribeInstances")
    ((resource, gap),) = gaps(read_place(Ec2Instances, HOME)).items()
    assert resource == f"{HOME} instances" and (kind != "deny" or "ec2:DescribeInstances;" in gap)
    assert len(read_place(Ec2Volumes, HOME)) == 3
