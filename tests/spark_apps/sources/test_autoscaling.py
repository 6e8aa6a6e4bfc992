"""The source scaling_activities against the strict AWS endpoint: rows, look-back, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError
from demo.aws_endpoint import AwsEndpoint
from demo.world import World

from spark_apps.sources.autoscaling import ScalingActivities
from spark_apps.sources.aws_client import Connection, Place
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes
from tests.spark_apps.aws_world import ACCOUNT, HOUR, INSTANCE, NOW, REGION, environment, gaps, read_place, world_of

HOME = Place(ACCOUNT, REGION)
SPAN = {"since": HOUR.isoformat(), "until": (HOUR + timedelta(hours=1)).isoformat()}
FAILED = "an ELB system health check failure"


@pytest.fixture
def world() -> World:
    return world_of(1)


@pytest.fixture
def endpoint(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    with AwsEndpoint(world) as running:
        for name, value in environment(running, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield running


def an_instance(world: World, number: int) -> str:
    world.add_instance(ACCOUNT, REGION, instance := f"i-0b{number:015x}", "m5.large")
    return instance


def take_out(world: World, number: int, minutes_ago: float) -> str:
    instance = an_instance(world, number)
    world.take_out(instance, "orders", NOW - timedelta(minutes=minutes_ago), FAILED)
    return instance


def test_activities_of_the_hour_are_read_with_their_cause(endpoint: AwsEndpoint, world: World) -> None:
    (_, inside, just_now) = (take_out(world, n, ago) for n, ago in enumerate((20.1, 20, 1)))
    rows = {row["instance_id"]: row for row in read_place(ScalingActivities, HOME, **SPAN)}
    assert rows.keys() == {inside, just_now}
    ended, running = rows[inside], rows[just_now]
    assert ended["scaling_group"] == "orders" and ended["is_termination"] and ended["status"] == "Successful"
    assert ended["cause"].endswith(f"was taken out of service in response to {FAILED}.")
    assert ended["started_at"] == HOUR and ended["ended_at"] == HOUR + timedelta(minutes=2)
    assert running["status"] == "InProgress" and running["ended_at"] is None


def test_pages_are_read_as_far_back_as_the_hour(endpoint: AwsEndpoint, world: World) -> None:
    for number in range(150):
        take_out(world, number, 19 * number / 150)
    for number in range(150, 500):
        take_out(world, number, 60 + number)
    assert len(read_place(ScalingActivities, HOME, **SPAN)) == 150
    assert endpoint.calls["DescribeScalingActivities"] == 2


class _Pages:
    """A connection with a client that has these pages."""

    place = HOME

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = pages

    def client(self, _: str) -> _Pages:
        return self

    def get_paginator(self, _: str) -> _Pages:
        return self

    def paginate(self, **_: Any) -> tuple[dict[str, Any], ...]:
        return self.pages


def test_what_changes_while_pages_are_read_is_one_row() -> None:
    """It is on two pages, in two states: two rows with one primary key would fail the load."""
    running = {"ActivityId": "a", "StartTime": HOUR, "StatusCode": "InProgress"}
    ended = running | {"StatusCode": "Successful", "EndTime": HOUR + timedelta(minutes=2)}
    volumes = [{"Volumes": [{"VolumeId": "vol-1", "State": state}]} for state in ("available", "in-use")]
    reservations = [{"Reservations": [{"Instances": [{"InstanceId": "i-1", "State": {"Name": state}}]}]}
                    for state in ("pending", "running")]  # fmt: skip
    for source, key, pages in (
        (ScalingActivities(SPAN), "activity_id", [{"Activities": [running]}, {"Activities": [ended]}]),
        (Ec2Volumes({}), "volume_id", volumes),
        (Ec2Instances({}), "instance_id", reservations),
    ):
        rows = [row for rows in source.read_place(cast(Connection, _Pages(*pages))) for row in rows]
        assert len([row for row in rows if row.get(key)]) == 1


def test_a_region_without_activities_has_answered_and_a_refusal_is_a_gap(endpoint: AwsEndpoint) -> None:
    assert [(row["resource"], "activity_id" in row) for row in read_place(ScalingActivities, HOME, **SPAN)] == [
        (f"{HOME} scaling activities", False)
    ]
    endpoint.faults.inject("deny", times=None, action="DescribeScalingActivities")
    assert gaps(read_place(ScalingActivities, HOME, **SPAN)) == {
        f"{HOME} scaling activities": f"failed: {HOME}: access denied for autoscaling:DescribeScalingActivities;"
        " grant it to Streamwarden's role or user."
    }


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"MaxRecords": 101}, "ValidationError"),
        ({"MaxRecords": 0}, "ValidationError"),
        ({"ActivityIds": ["a"] * 51}, "ValidationError"),
        ({"AutoScalingGroupName": "nobody"}, "ValidationError"),
        ({"AutoScalingGroupName": ""}, "ValidationError"),
        ({"NextToken": "made-up"}, "InvalidNextToken"),
    ],
)
def test_the_endpoint_refuses_what_auto_scaling_refuses(
    endpoint: AwsEndpoint, asked: dict[str, Any], code: str
) -> None:
    client = boto3.client("autoscaling", region_name=REGION, config=boto3.session.Config(parameter_validation=False))
    with pytest.raises(ClientError) as refused:
        client.describe_scaling_activities(**asked)
    assert refused.value.response["Error"]["Code"] == code


def test_the_endpoint_answers_by_group_and_id_and_in_its_order(endpoint: AwsEndpoint, world: World) -> None:
    first, second = take_out(world, 1, 30), take_out(world, 2, 10)
    world.take_out(an_instance(world, 3), "invoices", NOW - timedelta(days=43), "a user request")
    client = boto3.client("autoscaling", region_name=REGION)
    activities = client.describe_scaling_activities(AutoScalingGroupName="orders")["Activities"]
    assert [each["Description"].split(": ")[1] for each in activities] == [second, first]
    chosen = client.describe_scaling_activities(ActivityIds=[activities[1]["ActivityId"], "unknown"])["Activities"]
    assert [each["ActivityId"] for each in chosen] == [activities[1]["ActivityId"]]
    assert len(client.describe_scaling_activities()["Activities"]) == 2, "six weeks are kept"
    assert INSTANCE not in str(activities)
