"""AWS: in every region of every account, one small call of each API action that the sources use.

The call of GetMetricData requests one series and costs $0.00001; the others are free.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from spark_apps.sources.aws_client import Connection, Failure, Place, is_for_good, is_forbidden, listed
from streamwarden.base.config import AwsAccount
from streamwarden.cli.probe.result import Answer, Question, sentence

_EBS_READS = {"Namespace": "AWS/EBS", "MetricName": "VolumeReadOps"}
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "ec2:DescribeVolumes": ("describe_volumes", {"MaxResults": 5}, "Volumes"),
    "ec2:DescribeInstances": ("describe_instances", {"MaxResults": 5}, "Reservations"),
    "ec2:DescribeInstanceTypes": ("describe_instance_types", {"MaxResults": 5}, "InstanceTypes"),
    "autoscaling:DescribeScalingActivities": ("describe_scaling_activities", {"MaxRecords": 1}, "Activities"),
    "cloudwatch:ListMetrics": ("list_metrics", _EBS_READS, "Metrics"),
    "cloudwatch:GetMetricData": (
        "get_metric_data",
        {"MetricDataQueries": [{"Id": "a", "MetricStat": {"Metric": _EBS_READS, "Period": 60, "Stat": "Sum"}}]},
        "MetricDataResults",
    ),
}
"""By IAM action: boto3 method, parameters, and the key that the response must have."""


def questions(accounts: list[AwsAccount]) -> Iterator[Question]:
    """One question for each region of each account."""
    for account in accounts:
        for region in account.regions:
            place = Place(account.account, region)
            yield Question(f"aws {place}", partial(_ask, place, account.role_arn))


def _ask(place: Place, role: str | None) -> Iterator[Answer]:
    connection, source = Connection(place, quick=True), f"aws {place}"
    login = "sts:AssumeRole" if role else "sts:GetCallerIdentity"
    try:
        clients = {service: connection.client(service) for service in ("ec2", "autoscaling", "cloudwatch")}
    except Failure as error:
        action = _statement([login], role) if role and is_forbidden(error) else None
        yield Answer(source, login, problem=sentence(connection.gap(error)), action=action)
        return
    answers, denied = [Answer(source, login)], []
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    for permission, (method, parameters, key) in CALLS.items():
        if method == "get_metric_data":
            parameters = parameters | {"StartTime": now - timedelta(minutes=5), "EndTime": now}
        try:
            listed(getattr(clients[permission.partition(":")[0]], method)(**parameters), key)
            answers.append(Answer(source, permission))
        except Failure as error:
            answers.append(Answer(source, permission, problem=sentence(connection.gap(error))))
            if is_forbidden(error):
                denied.append(permission)
            elif is_for_good(error):
                break
    for answer in answers:
        yield replace(answer, action=_statement(denied)) if answer.asked in denied else answer


def _statement(actions: list[str], resource: str = "*") -> str:
    """The IAM policy statement to add."""
    statement = {"Effect": "Allow", "Action": actions, "Resource": resource}
    return f"add to the policy of Streamwarden's role or user: {json.dumps(statement)}"
