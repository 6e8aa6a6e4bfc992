"""confirmed_constants: enumeration constants that were added or removed for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

QUERY = "select topic, is_confirmed from public.confirmed_constants(:hour, 24, 0.75, 0.5) order by topic"


def test_a_constant_is_confirmed_if_it_is_absent_for_a_whole_day(module_warehouse: sa.Engine) -> None:
    first = HOUR - timedelta(hours=30)
    store = {
        "cluster": "c",
        "application_id": "a",
        "store": "s",
        "format": "json",
        "values_profiled": 100,
        "first_at": first,
    }
    added = {
        "cluster": "c", "path": "$.state", "change": "constant_added", "old_version": 1, "new_version": 2,
        "new_type": "new", "old_count": 50, "new_count": 50, "breaks_backward": False, "breaks_forward": True,
        "strict_only": True,
    }  # fmt: skip
    began = {"for good": HOUR, "known lately": HOUR, "within the day": first + timedelta(hours=23), "smaller log": HOUR}
    before: dict[str, tuple[int, int]] = {"known lately": (23, 100), "smaller log": (24, 74)}
    with module_warehouse.connect() as connection:
        for topic, at in began.items():
            hours, values = before.get(topic, (24, 75))
            past: dict[str, Any] = {"hour": HOUR - timedelta(hours=hours), "values_profiled": values}
            insert_row(connection, "metrics.state_store_hourly", {"hour": HOUR, **store, "topic": topic})
            insert_row(connection, "metrics.state_store_hourly", {**store, "topic": topic, **past})
            row = {"hour": HOUR, **added, "topic": topic, "new_first_at": at}
            insert_row(connection, "metrics.state_store_change_hourly", row)
        found = {
            topic: bool(is_confirmed) for topic, is_confirmed in connection.execute(sa.text(QUERY), {"hour": HOUR})
        }
        connection.rollback()
    assert found == {topic: topic == "for good" for topic in began}
