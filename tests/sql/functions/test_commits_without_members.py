"""commits_without_members: groups whose offsets jobs commit without joining them, as Flink does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

GROUPS: dict[str, dict[int, tuple[int | None, int | None, int | None]]] = {
    "flink": {0: (0, 6, 0), 1: (0, 6, 0), 2: (0, 6, 0), 23: (0, 6, 0)},
    "flink that stopped": {0: (0, 0, 0), 1: (0, 6, 0), 2: (0, 6, 0), 3: (0, 6, 0)},
    "one commit an hour": {0: (0, 1, 0), 1: (0, 1, 0), 2: (0, 1, 0)},
    "began two hours ago": {0: (0, 6, 0), 1: (0, 6, 0)},
    "set manually": {0: (0, 3, 0), 1: (0, 0, 0), 2: (0, 0, 0)},
    "had a member a day ago": {0: (0, 6, 0), 1: (0, 6, 0), 2: (0, 6, 0), 23: (1, 6, 0)},
    "had a member before": {0: (0, 6, 0), 1: (0, 6, 0), 2: (0, 6, 0), 24: (1, 6, 3)},
    "members came and went": {0: (0, 6, 1), 1: (0, 6, 0), 2: (0, 6, 0), 3: (0, 6, 0)},
    "members unknown": {0: (None, 6, 0), 1: (None, 6, 0), 2: (None, 6, 0)},
    "history unknown": {0: (0, None, None), 1: (0, None, None), 2: (0, None, None)},
    "a consumer": {0: (2, 60, 0), 1: (2, 60, 0), 2: (2, 60, 0)},
}
"""Members, commits, and rebalances by hours ago."""


def test_groups_that_commit_without_members(module_warehouse: sa.Engine) -> None:
    with module_warehouse.connect() as connection:
        for group_id, hours in GROUPS.items():
            for ago, output in hours.items():
                hour = HOUR - timedelta(hours=ago)
                row: dict[str, Any] = dict(zip(("members", "commits", "rebalances"), output, strict=True))
                row |= {"hour": hour, "cluster": "c", "group_id": group_id}
                insert_row(connection, "metrics.consumer_group_hourly", row)
        query = "select * from public.commits_without_members(:hour)"
        found = {row.group_id: row.is_committing for row in connection.execute(sa.text(query), {"hour": HOUR})}
        assert found == {
            "flink": True,
            "flink that stopped": False,
            "one commit an hour": True,
            "had a member before": True,
        }
        query = "select group_id, commits_without_members as output from public.consumer_lag"
        shown = {row.group_id: row.output for row in connection.execute(sa.text(query))}
        assert shown == dict.fromkeys(GROUPS) | found
