"""Activities of Auto Scaling as the Spark data source `scaling_activities`: launches and terminations, with the
cause.

Reads DescribeScalingActivities (permission autoscaling:DescribeScalingActivities, free of charge) in pages of 100,
newest first, only as far back as needed. AWS keeps six weeks. A region without activities gives one row without an
id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from spark_apps.sources.aws_client import Connection, Failure, PlacesSource, listed, unseen

PAGE_SIZE = 100
Row = dict[str, Any]
_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")


class ScalingActivities(PlacesSource):
    """Activities that began in [`since`, `until`), both ISO 8601."""

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "scaling_activities"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "account string, region string, activity_id string, scaling_group string, instance_id string,"
            " is_termination boolean, description string, cause string, status string, started_at timestamp,"
            " ended_at timestamp, resource string, gap string"
        )

    def read_place(self, connection: Connection) -> Iterator[list[Row]]:
        """Activities of one region."""
        since, until = (datetime.fromisoformat(self.options[name]) for name in ("since", "until"))
        resource = f"{connection.place} scaling activities"
        seen: set[str] = set()
        try:
            paginator = connection.client("autoscaling").get_paginator("describe_scaling_activities")
            for page in paginator.paginate(PaginationConfig={"PageSize": PAGE_SIZE}):
                activities = listed(page, "Activities")
                rows = [_activity(each) for each in activities if since <= each["StartTime"] < until]
                yield [row | {"resource": resource} for row in unseen(rows, "activity_id", seen) or [{}]]
                # Activities in progress come first, whatever their age; the others newest first.
                if any("EndTime" in each and each["StartTime"] < since for each in activities):
                    break
        except Failure as error:
            yield [{"resource": resource, "gap": connection.gap(error)}]


def _activity(activity: Row) -> Row:
    description = activity.get("Description", "")
    instance = _INSTANCE.search(description)
    return {
        "activity_id": activity.get("ActivityId"),
        "scaling_group": activity.get("AutoScalingGroupName"),
        "instance_id": instance and instance[0],
        "is_termination": description.startswith("Terminating"),
        "description": description,
        "cause": activity.get("Cause"),
        "status": activity.get("StatusCode"),
        "started_at": activity["StartTime"],
        "ended_at": activity.get("EndTime"),
    }
