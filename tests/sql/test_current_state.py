"""What triggers keep beside the history is what the history says, in whatever order hours come, and however often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

HOURS = [HOUR + n * timedelta(hours=1) for n in range(8)]
# The definition: the first alarm after the last healthy hour that lies before the newest.
_STANDING = """
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
def test_a_finding_stands_since_what_its_history_says(warehouse: sa.Engine, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 no secret
    with warehouse.begin() as connection:
        for hour in _some_order(chance, HOURS):
            said = {name: chance.choice(("firing", "firing", "ok", "unknown", None)) for name in "abc"}
            connection.execute(sa.text("delete from detect.evaluation where hour = :hour"), {"hour": hour})
            for name, status in said.items():
                if status:
                    row = {"hour": hour, "detector": "d", "fingerprint": name, "status": status}
                    insert_row(connection, "detect.evaluation", row)
        expected = _rows(connection, _STANDING)
        kept = _rows(connection, "select fingerprint, since_hour from detect.open_finding order by fingerprint")
        assert kept == expected


@pytest.mark.parametrize("seed", range(12))
def test_volumes_are_the_same_for_as_long_as_their_hours_say(warehouse: sa.Engine, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 no secret
    with warehouse.begin() as connection:
        for hour in _some_order(chance, HOURS):
            connection.execute(sa.text("delete from inventory.volume_hourly where hour = :hour"), {"hour": hour})
            for account in ("1", "2"):  # the same volume id in both
                row = {"hour": hour, "account": account, "volume_id": "vol-1", "size_gib": chance.choice((10, 20))}
                insert_row(connection, "inventory.volume_hourly", row)
        kept = _rows(
            connection,
            """select account, volume_id, size_gib, valid_from, last_hour from inventory.volume_stretch
            order by account, volume_id, valid_from""",
        )
        assert kept == _rows(connection, _STRETCHES)


def test_what_comes_in_order_is_counted_and_a_gap_ends_nothing(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        for n, size in ((0, 10), (1, 10), (3, 10), (4, 20), (4, 20)):
            connection.execute(sa.text("delete from inventory.volume_hourly where hour = :hour"), {"hour": HOURS[n]})
            insert_row(connection, "inventory.volume_hourly", {"hour": HOURS[n], "volume_id": "v", "size_gib": size})
        history = _rows(connection, "select size_gib, valid_from, valid_to, hours_seen from public.volume_history")
        assert history == [(10, HOURS[0], HOURS[4], 3), (20, HOURS[4], None, 1)]
        # As a load does where a source left gaps: what is there already is updated.
        connection.execute(sa.text("update inventory.volume_hourly set size_gib = 30 where hour = :h"), {"h": HOURS[4]})
        assert _rows(connection, "select max(size_gib), count(*) from public.volume_history") == [(30, 2)]


def _some_order(chance: random.Random, hours: Sequence[Any]) -> list[Any]:
    """Mostly as they come; then some again, or one that was left out before."""
    late = chance.sample(hours, 2)
    return [*(hour for hour in hours if hour not in late), *late, *chance.sample(hours, 3)]


def _rows(connection: sa.Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(sa.text(query))]
