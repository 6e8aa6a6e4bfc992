"""The strict AWS endpoint through real boto3: every limit with a request that is good and one that is refused."""

import json
import math
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from demo.aws_endpoint import AwsEndpoint
from demo.demo_world import DEMO_ACCOUNT, DEMO_REGION, ORDERS_INSTANCE_ID, ORDERS_VOLUME_ID, QUIET_VOLUME_ID, demo_world
from demo.ebs_load import LoadModel
from demo.world import World
from streamwarden.base.bounded_http import LimitExceeded

from spark_apps.sources.aws_bounds import bounded

NOW = datetime(2026, 11, 18, 12, 20, tzinfo=UTC)
HOUR = NOW.replace(minute=0)
OTHER_ACCOUNT = "210987654321"
OTHER_VOLUME, OLD_VOLUME = "vol-0fedcba9876543210", "vol-0aaaaaaaaaaaaaaaa"


@pytest.fixture(scope="module")
def world() -> World:
    world = demo_world({"ebs"}, lambda: NOW)
    world.add_instance(OTHER_ACCOUNT, "us-east-1", "i-0fedcba9876543210", "r5.large", {"Name": "other"})
    world.add_volume(
        OTHER_ACCOUNT, "us-east-1", OTHER_VOLUME, "st1", 500, instance_id="i-0fedcba9876543210", device="/dev/sdx"
    )
    old = NOW - timedelta(days=500)
    world.add_instance(DEMO_ACCOUNT, "ap-south-1", "i-0aaaaaaaaaaaaaaaa", "m5.large", {}, old)
    world.add_volume(
        DEMO_ACCOUNT, "ap-south-1", OLD_VOLUME, "gp3", 10, instance_id="i-0aaaaaaaaaaaaaaaa", created_at=old
    )
    return world


@pytest.fixture
def calls_per_second() -> float:
    return 50


@pytest.fixture
def endpoint(world: World, calls_per_second: float) -> Iterator[AwsEndpoint]:
    with AwsEndpoint(world, calls_per_second=calls_per_second) as endpoint:
        yield endpoint


Client = Callable[..., Any]


@pytest.fixture
def client(endpoint: AwsEndpoint) -> Client:
    def make(service: str, region: str = DEMO_REGION, keys: tuple[str, ...] = (), attempts: int = 1, **config: Any):
        key_id, secret_key, *token = keys or endpoint.access_key(DEMO_ACCOUNT)
        return boto3.client(
            service,
            region_name=region,
            endpoint_url=endpoint.url,
            aws_access_key_id=key_id,
            aws_secret_access_key=secret_key,
            aws_session_token=token[0] if token else None,
            config=Config(retries={"mode": "standard", "total_max_attempts": attempts}, **config),
        )

    return make


def query(name: str = "VolumeReadOps", resource: str = ORDERS_VOLUME_ID, stat: str = "Average", **more: Any) -> dict:
    dimension = {"Name": "VolumeId" if resource.startswith("vol") else "InstanceId", "Value": resource}
    namespace = more.pop("namespace", "AWS/EBS" if resource.startswith("vol") else "AWS/EC2")
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": [dimension]}
    metric_stat = {"Metric": metric, "Period": more.pop("period", 60), "Stat": stat}
    if "unit" in more:
        metric_stat["Unit"] = more.pop("unit")
    return {"Id": more.pop("id", "m1"), "MetricStat": metric_stat, **more}


def ask(cloudwatch, *queries: dict, start: datetime = HOUR, end: datetime = NOW, **more: Any) -> dict:
    return cloudwatch.get_metric_data(MetricDataQueries=list(queries), StartTime=start, EndTime=end, **more)


def one(cloudwatch, *queries: dict, **more: Any) -> dict:
    (result,) = ask(cloudwatch, *queries, ScanBy="TimestampAscending", **more)["MetricDataResults"]
    return result


def refused(call: Callable[..., Any], *args: Any, **more: Any) -> tuple[str, str, int]:
    with pytest.raises(ClientError) as caught:
        call(*args, **more)
    answer = caught.value.response
    return answer["Error"]["Code"], answer["Error"]["Message"], answer["ResponseMetadata"]["HTTPStatusCode"]


# ---- GetMetricData -------------------------------------------------------------------------------------------------


def test_start_is_inclusive_end_exclusive_and_newest_comes_first(client):
    cloudwatch = client("cloudwatch")
    start, end = HOUR + timedelta(minutes=2), HOUR + timedelta(minutes=5)
    times = one(cloudwatch, query(), start=start, end=end)["Timestamps"]
    assert times == [start, start + timedelta(minutes=1), start + timedelta(minutes=2)]
    assert ask(cloudwatch, query(), start=start, end=end)["MetricDataResults"][0]["Timestamps"] == times[::-1]


def test_timestamps_are_aligned_to_the_period(client):
    result = one(client("cloudwatch"), query(period=300), start=HOUR - timedelta(minutes=43, seconds=20))
    assert result["Timestamps"][0] == HOUR - timedelta(minutes=40)
    assert all(at.minute % 5 == 0 and at.second == 0 for at in result["Timestamps"])
    assert len(result["Values"]) == 12
    assert result["StatusCode"] == "Complete"


def test_five_hundred_queries_pass_and_one_more_is_refused(client):
    cloudwatch = client("cloudwatch")
    queries = [query(id=f"m{number}") for number in range(501)]
    assert len(ask(cloudwatch, *queries[:500])["MetricDataResults"]) == 500
    code, message, status = refused(ask, cloudwatch, *queries)
    assert (code, status) == ("ValidationError", 400)
    assert "MetricDataQueries must not have a size greater than 500" in message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": NOW, "end": NOW}, "StartTime must not equal parameter EndTime"),
        ({"start": NOW, "end": HOUR}, "StartTime must be less than"),
        ({"MaxDatapoints": 100_801}, "MaxDatapoints"),
        ({"MaxDatapoints": 0}, "MaxDatapoints"),
        ({"ScanBy": "Newest"}, "'Newest' at 'scanBy' failed to satisfy constraint"),
    ],
)
def test_wrong_requests_are_refused(client, wrong, message):
    code, text, status = refused(ask, client("cloudwatch"), query(), **wrong)
    assert (code, status) == ("ValidationError", 400)
    assert message in text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([query(id="M1")], "not matching the expected pattern"),
        ([query(id="m-1")], "not matching the expected pattern"),
        ([query(), query()], "not unique"),
        ([query(period=90)], "Period 90 of m1 must be"),
        ([query(stat="Mean")], "The value Mean for parameter"),
        ([query(stat="p101")], "The value p101 for parameter"),
        ([query(unit="Furlongs")], "Member must satisfy enum value set"),
        ([{"Id": "m1"}], "Either Expression or MetricStat"),
        ([{"Id": "m1", "Expression": "SUM(METRICS())"}], "knows no metric math"),
        ([query(namespace=":x")], "regular expression pattern"),
    ],
)
def test_wrong_queries_are_refused(client, wrong, message):
    code, text, _ = refused(ask, client("cloudwatch"), *wrong)
    assert code == "ValidationError"
    assert message in text


def test_a_metric_spans_pages_and_tokens_belong_to_their_request(client):
    cloudwatch = client("cloudwatch")
    queries = [query(id="a"), query("VolumeWriteOps", id="b"), query(id="c", resource=QUIET_VOLUME_ID)]
    whole = {r["Id"]: r for r in ask(cloudwatch, *queries)["MetricDataResults"]}
    seen: dict[str, list] = {"a": [], "b": [], "c": []}
    statuses, page = [], {"NextToken": None}
    while "NextToken" in page:
        token = {"NextToken": page["NextToken"]} if page["NextToken"] else {}
        page = ask(cloudwatch, *queries, MaxDatapoints=7, **token)
        assert sum(len(result["Values"]) for result in page["MetricDataResults"]) <= 7
        for result in page["MetricDataResults"]:
            seen[result["Id"]] += zip(result["Timestamps"], result["Values"], strict=True)
            statuses.append(result["StatusCode"])
    assert seen == {i: list(zip(r["Timestamps"], r["Values"], strict=True)) for i, r in whole.items()}
    assert statuses.count("Complete") == 3
    assert statuses.count("PartialData") > 3
    token = ask(cloudwatch, *queries, MaxDatapoints=7)["NextToken"]
    assert refused(ask, cloudwatch, queries[0], NextToken=token)[0] == "InvalidNextToken"
    assert refused(ask, cloudwatch, *queries, NextToken="garbage")[0] == "InvalidNextToken"


@pytest.mark.rare
@pytest.mark.slow
def test_a_page_holds_100_800_points(client):
    cloudwatch = client("cloudwatch")
    queries = [query(id=f"m{number}") for number in range(8)]
    page = ask(cloudwatch, *queries, start=NOW - timedelta(days=14))
    assert sum(len(result["Values"]) for result in page["MetricDataResults"]) == 100_800
    rest = ask(cloudwatch, *queries, start=NOW - timedelta(days=14), NextToken=page["NextToken"])
    assert sum(len(result["Values"]) for result in rest["MetricDataResults"]) == 8 * 14 * 1440 - 100_800
    assert "NextToken" not in rest


@pytest.mark.parametrize(
    ("days", "period", "has_points"),
    [
        (14, 60, True),
        (16, 60, False),
        (16, 300, True),
        (62, 300, True),
        (64, 300, False),
        (64, 3600, True),
        (456, 3600, False),
    ],
)
def test_finer_periods_are_gone_when_the_start_is_old(client, days, period, has_points):
    start = NOW - timedelta(days=days)
    asked = query(resource=OLD_VOLUME, period=period)
    result = one(client("cloudwatch", region="ap-south-1"), asked, start=start, end=start + timedelta(hours=3))
    assert bool(result["Values"]) == has_points
    assert result["StatusCode"] == "Complete"


def test_statistics_agree_with_the_minutes(client):
    cloudwatch = client("cloudwatch")
    minutes = one(cloudwatch, query(resource=QUIET_VOLUME_ID), end=HOUR + timedelta(minutes=5))["Values"]
    ordered = sorted(minutes)
    expected = {
        "Average": sum(minutes) / 5,
        "Sum": sum(minutes),
        "Minimum": ordered[0],
        "Maximum": ordered[-1],
        "SampleCount": 5,
        "p50": ordered[2],
        "p75": ordered[3],
        "p99.9": ordered[3] + 0.996 * (ordered[4] - ordered[3]),
        "p100": ordered[4],
    }
    for stat, value in expected.items():
        asked = query(resource=QUIET_VOLUME_ID, stat=stat, period=300)
        (got,) = one(cloudwatch, asked, end=HOUR + timedelta(minutes=5))["Values"]
        assert math.isclose(got, value), stat


@pytest.mark.parametrize(
    "missing",
    [
        query("BurstBalance", QUIET_VOLUME_ID),
        query("NoSuchMetric"),
        query(resource="vol-00000000000000000"),
        query(resource=OTHER_VOLUME),
        query(namespace="AWS/EC2"),
        query("CPUUtilization", ORDERS_INSTANCE_ID, namespace="AWS/EBS"),
        query(unit="Bytes"),
    ],
)
def test_what_does_not_exist_is_empty_and_never_zero(client, missing):
    result = one(client("cloudwatch"), missing)
    assert (result["Values"], result["Timestamps"], result["StatusCode"]) == ([], [], "Complete")


def test_dimensions_match_exactly(client):
    cloudwatch = client("cloudwatch")
    two = query("mem_used_percent", ORDERS_INSTANCE_ID, namespace="CWAgent")
    assert one(cloudwatch, two)["Values"]
    two["MetricStat"]["Metric"]["Dimensions"].append({"Name": "path", "Value": "/"})
    assert one(cloudwatch, two)["Values"] == []


def test_labels_and_return_data(client):
    results = ask(client("cloudwatch"), query(Label="mine"), query(id="b"), query(id="c", ReturnData=False))
    assert [(r["Id"], r["Label"]) for r in results["MetricDataResults"]] == [("m1", "mine"), ("b", "VolumeReadOps")]


def test_minutes_to_come_have_no_points(client):
    times = one(client("cloudwatch"), query(), end=NOW + timedelta(hours=1))["Timestamps"]
    assert times[-1] == NOW - timedelta(minutes=1)


def test_late_points_are_hidden_first_and_then_incomplete(endpoint, client):
    full = one(client("cloudwatch"), query())["Values"]
    endpoint.settle_delay_seconds = 600
    late = one(client("cloudwatch"), query())
    assert late["Timestamps"][-1] == NOW - timedelta(minutes=6)
    assert late["Values"][:10] == full[:10]
    assert late["Values"][-1] == full[len(late["Values"]) - 1] / 2
    balance = one(client("cloudwatch"), query("BurstBalance"))["Values"]
    assert balance == [0.0] * 15


def test_list_metrics_names_what_get_metric_data_knows(client):
    cloudwatch = client("cloudwatch")
    of_volume = cloudwatch.list_metrics(
        Namespace="AWS/EBS", Dimensions=[{"Name": "VolumeId", "Value": ORDERS_VOLUME_ID}]
    )["Metrics"]
    assert {"BurstBalance", "VolumeIOPSExceededCheck"} < {metric["MetricName"] for metric in of_volume}
    disks = cloudwatch.list_metrics(
        Namespace="CWAgent", MetricName="disk_used_percent", Dimensions=[{"Name": "device"}]
    )
    assert disks["Metrics"]
    for metric in disks["Metrics"]:
        stat = {"Metric": metric, "Period": 60, "Stat": "Average"}
        assert one(cloudwatch, {"Id": "m1", "MetricStat": stat})["Values"]


# ---- EC2 and STS ---------------------------------------------------------------------------------------------------


def test_inventory_agrees_with_the_world(client, world):
    ec2 = client("ec2")
    volumes = {volume["VolumeId"]: volume for volume in ec2.describe_volumes()["Volumes"]}
    assert set(volumes) == {i for i, volume in world.volumes.items() if volume.region == DEMO_REGION}
    orders = volumes[ORDERS_VOLUME_ID]
    assert (orders["VolumeType"], orders["Size"], orders["Iops"], orders["State"]) == ("gp2", 10, 100, "in-use")
    assert orders["Attachments"][0]["InstanceId"] == ORDERS_INSTANCE_ID
    assert {"Key": "application", "Value": "orders"} in orders["Tags"]
    assert volumes[QUIET_VOLUME_ID]["Throughput"] == 125
    (reservation,) = ec2.describe_instances(InstanceIds=[ORDERS_INSTANCE_ID])["Reservations"]
    (instance,) = reservation["Instances"]
    assert instance["InstanceType"] == "c5.large"
    assert instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"] == ORDERS_VOLUME_ID
    (kind,) = ec2.describe_instance_types(InstanceTypes=["c5.large"])["InstanceTypes"]
    assert kind["MemoryInfo"]["SizeInMiB"] == 4096
    assert kind["EbsInfo"]["EbsOptimizedInfo"]["BaselineIops"] == 4000
    assert kind["EbsInfo"]["EbsOptimizedInfo"]["BaselineThroughputInMBps"] == 81.25


@pytest.mark.parametrize(
    ("name", "values", "count"),
    [
        ("attachment.instance-id", [ORDERS_INSTANCE_ID], 1),
        ("tag:application", ["orders", "kafka"], 2),
        ("tag:Name", ["orders*"], 1),
        ("tag:Name", ["[o]rders*"], 0),
        ("tag-key", ["owner"], 6),
        ("status", ["available"], 1),
        ("volume-type", ["gp3"], 2),
        ("volume-id", [ORDERS_VOLUME_ID, "vol-00000000000000000"], 1),
    ],
)
def test_filters(client, name, values, count):
    found = client("ec2").describe_volumes(Filters=[{"Name": name, "Values": values}])["Volumes"]
    assert len(found) == count


def test_paging_of_volumes(client):
    ec2 = client("ec2")
    pages = list(ec2.get_paginator("describe_volumes").paginate(PaginationConfig={"PageSize": 5}))
    assert [len(page["Volumes"]) for page in pages] == [5, 1]
    assert refused(ec2.describe_volumes, MaxResults=5, NextToken="x")[0] == "InvalidParameterValue"


def test_wrong_ec2_requests_are_refused(client):
    ec2 = client("ec2")
    assert refused(ec2.describe_volumes, VolumeIds=["vol-00000000000000000"]) == (
        "InvalidVolume.NotFound",
        "The volume 'vol-00000000000000000' does not exist.",
        400,
    )
    assert refused(ec2.describe_volumes, VolumeIds=["disk"])[0] == "InvalidParameterValue"
    assert refused(ec2.describe_volumes, VolumeIds=[OTHER_VOLUME])[0] == "InvalidVolume.NotFound"
    assert refused(ec2.describe_volumes, MaxResults=4)[0] == "InvalidParameterValue"
    assert refused(ec2.describe_volumes, MaxResults=1001)[0] == "InvalidParameterValue"
    both = refused(ec2.describe_volumes, MaxResults=5, VolumeIds=[ORDERS_VOLUME_ID])
    assert both[0] == "InvalidParameterCombination"
    assert (
        refused(ec2.describe_volumes, Filters=[{"Name": "colour", "Values": ["red"]}])[1]
        == "The filter 'colour' is invalid"
    )
    assert refused(ec2.describe_volumes, DryRun=True)[0] == "DryRunOperation"
    assert refused(ec2.describe_instances, InstanceIds=["i-00000000000000000"])[0] == "InvalidInstanceID.NotFound"
    assert refused(ec2.describe_instance_types, InstanceTypes=["m5.huge"])[0] == "InvalidInstanceType"
    assert refused(ec2.describe_instance_types, MaxResults=101)[0] == "InvalidParameterValue"
    assert refused(ec2.describe_snapshots)[0] == "InvalidAction"


def test_region_and_account_decide_what_is_seen(client):
    assert client("ec2", region="us-east-1").describe_volumes()["Volumes"] == []
    assert one(client("cloudwatch", region="us-east-1"), query())["Values"] == []
    role = {"RoleArn": f"arn:aws:iam::{OTHER_ACCOUNT}:role/streamwarden", "RoleSessionName": "hourly"}
    keys = client("sts").assume_role(**role)["Credentials"]
    keys = (keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    other = {"region": "us-east-1", "keys": keys}
    assert client("sts", **other).get_caller_identity()["Account"] == OTHER_ACCOUNT
    (volume,) = client("ec2", **other).describe_volumes()["Volumes"]
    assert volume["VolumeId"] == OTHER_VOLUME
    assert "Iops" not in volume
    assert one(client("cloudwatch", **other), query(resource=OTHER_VOLUME))["Values"]
    assert one(client("cloudwatch"), query(AccountId=OTHER_ACCOUNT))["StatusCode"] == "Forbidden"


def test_roles_that_do_not_trust_us(endpoint, client):
    sts = client("sts")
    arn = f"arn:aws:iam::{OTHER_ACCOUNT}:role/guarded"
    assume = {"RoleArn": arn, "RoleSessionName": "hourly"}
    assert refused(sts.assume_role, **assume)[::2] == ("AccessDenied", 403)
    endpoint.roles[arn] = "secret"
    assert refused(sts.assume_role, **assume)[0] == "AccessDenied"
    assert sts.assume_role(**assume, ExternalId="secret")["Credentials"]["AccessKeyId"].startswith("ASIA")
    assert refused(sts.assume_role, **assume, ExternalId="secret", DurationSeconds=60_000)[0] == "ValidationError"


def test_wrong_credentials(endpoint, client):
    key_id, secret_key = endpoint.access_key(DEMO_ACCOUNT)
    unknown, forged, no_token = ("AKIANOBODY", secret_key), (key_id, "x" * 40), (key_id, secret_key, "token")
    for keys in (unknown, forged, no_token):
        assert refused(client("ec2", keys=keys).describe_volumes)[::2] == ("AuthFailure", 401)
    assert refused(ask, client("cloudwatch", keys=unknown), query())[::2] == ("UnrecognizedClientException", 403)
    assert refused(ask, client("cloudwatch", keys=forged), query())[::2] == ("SignatureDoesNotMatch", 403)
    assert refused(client("sts", keys=unknown).get_caller_identity)[::2] == ("InvalidClientTokenId", 403)


def test_clock_skew_is_refused(endpoint, client):
    endpoint.clock_skew_seconds = 3600
    assert refused(client("ec2").describe_volumes)[0] == "RequestExpired"
    assert refused(ask, client("cloudwatch"), query())[0] == "SignatureDoesNotMatch"


def test_requests_without_a_signature(endpoint):
    request = urllib.request.Request(endpoint.url, data=b"Action=DescribeVolumes&Version=2016-11-15")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 403
    assert b"MissingAuthenticationToken" in caught.value.read()
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=x")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert b"IncompleteSignature" in caught.value.read()


def test_parameters_that_no_client_would_send(client):
    """boto3 checks before it sends; the endpoint must not rely on that."""
    ec2, cloudwatch = client("ec2"), client("cloudwatch", parameter_validation=False)
    ec2.meta.events.register("before-call.ec2.DescribeVolumes", lambda params, **_: params["body"].update(Colour="red"))
    assert refused(ec2.describe_volumes) == ("UnknownParameter", "The parameter Colour is not recognized", 400)
    code, message, _ = refused(cloudwatch.get_metric_data, MetricDataQueries=[query()], StartTime=HOUR)
    assert code == "ValidationError"
    assert "Value null at 'endTime' failed to satisfy constraint: Member must not be null" in message

    def spoil(params: dict, **_: Any) -> None:
        params["body"] = json.dumps(json.loads(params["body"]) | {"Colour": "red"}).encode()

    cloudwatch.meta.events.register("before-call.cloudwatch.GetMetricData", spoil)
    assert refused(ask, cloudwatch, query())[0] == "SerializationException"


def test_cloudwatch_by_the_query_protocol(endpoint):
    """Older clients: form fields in, XML out."""
    stat = "MetricDataQueries.member.1.MetricStat."
    fields = {
        "Action": "GetMetricData", "Version": "2010-08-01", "StartTime": HOUR.isoformat(), "EndTime": NOW.isoformat(),
        "MetricDataQueries.member.1.Id": "m1", f"{stat}Period": "300", f"{stat}Stat": "Average",
        f"{stat}Metric.Namespace": "AWS/EBS", f"{stat}Metric.MetricName": "BurstBalance",
        f"{stat}Metric.Dimensions.member.1.Name": "VolumeId",
        f"{stat}Metric.Dimensions.member.1.Value": ORDERS_VOLUME_ID,
    }  # fmt: skip
    request = AWSRequest("POST", endpoint.url, data=urllib.parse.urlencode(fields).encode())
    request.headers["Host"] = endpoint.url.removeprefix("http://")
    SigV4Auth(Credentials(*endpoint.access_key(DEMO_ACCOUNT)), "monitoring", DEMO_REGION).add_auth(request)
    sent = urllib.request.Request(endpoint.url, data=request.body, headers=dict(request.headers))
    text = urllib.request.urlopen(sent).read().decode()
    assert text.count("<member>0.0</member>") == 4
    assert f"<member>{HOUR:%Y-%m-%dT%H:%M:%S}.000Z</member>" in text


# ---- faults --------------------------------------------------------------------------------------------------------


def test_throttling_is_the_services_own(endpoint, client):
    endpoint.faults.inject("throttle", times=2, action="GetMetricData")
    assert refused(ask, client("cloudwatch"), query()) == ("Throttling", "Rate exceeded", 400)
    assert one(client("cloudwatch", attempts=3), query())["Values"]
    assert endpoint.calls["GetMetricData"] == 3
    assert endpoint.errors["Throttling"] == 2
    endpoint.faults.inject("throttle", action="DescribeVolumes")
    assert refused(client("ec2").describe_volumes)[::2] == ("RequestLimitExceeded", 503)


@pytest.mark.parametrize("calls_per_second", [3])
def test_the_rate_limit_is_a_bucket_per_account_and_region(client):
    cloudwatch, elsewhere = client("cloudwatch"), client("cloudwatch", region="us-east-1")
    for _ in range(3):
        ask(cloudwatch, query())
    with pytest.raises(ClientError, match="Rate exceeded"):
        for _ in range(3):
            ask(cloudwatch, query())
    assert ask(elsewhere, query())
    time.sleep(0.7)
    assert ask(cloudwatch, query())


def test_access_denied(endpoint, client):
    endpoint.faults.inject("deny", times=None, region=DEMO_REGION)
    code, message, status = refused(ask, client("cloudwatch"), query())
    assert (code, status) == ("AccessDeniedException", 403)
    assert "is not authorized to perform: cloudwatch:GetMetricData" in message
    assert refused(client("ec2").describe_volumes)[::2] == ("UnauthorizedOperation", 403)
    assert client("ec2", region="us-east-1").describe_volumes()["Volumes"] == []
    endpoint.faults.clear()
    assert client("ec2").describe_volumes()["Volumes"]


def test_server_errors_are_retried_by_boto3(endpoint, client):
    endpoint.faults.inject("server_error", times=1)
    assert one(client("cloudwatch", attempts=2), query())["Values"]
    endpoint.faults.inject("server_error", times=1)
    assert refused(ask, client("cloudwatch"), query())[::2] == ("InternalServiceError", 500)


def test_a_reset_in_mid_page(endpoint, client):
    endpoint.faults.inject("reset", after=1)
    cloudwatch = client("cloudwatch")
    ask(cloudwatch, query())
    with pytest.raises((ConnectionClosedError, ResponseStreamingError, IncompleteReadError)):
        ask(cloudwatch, query())
    assert ask(cloudwatch, query())


def test_a_call_that_hangs_costs_its_timeout(endpoint, client):
    endpoint.faults.inject("hang", seconds=60)
    started = time.monotonic()
    with pytest.raises(ReadTimeoutError):
        ask(client("cloudwatch", read_timeout=0.5), query())
    assert time.monotonic() - started < 30


def test_an_endless_answer_ends_at_the_limit_of_the_client(endpoint, client):
    endpoint.faults.inject("endless")
    ec2 = bounded(client("ec2"))
    with pytest.raises(LimitExceeded, match="exceeds 32 MiB"):
        ec2.describe_volumes()
    assert ec2.describe_volumes()["Volumes"]


def test_a_malformed_body(endpoint, client):
    endpoint.faults.inject("malformed", times=2)
    assert "MetricDataResults" not in ask(client("cloudwatch"), query())
    with pytest.raises(Exception, match="invalid XML received"):
        client("ec2").describe_volumes()


def test_faults_of_single_metrics(endpoint, client):
    endpoint.faults.inject("internal_error", metric="VolumeWriteOps")
    endpoint.faults.inject("partial", resource=QUIET_VOLUME_ID)
    endpoint.faults.inject("forbidden", metric="VolumeIdleTime")
    queries = [query(), query("VolumeWriteOps", id="b"), query(id="c", resource=QUIET_VOLUME_ID)]
    queries.append(query("VolumeIdleTime", id="d"))
    results = {
        r["Id"]: r for r in ask(client("cloudwatch"), *queries, ScanBy="TimestampAscending")["MetricDataResults"]
    }
    assert {i: (r["StatusCode"], len(r["Values"])) for i, r in results.items()} == {
        "m1": ("Complete", 20),
        "b": ("InternalError", 0),
        "c": ("PartialData", 10),
        "d": ("Forbidden", 0),
    }
    assert results["b"]["Messages"][0]["Code"] == "InternalError"
    again = ask(client("cloudwatch"), *queries)["MetricDataResults"]
    assert [r["StatusCode"] for r in again] == ["Complete"] * 4


# ---- the server ----------------------------------------------------------------------------------------------------


def test_the_environment_is_all_that_boto3_needs(endpoint, monkeypatch):
    for name, value in endpoint.environment(OTHER_ACCOUNT, "us-east-1").items():
        monkeypatch.setenv(name, value)
    assert len(boto3.session.Session().client("ec2").describe_volumes()["Volumes"]) == 1


def test_a_taken_port_is_an_error_and_a_stopped_one_is_free(world):
    with AwsEndpoint(world) as first:
        port = int(first.url.rsplit(":", 1)[1])
        with pytest.raises(OSError, match="in use"):
            AwsEndpoint(world, port)
    with AwsEndpoint(world, port) as again:
        assert again.url == first.url


@pytest.mark.rare
@pytest.mark.slow
def test_twenty_full_calls_are_served_quickly(client, endpoint):
    """1,000 volumes × 10 metrics × 12 points; most of the time is boto3's."""
    place = ("333344445555", "eu-west-1")
    names = [
        "VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes", "VolumeTotalReadTime",
        "VolumeTotalWriteTime", "VolumeIdleTime", "VolumeQueueLength", "BurstBalance", "VolumeIOPSExceededCheck",
    ]  # fmt: skip
    world = World(seed=2, now=lambda: NOW)
    world.add_instance(*place, "i-1", "m5.4xlarge")
    for number in range(1000):
        world.add_volume(
            *place,
            f"vol-{number}",
            "gp2",
            100,
            instance_id="i-1",
            load=LoadModel(5, 5),
            created_at=HOUR - timedelta(hours=2),
        )
    series = [query(name, volume_id, period=300) for volume_id in world.volumes for name in names]
    with AwsEndpoint(world) as fast:
        ec2 = boto3.client(
            "cloudwatch", region_name=place[1], endpoint_url=fast.url,
            aws_access_key_id=fast.access_key(place[0])[0], aws_secret_access_key=fast.access_key(place[0])[1],
        )  # fmt: skip
        pages = [
            [{**each, "Id": f"m{n}"} for n, each in enumerate(series[at : at + 500])] for at in range(0, 10_000, 500)
        ]
        end = HOUR
        ask(ec2, *pages[0], start=end - timedelta(hours=1), end=end)
        started = time.process_time()
        points = sum(
            len(result["Values"])
            for page in pages
            for result in ask(ec2, *page, start=end - timedelta(hours=1), end=end)["MetricDataResults"]
        )
        spent = time.process_time() - started
        assert points == 120_000
        assert fast.calls["GetMetricData"] == 21
        assert spent < 30  # 2.6 CPU s on an idle machine, client and server together
    assert not [thread for thread in threading.enumerate() if thread.name == "aws-endpoint" and not thread.daemon]
