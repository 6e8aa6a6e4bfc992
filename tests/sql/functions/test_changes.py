"""Recent changes: any look-back, and hours without data before it."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_rows

PLACE = {"account": "1", "region": "r", "volume_id": "vol-1"}
KEY = "volume:1/r/vol-1"
BROKER = {"cluster": "c", "broker_id": 1, "endpoint": "http://b:1"}


def changes(warehouse: sa.Engine, look_back: str) -> list[tuple[int, str, str | None, str | None]]:
    """Hours before HOUR, what, was, and now."""
    asked = sa.text("select * from public.changes(:hour, cast(:look_back as interval))")
    with warehouse.connect() as connection:
        rows = connection.execute(asked, {"hour": HOUR, "look_back": look_back}).mappings()
        return [(int((HOUR - row["hour"]) / timedelta(hours=1)), row["what"], row["was"], row["now"]) for row in rows]


def volumes(warehouse: sa.Engine, sizes: dict[int, int]) -> None:
    rows = [{"hour": HOUR - timedelta(hours=back), **PLACE, "size_gib": size} for back, size in sizes.items()]
    with warehouse.begin() as connection:
        insert_rows(connection, "inventory.volume_hourly", rows)


@pytest.mark.parametrize(
    ("look_back", "found"),
    [("3 hours", []), ("11 hours", [(10, "size_gib", "100", "200")]), ("7 days", [(10, "size_gib", "100", "200")])],
)
def test_the_look_back_bounds_the_changes(
    warehouse: sa.Engine, look_back: str, found: list[tuple[int, str, str, str]]
) -> None:
    volumes(warehouse, {11: 100, 10: 200, 0: 200})
    assert changes(warehouse, look_back) == found


def test_the_first_hour_is_compared_with_the_newest_known_hour_before_it(warehouse: sa.Engine) -> None:
    volumes(warehouse, {20: 100, 2: 200, 0: 200})
    assert changes(warehouse, "3 hours") == [(2, "size_gib", "100", "200")]


def test_a_broker_that_was_unreachable_before_the_look_back_has_restarted(warehouse: sa.Engine) -> None:
    starts = {6: HOUR - timedelta(days=9), 1: HOUR - timedelta(hours=2)}
    rows = [
        {"hour": HOUR - timedelta(hours=back), **BROKER, "process_started_at": start} for back, start in starts.items()
    ]
    other = {"hour": HOUR - timedelta(hours=3), **BROKER, "broker_id": 2, "endpoint": "http://b:2"}
    with warehouse.begin() as connection:
        insert_rows(connection, "metrics.broker_hourly", [*rows, other])
    assert [(back, what) for back, what, *_ in changes(warehouse, "3 hours")] == [(1, "restarted")]
