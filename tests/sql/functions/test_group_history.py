"""commit_gaps, new_groups, and assignment_coverage: what the history of a consumer group shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

PLACE = {"cluster": "c", "group_id": "g", "topic": "t"}


def _commits(hours_ago: int, gap: float | None, commits: int = 1, **place: Any) -> dict[str, Any]:
    """A partition that committed last half an hour into an hour."""
    at = HOUR - timedelta(hours=hours_ago)
    return {**PLACE, "partition": 0, **place, "hour": at, "committed_at": at + timedelta(minutes=30),
            "commits": commits, "commit_gap_p95_seconds": gap}  # fmt: skip


@pytest.mark.parametrize(
    ("rank", "rows", "gap"),
    [
        (0.5, [_commits(n, gap) for n, gap in enumerate([10, 20, 5000])], 3600),
        (0.5, [_commits(n, gap, 360) for n, gap in enumerate([10, 20, 60])], 20),
        (1.0, [_commits(n, gap, 360) for n, gap in enumerate([10, 20, 60])], 60),
        (1.0, [_commits(0, 10, 360), _commits(23, 90, 360)], 230),
        (1.0, [_commits(0, 10, 360), _commits(24, 90, 360)], 10),
        (0.5, [_commits(0, None), _commits(2, None, commits=0), _commits(3, None)], 3 * 3600),
        (0.5, [_commits(0, None)], None),
    ],
    ids=["hourly", "median", "longest", "23 hours ago", "24 hours ago", "hours without commits", "one commit"],
)
def test_the_typical_time_between_two_commits(
    module_warehouse: sa.Engine, rank: float, rows: list[dict[str, Any]], gap: float | None
) -> None:
    others = [_commits(n, 900, 4, **place) for n in (0, 1) for place in ({"cluster": "d"}, {"group_id": "h"})]
    found = rows_for(
        module_warehouse, {"metrics.consumer_partition_hourly": [*rows, *others, _commits(0, 7, partition=1)]},
        "select * from public.commit_gaps('c', 'g', :hour, :rank) order by partition", rank=rank,
    )  # fmt: skip
    assert found == [("t", 0, gap), ("t", 1, 7)]


def test_groups_that_appeared_in_the_last_days(module_warehouse: sa.Engine) -> None:
    seen = {
        ("c", "known before"): [200, 0], ("c", "7 days"): [168], ("c", "167 hours"): [167, 0], ("c", "just now"): [0],
        ("c", "next hour"): [-1], ("d", "first day"): [30], ("d", "a day later"): [6], ("d", "25 hours later"): [5],
        ("e", "before the history"): [336], ("e", "first hour of the history"): [335], ("e", "new"): [20],
    }  # fmt: skip
    rows = [
        {"cluster": cluster, "group_id": group, "hour": HOUR - timedelta(hours=ago)}
        for (cluster, group), hours in seen.items()
        for ago in hours
    ]
    found = rows_for(
        module_warehouse, {"metrics.consumer_group_hourly": rows},
        "select cluster, group_id, first_hour from public.new_groups(:hour, 7)",
    )  # fmt: skip
    new = {("c", "167 hours"): 167, ("c", "just now"): 0, ("d", "25 hours later"): 5, ("e", "new"): 20}
    assert {(cluster, group): at for cluster, group, at in found} == {
        group: HOUR - timedelta(hours=ago) for group, ago in new.items()
    }


def _coverage(module_warehouse: sa.Engine, assigned: list[int], committed: list[int]) -> list[tuple[Any, ...]]:
    members = [
        {"cluster": "c", "group_id": "g", "member_id": f"m{n}", "assignment": {"t": [n]},
         "over": {"hours": hours}}
        for n, hours in enumerate(assigned)
    ]  # fmt: skip
    logs = [
        {"cluster": "c", "topic": "t", "partition": n, "log_end_offset_first": 5,
         "log_end_offset_last": 5 if n == 1 else 7, "over": {"hours": 2}}
        for n in range(len(assigned))
    ]  # fmt: skip
    places = [{**PLACE, "partition": n} for n in committed]
    others = [{**PLACE, "partition": n, **other} for n in range(4) for other in ({"cluster": "d"}, {"group_id": "h"})]
    return rows_for(
        module_warehouse,
        {"inventory.consumer_member_hourly": members, "metrics.partition_hourly": logs,
         "metrics.consumer_partition_hourly": [*places, *others]},
        "select * from public.assignment_coverage('c', 'g', :hour)",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("assigned", "committed", "expected"),
    [
        ([2, 2, 2], [0, 1, 2], (3, 0, None)),
        ([2, 2, 2], [0, 1], (3, 1, "t-2")),
        ([2, 2, 2], [0, 2], (3, 0, None)),  # no record arrived in partition 1
        ([2, 2, 1], [0, 1], (3, 0, None)),  # assigned for one hour only
        ([2, 2, 2], [], (3, 2, "t-0")),
    ],
)
def test_assigned_partitions_without_a_committed_offset(
    module_warehouse: sa.Engine, assigned: list[int], committed: list[int], expected: tuple[Any, ...]
) -> None:
    assert _coverage(module_warehouse, assigned, committed) == [expected]


def test_a_group_without_assignment_has_no_coverage(module_warehouse: sa.Engine) -> None:
    assert _coverage(module_warehouse, [], []) == []
