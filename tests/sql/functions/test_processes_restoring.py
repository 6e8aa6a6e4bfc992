"""processes_restoring: processes whose number of records to restore changed within an hour."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_rows

LEFT: dict[str, list[float | None]] = {
    "restores": [None, 900, 500, 100],
    "began": [0, 0, 0, 100],
    "ends": [9, 9, 9, 1],
    "constant": [500, 500, 500, 500],
    "finished": [500, 300, 100, 0],
    "silent": [500, 300, 100, None],
    "paused": [500, 300, 300, 100],
}
"""By endpoint: records left to restore, in each hour up to HOUR."""


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 0, {"restores": [0], "began": [0], "ends": [0], "paused": [0]}),
        (1, 1, {"restores": [1], "finished": [1], "silent": [1]}),
        (1, 0, {"restores": [1, 0], "began": [0], "ends": [0], "finished": [1], "silent": [1], "paused": [0]}),
        (
            2,
            0,
            {"restores": [2, 1, 0], "began": [0], "ends": [0], "finished": [2, 1], "silent": [2, 1], "paused": [2, 0]},
        ),
    ],
)
def test_processes_that_restored(
    module_warehouse: sa.Engine, first: int, last: int, expected: dict[str, list[int]]
) -> None:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        insert_rows(
            connection, "metrics.jvm_app_hourly",
            ({"hour": HOUR - timedelta(hours=ago), "cluster": cluster, "app": app, "endpoint": endpoint,
              "application_id": app, "records_to_restore": left if (cluster, app) == ("c", "orders") else 500}
             for endpoint, by_hour in LEFT.items() for ago, left in zip((3, 2, 1, 0), by_hour, strict=True)
             for cluster, app in (("c", "orders"), ("c", "billing"), ("d", "orders"))),
        )  # fmt: skip
        rows = connection.execute(
            sa.text("select * from public.processes_restoring(:first, :last) order by hour"),
            {"first": HOUR - timedelta(hours=first), "last": HOUR - timedelta(hours=last)},
        ).all()
        transaction.rollback()
    found: dict[str, list[int]] = {}
    for row in rows:
        assert (row.cluster, row.application_id) == ("c", "orders")  # all others are constant
        found.setdefault(row.endpoint, []).append(int((HOUR - row.hour).total_seconds() // 3600))
    assert found == expected
