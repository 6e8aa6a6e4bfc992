"""Auto Scaling of the strict AWS endpoint: DescribeScalingActivities with its limits, its order and its paging."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from demo.aws_wire import Caller, next_token, resume, validation_error
from demo.world import ScalingActivity

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

KEPT = timedelta(days=42)
MAX_RECORDS, MAX_IDS = 100, 50


def describe_scaling_activities(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """DescribeScalingActivities of six weeks: those in progress first, then newest first, 100 a page at most."""
    now = endpoint.world.now()
    wanted, group = params.get("ActivityIds"), params.get("AutoScalingGroupName")
    if "Filters" in params:
        raise validation_error("This stand-in for Auto Scaling knows no filters.")
    if len(wanted or ()) > MAX_IDS:
        raise validation_error(f"The number of activity ids is limited to {MAX_IDS}.")
    size = params.get("MaxRecords", MAX_RECORDS)
    if not 1 <= size <= MAX_RECORDS:
        raise validation_error(f"Value {size} at 'maxRecords' must be between 1 and {MAX_RECORDS}.")
    own = [
        each
        for each in list(endpoint.world.activities)
        if (each.account, each.region) == (caller.account, caller.region) and now - KEPT < each.started_at <= now
    ]
    if group is not None and group not in {each.scaling_group for each in own}:
        raise validation_error(f"AutoScalingGroup name not found - {group}")
    chosen = [
        each
        for each in own
        if (group is None or each.scaling_group == group) and (wanted is None or each.activity_id in wanted)
    ]
    chosen.sort(key=lambda each: (each.has_ended(now), -each.started_at.timestamp(), each.activity_id))
    (start,) = resume(caller, params, "InvalidNextToken") or (0,)
    page: dict[str, Any] = {"Activities": [_activity(each, now) for each in chosen[start : start + size]]}
    if start + size < len(chosen):
        page["NextToken"] = next_token(caller, params, [start + size])
    return page


def _activity(activity: ScalingActivity, now: datetime) -> dict[str, Any]:
    has_ended = activity.has_ended(now)
    verb = "Terminating EC2 instance" if activity.is_termination else "Launching a new EC2 instance"
    return {
        "ActivityId": activity.activity_id,
        "AutoScalingGroupName": activity.scaling_group,
        "Description": f"{verb}: {activity.instance_id}",
        "Cause": activity.cause,
        "StartTime": activity.started_at,
        "EndTime": activity.ended_at if has_ended else None,
        "StatusCode": "Successful" if has_ended else "InProgress",
        "Progress": 100 if has_ended else 50,
        "Details": json.dumps({"Subnet ID": "subnet-0example", "Availability Zone": f"{activity.region}a"}),
    }
