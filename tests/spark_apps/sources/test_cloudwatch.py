"""GetMetricData against the strict AWS endpoint: correct data points, the fewest calls, and a gap for each loss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config as ClientConfig
from demo.aws_endpoint import HANDLERS, AwsEndpoint
from demo.aws_wire import AwsError
from demo.world import Metric, World
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources import aws_client, cloudwatch
from spark_apps.sources.aws_client import Place
from spark_apps.sources.cloudwatch import CloudWatchMetrics, Span
from tests.spark_apps.aws_world import (
    ACCOUNT,
    HOUR,
    INSTANCE,
    NOW,
    REGION,
    ask,
    environment,
    gaps,
    points,
    read_place,
    series,
    volume_id,
    world_of,
)

SPAN = Span(HOUR - timedelta(hours=1), HOUR, 60)


@pytest.fixture
def world() -> World:
    return world_of(4)


@pytest.fixture
def endpoint(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    monkeypatch.setattr(cloudwatch.time, "sleep", lambda seconds: None)
    quick = ClientConfig(retries={"mode": "standard", "total_max_attempts": 2})
    monkeypatch.setattr(aws_client, "_CLIENT", aws_client._CLIENT.merge(quick))
    with AwsEndpoint(world, calls_per_second=1000) as running:
        for name, value in environment(running, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield running


def truth(world: World, number: int, name: str = "VolumeReadOps", span: Span = SPAN) -> list[float]:
    metric = Metric("AWS/EBS", name, frozenset({("VolumeId", volume_id(number))}))
    count = int((span.end - span.start).total_seconds() // 60)
    found = world.read(ACCOUNT, REGION, metric, int(span.start.timestamp() // 60), count)
    assert found
    return [float(value) for value in found[1]]


def cost(answer: list[dict[str, Any]]) -> tuple[int, int]:
    return next((row["calls"], row["metrics_requested"]) for row in answer if row["calls"] is not None)


def test_data_points_are_those_of_the_world_and_start_at_their_periods(endpoint: AwsEndpoint, world: World) -> None:
    answer = ask([series(volume_id(n), "VolumeReadOps") for n in range(4)], SPAN)
    for number in range(4):
        found = points(answer, volume_id(number))
        assert list(found.values()) == truth(world, number)
        assert min(found) == SPAN.start and max(found) == SPAN.end - timedelta(minutes=1)
    assert gaps(answer) == {} and cost(answer) == (1, 4) and endpoint.calls["GetMetricData"] == 1


def test_a_metric_that_does_not_exist_has_no_data_points_and_is_no_gap(endpoint: AwsEndpoint) -> None:
    answer = ask([series(volume_id(0), "BurstBalance", "Average"), series(volume_id(0), "VolumeReadOps")], SPAN)
    silent = [row for row in answer if row["metric"] == "BurstBalance"]
    assert [(row["at"], row["value"], row["gap"]) for row in silent] == [(None, None, None)]
    assert len(points(answer, volume_id(0), "VolumeReadOps")) == 60


def test_a_series_that_spans_pages_is_complete(endpoint: AwsEndpoint, world: World) -> None:
    span = Span(HOUR - timedelta(days=14), HOUR, 60)  # 20,160 data points per series: the page ends within the sixth
    answer = ask(
        [series(volume_id(n % 4), name) for n in range(4) for name in ("VolumeReadOps", "VolumeWriteOps")], span
    )
    assert endpoint.calls["GetMetricData"] == 2
    for number in range(4):
        assert list(points(answer, volume_id(number), "VolumeWriteOps").values()) == truth(
            world, number, "VolumeWriteOps", span
        )
    assert gaps(answer) == {} and cost(answer) == (2, 8)


@pytest.mark.parametrize("kind", ["partial", "internal_error"])
def test_one_metric_that_failed_once_is_retried_alone(kind: str, endpoint: AwsEndpoint, world: World) -> None:
    endpoint.faults.inject(kind, resource=volume_id(1))
    answer = ask([series(volume_id(n), "VolumeReadOps") for n in range(4)], SPAN)
    assert list(points(answer, volume_id(1)).values()) == truth(world, 1)
    assert gaps(answer) == {} and cost(answer) == (2, 5)


def test_partial_data_keeps_its_data_points_and_is_late(endpoint: AwsEndpoint, world: World) -> None:
    endpoint.faults.inject("partial", times=None, resource=volume_id(1))
    answer = ask([series(volume_id(n), "VolumeReadOps") for n in range(4)], SPAN)
    assert list(points(answer, volume_id(1)).values()) == truth(world, 1)[:30]
    assert gaps(answer) == {
        f"{ACCOUNT}/{REGION} {volume_id(1)}": f"late: {ACCOUNT}/{REGION}: CloudWatch returned incomplete data"
        " for VolumeReadOps."
    }


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("internal_error", "CloudWatch failed for VolumeReadOps"),
        ("forbidden", "access denied for AWS/EBS VolumeReadOps"),
    ],
)
def test_one_refused_metric_does_not_affect_others(kind: str, sentence: str, endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject(kind, times=None, resource=volume_id(1))
    answer = ask([series(volume_id(n), "VolumeReadOps") for n in range(4)], SPAN)
    ((resource, gap),) = gaps(answer).items()
    assert resource.endswith(volume_id(1)) and gap.startswith("failed: ") and sentence in gap
    assert points(answer, volume_id(1)) == {} and all(len(points(answer, volume_id(n))) == 60 for n in (0, 2, 3))


@pytest.mark.parametrize(
    ("is_recent", "points", "calls", "seconds"),
    [
        (True, 100, 41, 1.0),  # few data points: 40 calls per second
        (
            True,
            37_500,
            49,
            48 * 37_500 / 144_000,
        ),  # 500 series of 75 minutes: four fifths of 180,000 data points per second
        (False, 37_500, 49, 48 * 37_500 / 72_000),
    ],
)
def test_the_pace_keeps_below_the_quota_of_calls_and_that_of_points(
    is_recent: bool, points: int, calls: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(cloudwatch.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(cloudwatch.time, "sleep", lambda waited: clock.__setitem__(0, clock[0] + waited))
    pace = cloudwatch._Pace(1.0, is_recent)
    for _ in range(calls):
        pace.wait(points)
    assert clock[0] - 100 == pytest.approx(seconds)


def test_throttling_drops_no_batch(endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    six = ClientConfig(retries={"mode": "standard", "total_max_attempts": 6})
    monkeypatch.setattr(aws_client, "_CLIENT", aws_client._CLIENT.merge(six))
    endpoint.faults.inject("throttle", times=5, action="GetMetricData")
    answer = ask([series(volume_id(n), "VolumeReadOps", batch=n) for n in range(4)], SPAN)
    assert all(len(points(answer, volume_id(n))) == 60 for n in range(4)) and gaps(answer) == {}
    assert cost(answer) == (9, 4)


def test_permanent_throttling_is_a_gap_per_series(endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("throttle", times=None, action="GetMetricData")
    answer = ask([series(volume_id(n), "VolumeReadOps", batch=n) for n in range(4)], SPAN)
    assert len(gaps(answer)) == 5 and all("throttled GetMetricData" in gap for gap in gaps(answer).values())


def test_a_permanent_refusal_is_not_retried_and_does_not_affect_the_other_region(
    endpoint: AwsEndpoint, world: World, tmp_path: Path
) -> None:
    world.add_instance(ACCOUNT, "us-east-1", "i-0b", "m5.large")
    world.add_volume(ACCOUNT, "us-east-1", "vol-0b", "gp3", 10, instance_id="i-0b")
    endpoint.faults.inject("deny", times=None, action="GetMetricData", region=REGION)
    asked = [series(volume_id(n % 4), "VolumeReadOps", batch=n) for n in range(40)]
    answer = ask([*asked, series("vol-0b", "VolumeReadOps", region="us-east-1")], SPAN)
    refused = {r: gap for r, gap in gaps(answer).items() if "vol-" in r}
    assert set(refused) == {f"{ACCOUNT}/{REGION} {volume_id(n)}" for n in range(4)}
    assert all("access denied for cloudwatch:GetMetricData" in gap for gap in refused.values())
    assert len(points(answer, "vol-0b")) == 60 and endpoint.calls["GetMetricData"] <= cloudwatch.CALLS_AT_ONCE + 1


def test_one_batch_that_always_fails_does_not_affect_others(
    endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = ("monitoring", "GetMetricData")
    answers = HANDLERS[action]

    def answer(*call: Any) -> dict[str, Any]:
        if volume_id(1) in str(call[2]):
            raise AwsError("ValidationError", "The value is not valid.")
        return answers(*call)

    monkeypatch.setitem(HANDLERS, action, answer)
    answer_rows = ask([series(volume_id(n % 4), "VolumeReadOps", batch=n) for n in range(4, 10)], SPAN)
    assert all(len(points(answer_rows, volume_id(n))) == 60 for n in (0, 2, 3))
    assert list(gaps(answer_rows).values()) == [
        f"failed: {ACCOUNT}/{REGION}: GetMetricData failed: ValidationError: The value is not valid."
    ]


def test_a_place_that_fails_repeatedly_is_no_longer_called(endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("server_error", times=None, action="GetMetricData")
    answer = ask([series(volume_id(n % 4), "VolumeReadOps", batch=n) for n in range(40)], SPAN)
    assert len([row for row in answer if row["gap"]]) == 41
    assert endpoint.calls["GetMetricData"] <= 2 * (cloudwatch.FAILED_BATCHES + cloudwatch.CALLS_AT_ONCE)


def test_missing_and_unexpected_results_of_a_response(endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    at = [SPAN.start.timestamp() + 60 * minute for minute in range(3)]
    results = [
        {"Id": "q0", "Timestamps": at[::-1], "Values": [3.0, 2.0, 1.0]},
        {"Id": "q1"},
        {"Id": "q1", "StatusCode": "Complete", "Label": "again"},
        {"Id": "stranger", "Timestamps": at, "Values": [0.0] * 3},
        {},
    ]
    monkeypatch.setitem(HANDLERS, ("monitoring", "GetMetricData"), lambda *call: {"MetricDataResults": results})
    answer = ask([series(volume_id(n), "VolumeReadOps") for n in range(3)], SPAN)
    assert points(answer, volume_id(0)) == {SPAN.start + timedelta(minutes=n): n + 1.0 for n in range(3)}
    assert points(answer, volume_id(1)) == {} and list(gaps(answer)) == [f"{ACCOUNT}/{REGION} {volume_id(2)}"]
    assert "CloudWatch's response does not have VolumeReadOps" in str(gaps(answer))


@pytest.mark.parametrize(
    "response",
    [
        {"MetricDataResults": [], "NextToken": "again"},
        {"MetricDataResults": [{"Id": "q0", "Timestamps": [1.0], "Values": [1.0, 2.0]}]},
        {},
    ],
)
def test_an_unreadable_response(
    response: dict[str, Any], endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HANDLERS, ("monitoring", "GetMetricData"), lambda *call: response)
    answer = ask([series(volume_id(0), "VolumeReadOps")], SPAN)
    assert "unreadable response" in str(gaps(answer)) and points(answer, volume_id(0)) == {}


@pytest.mark.parametrize("kind", ["malformed", "reset", "server_error"])
def test_a_response_that_breaks_once_is_retried(kind: str, endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject(kind, action="GetMetricData")
    answer = ask([series(volume_id(0), "VolumeReadOps")], SPAN)
    assert len(points(answer, volume_id(0))) == 60 and gaps(answer) == {}


@pytest.mark.parametrize("kind", ["malformed", "reset", "server_error", "hang"])
def test_a_response_that_always_breaks_is_a_gap(
    kind: str, endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "hang":
        monkeypatch.setattr(aws_client, "_CLIENT", aws_client._CLIENT.merge(ClientConfig(read_timeout=1)))
    endpoint.faults.inject(kind, times=None, action="GetMetricData", seconds=60)
    answer = ask([series(volume_id(0), "VolumeReadOps")], SPAN)
    assert points(answer, volume_id(0)) == {}
    assert gaps(answer)[f"{ACCOUNT}/{REGION} {volume_id(0)}"].startswith("failed: ")


def test_a_break_in_the_second_page_loses_no_complete_series(endpoint: AwsEndpoint) -> None:
    span = Span(HOUR - timedelta(days=14), HOUR, 60)
    asked = [series(volume_id(n % 4), name) for n in range(4) for name in ("VolumeReadOps", "VolumeWriteOps")]
    endpoint.faults.inject("deny", times=None, after=1, action="GetMetricData")
    answer = ask(asked, span)
    whole = [row for row in asked if len(points(answer, row["resource_id"], row["metric"])) == 14 * 1440]
    assert len(whole) == 5
    assert {row["metric"] for row in answer if row["gap"] and row["resource_id"] == volume_id(3)} == {
        "VolumeReadOps",
        "VolumeWriteOps",
    }


def test_a_global_message_is_a_gap_of_the_place(endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    action = ("monitoring", "GetMetricData")
    answers, message = HANDLERS[action], {"Code": "MaxMetrics", "Value": "Maximum number of allowed metrics exceeded"}
    monkeypatch.setitem(HANDLERS, action, lambda *call: answers(*call) | {"Messages": [message]})
    answer = ask([series(volume_id(0), "VolumeReadOps")], SPAN)
    assert gaps(answer) == {
        f"{ACCOUNT}/{REGION} GetMetricData": f"failed: {ACCOUNT}/{REGION}: CloudWatch reports: Maximum number of"
        " allowed metrics exceeded"
    }


def test_late_points_come_with_the_next_reading(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AwsEndpoint(world, settle_delay_seconds=600) as late:
        for name, value in environment(late, tmp_path).items():
            monkeypatch.setenv(name, value)
        span = Span.of(NOW - timedelta(minutes=30), NOW, NOW)
        early = points(ask([series(volume_id(0), "VolumeReadOps")], span), volume_id(0))
        assert len(early) == 25 and list(early.values()) != truth(world, 0, span=span)[:25]
        settled = Span.of(NOW - timedelta(minutes=30), NOW - timedelta(minutes=10), NOW)
        found = points(ask([series(volume_id(0), "VolumeReadOps")], settled), volume_id(0))
        assert list(found.values()) == truth(world, 0, span=settled)


@pytest.mark.parametrize(
    ("age", "period_seconds"),
    [(timedelta(hours=2), 60), (timedelta(days=14), 60), (timedelta(days=16), 300), (timedelta(days=70), 3600)],
)
def test_the_period_is_the_shortest_that_cloudwatch_keeps(
    age: timedelta, period_seconds: int, endpoint: AwsEndpoint, world: World
) -> None:
    hour = HOUR - age
    span = Span.of(hour - timedelta(minutes=15), hour + timedelta(hours=1), NOW)
    assert span.period_seconds == period_seconds and span.start <= hour - timedelta(minutes=15)
    world.volumes[volume_id(0)].created_at = hour - timedelta(days=1)
    found = points(ask([series(volume_id(0), "VolumeReadOps")], span), volume_id(0))
    assert len(found) == (span.end - span.start).total_seconds() / period_seconds


def test_a_span_that_begins_too_early_is_read_from_the_retained_start() -> None:
    span = Span.of(HOUR - timedelta(days=470), HOUR - timedelta(days=440), NOW)
    assert NOW - timedelta(days=455) <= span.start <= NOW - timedelta(days=454, hours=22)
    assert (span.end, span.period_seconds) == (HOUR - timedelta(days=440), 3600)


def test_data_older_than_the_retention_of_cloudwatch_is_reported_as_lost() -> None:
    with pytest.raises(StreamwardenError, match="keeps no points older than 455 days"):
        Span.of(NOW - timedelta(days=456), NOW - timedelta(days=455, hours=23), NOW)


def test_list_metrics_returns_dimensions_that_cannot_be_guessed(endpoint: AwsEndpoint) -> None:
    rows = read_place(CloudWatchMetrics, Place(ACCOUNT, REGION), namespace="CWAgent", names="disk_used_percent")
    assert len(rows) == 4 and {dict(row["dimensions"])["InstanceId"] for row in rows} == {INSTANCE}
    assert {name for row in rows for name, _ in row["dimensions"]} >= {"path", "device", "fstype"}


def test_a_list_that_is_refused_is_a_gap(endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("deny", times=None, action="ListMetrics")
    rows = read_place(CloudWatchMetrics, Place(ACCOUNT, REGION), namespace="CWAgent", names="disk_used_percent")
    assert "access denied for cloudwatch:ListMetrics" in rows[0]["gap"] and len(rows) == 1
