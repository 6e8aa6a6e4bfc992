"""groups_renamed: who follows on a group that ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

DAYS = 14
OTHER = ("other", 300, 1, ["x"], None)
"""Since when (hours ago) a group is there, its members, its topics, how many hours ago it committed last."""
CLUSTERS: dict[str, list[tuple[str, int, int | None, list[str], float | None]]] = {
    "renamed": [OTHER, ("old", 200, 0, ["a", "b"], 30), ("new", 29, 1, ["b", "a"], 0)],
    "two successors": [OTHER, ("old", 200, 0, ["a"], 30), ("new-b", 29, 1, ["a"], 0), ("new-a", 29, 2, ["a"], 0)],
    "a day before": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 54, 1, ["a"], 0)],
    "a day after": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 6, 1, ["a"], 0)],
    "too early": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 55, 1, ["a"], 0)],
    "too late": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 5, 1, ["a"], 0)],
    "other topics": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 29, 1, ["a", "b"], 0)],
    "still runs": [OTHER, ("old", 200, 1, ["a"], 0), ("new", 2, 1, ["a"], 0)],
    "successor is gone": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 29, 0, ["a"], 25)],
    "members unknown": [OTHER, ("old", 200, None, ["a"], 30), ("new", 29, 1, ["a"], 0)],
    "members of the successor unknown": [OTHER, ("old", 200, 0, ["a"], 30), ("new", 29, None, ["a"], 0)],
    "end unknown": [OTHER, ("old", 200, 0, ["a"], None), ("new", 29, 1, ["a"], 0)],
    "new cluster": [("old", 53, 0, ["a"], 30), ("new", 29, 1, ["a"], 0)],
    "cluster of a day more": [("old", 54, 0, ["a"], 30), ("new", 29, 1, ["a"], 0)],
    "still commits without members": [OTHER, ("job", 200, 0, ["a"], 0), ("new", 2, 1, ["a"], 0)],
    "was long away": [OTHER, ("old", 200, 0, ["a"], 20), ("new", DAYS * 24, 1, ["a"], 0)],
    "known too long ago": [("old", DAYS * 24, 0, ["a"], 310), ("new", 310, 1, ["a"], 0)],
}


def test_who_follows_on_a_group_that_ended(module_warehouse: sa.Engine) -> None:
    with module_warehouse.connect() as connection:
        for cluster, groups in CLUSTERS.items():
            for group_id, since, members, topics, committed in groups:
                _insert(connection, cluster, group_id, since, members, topics, committed)
        found = connection.execute(
            sa.text("select * from public.groups_renamed(:hour, :days)"), {"hour": HOUR, "days": DAYS}
        )
        assert {row.cluster: (row.former_group, row.group_id) for row in found} == {
            "renamed": ("old", "new"),
            "two successors": ("old", "new-a"),
            "a day before": ("old", "new"),
            "a day after": ("old", "new"),
            "cluster of a day more": ("old", "new"),
            "was long away": ("old", "new"),
        }


def _insert(connection: sa.Connection, cluster: str, group_id: str, since: int, members: Any, topics: list[str],
            committed: float | None) -> None:  # fmt: skip
    at = HOUR - timedelta(hours=committed) if committed is not None else None
    hours = {since, 0} | ({1, 2} if group_id == "job" else set())
    for ago in hours:
        row = {"hour": HOUR - timedelta(hours=ago), "cluster": cluster, "group_id": group_id, "members": members}
        if group_id == "job":
            row |= {"commits": 6, "rebalances": 0}
        insert_row(connection, "metrics.consumer_group_hourly", row)
    if group_id == "old":  # an hour ago it still read another topic
        before = {"hour": HOUR - timedelta(hours=1), "cluster": cluster, "group_id": group_id, "committed_at": at}
        insert_row(connection, "metrics.consumer_partition_hourly", before | {"topic": "former", "partition": 0})
    for topic in topics:
        for partition, moment in enumerate((at, at - timedelta(hours=400) if at else None)):
            row = {"hour": HOUR, "cluster": cluster, "group_id": group_id, "topic": topic, "partition": partition,
                   "committed_at": moment}  # fmt: skip
            insert_row(connection, "metrics.consumer_partition_hourly", row)
