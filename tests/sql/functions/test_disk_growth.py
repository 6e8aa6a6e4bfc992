"""disk_growth against numpy: a log directory and a file system that fill up, with noise and missing hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_rows

WEEK, KNOWN = 168, 700
"""In hours; hours older than four weeks (672) do not count."""
TOTAL, FREE = 10**9, 10**6
PLACES = {
    "log_dir": ("metrics.log_dir_hourly", "broker_id", "7", "log_dir", "total_bytes", "usable_bytes"),
    "file_system": ("metrics.file_system_hourly", "endpoint", "e1", "mountpoint", "size_bytes", "available_bytes"),
}
"""Table, scope column and its value, and columns of the path, the size, and the free bytes."""
Used = Mapping[int, float]
"""Used bytes by hours ago."""


@pytest.fixture
def connection(module_warehouse: sa.Engine) -> Iterator[sa.Connection]:
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def fills(seed: int, slope: float, lately: float, gaps: float = 0.1) -> Used:
    """Usage that grows by `slope` bytes per hour, by `lately` in the last day, with noise and missing hours."""
    random = np.random.default_rng(seed)
    return {
        ago: round(TOTAL / 2 - slope * ago + (lately - slope) * max(24 - ago, 0) + random.normal(0, 300))
        for ago in range(KNOWN)
        if ago == 0 or random.random() > gaps
    }


def grown(
    connection: sa.Connection, kind: str, used: Used, *, now: float | None = None, is_high: bool = True,
    least_history: float = 24, beyond: float = 100,
) -> Mapping[str, Any]:  # fmt: skip
    """The function's row for this disk; other disks next to it are nearly full."""
    table, place, which, path, size, free = PLACES[kind]
    here: dict[str, Any] = {"cluster": "c", place: which, path: "/data"}
    others = [here | {"cluster": "d"}, here | {place: "8"}, here | {path: "/other"}]
    rows = [
        here | {"hour": HOUR - timedelta(hours=ago), size: TOTAL, free: TOTAL - bytes_} for ago, bytes_ in used.items()
    ]
    rows += [one | {"hour": HOUR - timedelta(hours=ago), size: TOTAL, free: ago} for one in others for ago in range(40)]
    rows += [here | {"hour": HOUR + timedelta(hours=1), size: TOTAL, free: 1}]
    insert_rows(connection, table, rows)
    query = (
        "select * from public.disk_growth(:kind, 'c', :which, '/data', :hour, :used, :free, :is_high, :least, :beyond)"
    )
    values = {"kind": kind, "which": which, "hour": HOUR, "used": used[0] if now is None else now, "free": FREE}
    values |= {"is_high": is_high, "least": least_history, "beyond": beyond}
    return connection.execute(sa.text(query), values).mappings().one()


def slope(used: Used, hours: int) -> float:
    """The Theil-Sen slope of the last `hours`, in bytes per hour."""
    return float(
        np.median([(a - b) / (j - i) for (i, a), (j, b) in combinations(used.items(), 2) if max(i, j) < hours])
    )


def by_days(used: Used) -> float:
    added = [bytes_ - used[ago + 24] for ago, bytes_ in used.items() if ago < WEEK and ago + 24 in used]
    return float(np.median(added)) / 24


def without_rhythm(used: Used) -> Used:
    """Usage less the daily rhythm: the median difference of each hour of day from the mean of the 24 h around it.

    Unchanged if an hour of day is known on fewer than three days.
    """
    week = {ago: bytes_ for ago, bytes_ in used.items() if ago <= WEEK}
    around = {ago: [week[n] for n in range(ago - 11, ago + 13) if n in week] for ago in week}
    beyond = [
        [week[ago] - np.mean(hours) for ago, hours in around.items() if ago % 24 == hour and len(hours) == 24]
        for hour in range(24)
    ]
    if min(map(len, beyond)) < 3:
        return used
    return {ago: bytes_ - float(np.median(beyond[ago % 24])) for ago, bytes_ in used.items()}


@pytest.mark.parametrize(("hours", "has_rhythm"), [(95, True), (94, False), (KNOWN, True)])
def test_growth_of_a_day_excludes_the_daily_rhythm(connection: sa.Connection, hours: int, has_rhythm: bool) -> None:
    random = np.random.default_rng(3)
    by_day = [round(TOTAL / 2 - 100 * ago + 1e6 * np.sin(ago / 12 * np.pi)) for ago in range(hours)]
    used = {ago: bytes_ + round(random.normal(0, 3e5)) for ago, bytes_ in enumerate(by_day)}
    smoothed = without_rhythm(used)
    assert (smoothed is not used) == has_rhythm
    assert grown(connection, "log_dir", used)["day_growth"] == pytest.approx(slope(smoothed, 24), rel=1e-9)


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(("lately", "is_high"), [(2000, True), (500, True), (500, False)])
def test_growth_equals_the_result_of_numpy(connection: sa.Connection, kind: str, lately: float, is_high: bool) -> None:
    used = fills(1, 1000, lately)
    found = grown(connection, kind, used, is_high=is_high, beyond=10_000)
    week, day = slope(used, WEEK + 1), slope(used, 24)
    metrics = {
        "known_hours": sum(ago <= WEEK for ago in used),
        "week_growth": week, "day_growth": day, "growth_per_hour": min(week, day),
        "hours_to_full": FREE / min(week, day), "hours_to_full_by_day": FREE / day,
        "growth_by_days": by_days(used) if is_high else None,
        "hours_to_full_by_days": FREE / by_days(used) if is_high else None,
    }  # fmt: skip
    assert {name: found[name] for name in metrics} == {
        name: None if metric is None else pytest.approx(metric, rel=1e-9) for name, metric in metrics.items()
    }
    top = max(bytes_ for ago, bytes_ in used.items() if 24 <= ago <= 672)
    highest = (used[0] > top, used[0] > top + 10_000) if is_high else (None, None)
    assert (found["is_highest"], found["is_beyond"]) == highest


@pytest.mark.parametrize("kind", PLACES)
def test_a_disk_that_does_not_grow_never_fills_and_a_missing_slope_gives_no_growth(
    connection: sa.Connection, kind: str
) -> None:
    still = grown(connection, kind, dict.fromkeys(range(KNOWN), 5000.0))
    assert (still["week_growth"], still["day_growth"], still["growth_by_days"]) == (0, 0, 0)
    assert still["hours_to_full"] is still["hours_to_full_by_day"] is still["hours_to_full_by_days"] is None
    connection.execute(sa.text(f"delete from {PLACES[kind][0]}"))
    hardly = grown(connection, kind, {ago: 5e6 - ago / 2 for ago in range(0, KNOWN, 2)})
    full = ("hours_to_full", "hours_to_full_by_day", "hours_to_full_by_days")
    assert [hardly[name] for name in full] == [pytest.approx(2 * FREE)] * 3
    connection.execute(sa.text(f"delete from {PLACES[kind][0]}"))
    only_before = grown(connection, kind, {0: 9e6} | {ago: 9e6 - 1000 * ago for ago in range(30, 100)}, now=9e6)
    assert only_before["week_growth"] > 0 and only_before["day_growth"] is only_before["growth_per_hour"] is None
    assert only_before["hours_to_full"] is None


def test_the_history_is_long_enough_at_exactly_least_history_hours(connection: sa.Connection) -> None:
    used = {ago: 9e6 - 1000 * ago for ago in range(40)} | dict.fromkeys(range(WEEK + 1, WEEK + 9), 100000.0)
    full = ("hours_to_full", "hours_to_full_by_day", "hours_to_full_by_days")
    enough = grown(connection, "log_dir", used, least_history=40)
    assert [enough[name] for name in full] == [pytest.approx(1000)] * 3
    connection.execute(sa.text("delete from metrics.log_dir_hourly"))
    short = grown(connection, "log_dir", used, least_history=40.5)
    assert short["known_hours"] == 40 and [short[name] for name in full] == [None] * 3


@pytest.mark.parametrize(
    ("above", "is_highest", "is_beyond"), [(0, False, False), (1, True, False), (100, True, False), (101, True, True)]
)
def test_the_highest_usage_counts_up_to_a_day_ago(
    connection: sa.Connection, above: float, is_highest: bool, is_beyond: bool
) -> None:
    used = {ago: 5e6 - ago for ago in range(KNOWN)} | {0: 7e6, 23: 7e6, 24: 6e6, 672: 5.9e6, 673: 8e6}
    found = grown(connection, "log_dir", used, now=6e6 + above)
    assert (found["is_highest"], found["is_beyond"]) == (is_highest, is_beyond)


@pytest.mark.parametrize(("week_ago", "is_known"), [({168: 6e6}, False), ({168: 6e6 - 1}, True), ({672: 6e6}, False)])
def test_growth_by_days_counts_only_if_the_disk_was_never_so_full_before_the_week(
    connection: sa.Connection, week_ago: Used, is_known: bool
) -> None:
    used = {ago: 5e6 - 100 * ago for ago in range(KNOWN)} | {167: 6e6} | dict(week_ago)
    assert (grown(connection, "log_dir", used)["hours_to_full_by_days"] is not None) == is_known
