"""State that triggers maintain equals the state derived from the history, for any order and repetition of hours."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

HOURS = [HOUR + n * timedelta(hours=1) for n in range(8)]
# The definition: the first firing hour after the last ok hour before the newest hour.
_OPEN_FINDINGS = """
    select e.fingerprint, min(e.hour) as since_hour
    from detect.evaluation as e
    cross join lateral (
      select max(n.hour) as hour from detect.evaluation as n where n.fingerprint = e.fingerprint
    ) as newest
    where e.status = 'firing' and e.hour > coalesce((
      select max(o.hour) from detect.evaluation as o
      where o.fingerprint = e.fingerprint and o.status = 'ok' and o.hour < newest.hour
    ), '-infinity')
    group by e.fingerprint order by e.fingerprint"""
_STRETCHES = """
    select account, volume_id, size_gib, min(hour), max(hour)
    from (
      select *,
        row_number() over (partition by account, volume_id order by hour)
        - row_number() over (partition by account, volume_id, size_gib order by hour) as stretch
      from inventory.volume_hourly
    ) as seen
    group by account, volume_id, size_gib, stretch order by account, volume_id, min(hour)"""


@pytest.mark.parametrize("seed", range(12))
def test_an_open_finding_begins_where_its_history_says(warehouse: sa.Engine, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 no secret
    with warehouse.begin() as connection:
        for hour in _some_order(chance, HOURS):
            statuses = {name: chance.choice(("firing", "firing", "ok", "unknown", None)) for name in "abc"}
            connection.execute(sa.text("delete from detect.evaluation where hour = :hour"), {"hour": hour})
            for name, status in statuses.items():
                if status:
                    row = {"hour": hour, "detector": "d", "fingerprint": name, "status": status}
                    insert_row(connection, "detect.evaluation", row)
        expected = _rows(connection, _OPEN_FINDINGS)
        kept = _rows(connection, "select fingerprint, since_hour from detect.open_finding order by fingerprint")
        assert kept == expected


@pytest.mark.parametrize("seed", range(12))
def test_volume_stretches_equal_those_of_the_history(warehouse: sa.Engine, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 no secret
    with warehouse.begin() as connection:
        for hour in _some_order(chance, HOURS):
            connection.execute(sa.text("delete from inventory.volume_hourly where hour = :hour"), {"hour": hour})
            for account in ("1", "2"):  # the same volume id in both
                row = {"hour": hour, "account": account, "volume_id": "vol-1", "size_gib": chance.choice((10, 20))}
                insert_row(connection, "inventory.volume_hourly", row)
        kept = _rows(
            connection,
            """select account, volume_id, size_gib, valid_from, last_hour from inventory.volume_configuration
            order by account, volume_id, valid_from""",
        )
        assert kept == _rows(connection, _STRETCHES)


def test_hours_in_order_are_counted_and_a_missing_hour_ends_no_stretch(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        for n, size in ((0, 10), (1, 10), (3, 10), (4, 20), (4, 20)):
            connection.execute(sa.text("delete from inventory.volume_hourly where hour = :hour"), {"hour": HOURS[n]})
            insert_row(connection, "inventory.volume_hourly", {"hour": HOURS[n], "volume_id": "v", "size_gib": size})
        history = _rows(connection, "select size_gib, valid_from, valid_to, hours_seen from public.volume_history")
        assert history == [(10, HOURS[0], HOURS[4], 3), (20, HOURS[4], None, 1)]
        # A load after missing data of a source updates existing rows.
        connection.execute(sa.text("update inventory.volume_hourly set size_gib = 30 where hour = :h"), {"h": HOURS[4]})
        assert _rows(connection, "select max(size_gib), count(*) from public.volume_history") == [(30, 2)]


def _some_order(chance: random.Random, hours: Sequence[Any]) -> list[Any]:
    """Most hours in order, then two late ones, then three hours again."""
    late = chance.sample(hours, 2)
    return [*(hour for hour in hours if hour not in late), *late, *chance.sample(hours, 3)]


def _rows(connection: sa.Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(sa.text(query))]
