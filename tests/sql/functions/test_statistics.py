"""theil_sen and topic_baseline against numpy."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR

Series = list[tuple[datetime, float | None]]
WEEK = 7 * 24


def _series(seed: int, hours: int, known_share: float = 1.0) -> Series:
    """A metric that grows with a daily rhythm, bursts, and missing hours, in random order."""
    random = np.random.default_rng(seed)
    rows: Series = [
        (
            HOUR - timedelta(hours=n + 1),
            None if random.random() > known_share else float(-3 * n + 50 * np.sin(n / 24) + random.pareto(1.1) * 20),
        )
        for n in range(hours)
    ]
    random.shuffle(rows)  # type: ignore[arg-type]
    return rows


def _ask(engine: sa.Engine, sql: str, series: Series, **values: Any) -> Any:
    arrays = {"at": [at for at, _ in series], "amounts": [amount for _, amount in series]}
    call = "cast(:at as timestamptz[]), cast(:amounts as double precision[])"
    with engine.connect() as connection:
        return connection.execute(sa.text(sql.replace("SERIES", call)), {**arrays, "hour": HOUR, **values}).one()


def _slope(series: Series) -> float:
    known = [(at.timestamp() / 3600, amount) for at, amount in series if amount is not None]
    return float(np.median([(d - b) / (c - a) for (a, b), (c, d) in combinations(known, 2)]))


@pytest.mark.parametrize(("hours", "share"), [(3, 1.0), (24, 1.0), (100, 0.7), (WEEK, 0.9)])
def test_theil_sen_is_the_median_of_all_slopes(module_warehouse: sa.Engine, hours: int, share: float) -> None:
    series = _series(hours, hours, share)
    assert _ask(module_warehouse, "select theil_sen(SERIES)", series)[0] == pytest.approx(_slope(series))


def test_theil_sen_is_robust_against_bursts(module_warehouse: sa.Engine) -> None:
    series: Series = [(HOUR + timedelta(hours=n), 2.0 * n + (1e9 if n % 5 == 4 else 0)) for n in range(40)]
    assert _ask(module_warehouse, "select theil_sen(SERIES)", series)[0] == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("amounts", [[], [1.0], [1.0, 5.0], [1.0, None, 5.0], [None] * 5])
def test_theil_sen_of_fewer_than_three_hours_is_null(module_warehouse: sa.Engine, amounts: list[float | None]) -> None:
    series: Series = [(HOUR + timedelta(hours=n), amount) for n, amount in enumerate(amounts)]
    assert _ask(module_warehouse, "select theil_sen(SERIES)", series)[0] is None


def test_theil_sen_ignores_pairs_within_one_hour(module_warehouse: sa.Engine) -> None:
    series: Series = [(HOUR, 1.0), (HOUR, 99.0), (HOUR + timedelta(hours=1), 2.0)]
    assert _ask(module_warehouse, "select theil_sen(SERIES)", series)[0] == pytest.approx((1.0 - 97.0) / 2)


USUAL = "select median, mad, known_hours, kind from topic_baseline(:hour, SERIES, :least)"


def _usual(amounts: list[float]) -> tuple[float, float]:
    median = float(np.median(amounts))
    return median, float(np.median(np.abs(np.array(amounts) - median)))


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_the_baseline_is_that_of_the_same_hour_of_the_week(module_warehouse: sa.Engine, share: float) -> None:
    series = _series(7, 5 * WEEK, share)
    same = {HOUR - timedelta(weeks=n) for n in range(1, 5)}
    known = [(at, amount) for at, amount in series if amount is not None and at >= HOUR - timedelta(weeks=4)]
    median, mad = _usual([amount for at, amount in known if at in same])
    assert len([at for at, _ in known if at in same]) >= 3
    got = _ask(module_warehouse, USUAL, series, least=24)
    assert tuple(got) == (pytest.approx(median), pytest.approx(mad), len(known), "hour_of_week")


def test_with_two_such_hours_the_baseline_is_that_of_all_hours(module_warehouse: sa.Engine) -> None:
    series = _series(3, 2 * WEEK + 5)
    got = _ask(module_warehouse, USUAL, series, least=24)
    median, mad = _usual([amount for _, amount in series if amount is not None])
    assert tuple(got) == (pytest.approx(median), pytest.approx(mad), len(series), "all_hours")


def test_the_hour_itself_and_later_hours_do_not_count(module_warehouse: sa.Engine) -> None:
    past: Series = [(HOUR - timedelta(hours=n), 5.0) for n in (1, 2, 3)]
    later: Series = [(HOUR + timedelta(hours=n), 900.0) for n in (0, 1, WEEK)]
    older: Series = [(HOUR - timedelta(weeks=n), 900.0) for n in (5, 6, 7)]
    got = _ask(module_warehouse, USUAL, [*past, *later, *older], least=3)
    assert tuple(got) == (5.0, 0.0, 3, "all_hours")


@pytest.mark.parametrize("known", [0, 1, 23])
def test_a_short_history_gives_null_and_the_number_of_known_hours(module_warehouse: sa.Engine, known: int) -> None:
    series: Series = [(HOUR - timedelta(hours=n + 1), 1.0) for n in range(known)]
    assert tuple(_ask(module_warehouse, USUAL, series, least=24)) == (None, None, known, None)
