"""processes_restoring: who had another number of records to restore than an hour before."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_rows

LEFT: dict[str, list[float | None]] = {
    "restores": [None, 900, 500, 100],
    "began": [0, 0, 0, 100],
    "ends": [9, 9, 9, 1],
    "stands": [500, 500, 500, 500],
    "over": [500, 300, 100, 0],
    "silent": [500, 300, 100, None],
    "paused": [500, 300, 300, 100],
}
"""Of an endpoint: records that it had yet to restore, by the hour up to HOUR."""


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 0, {"restores": [0], "began": [0], "ends": [0], "paused": [0]}),
        (1, 1, {"restores": [1], "over": [1], "silent": [1]}),
        (1, 0, {"restores": [1, 0], "began": [0], "ends": [0], "over": [1], "silent": [1], "paused": [0]}),
        (2, 0, {"restores": [2, 1, 0], "began": [0], "ends": [0], "over": [2, 1], "silent": [2, 1], "paused": [2, 0]}),
    ],
)
def test_who_restored(module_warehouse: sa.Engine, first: int, last: int, expected: dict[str, list[int]]) -> None:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
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
        assert (row.cluster, row.application_id) == ("c", "orders")  # of the others all stand
        found.setdefault(row.endpoint, []).append(int((HOUR - row.hour).total_seconds() // 3600))
    assert found == expected
