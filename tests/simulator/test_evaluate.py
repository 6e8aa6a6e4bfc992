"""A flagship analysis on a small fleet: no fault missed, no false alarm, and it says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulator.__main__ import scores_of
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import SMALL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(spark: Any) -> Iterator[Bench]:
    with a_bench(spark) as made:
        yield made


def test_a_small_fleet_is_judged_right(bench: Bench) -> None:
    """Volumes only: each analysis takes a minute; `make evaluate` runs all."""
    [result] = scores_of("volumes", bench, SMALL)
    assert result.missed == [] and result.false_alarms == []
    assert result.faults >= 3 and result.cases > result.faults


def test_incidents_of_a_small_fleet_are_one_issue_each(bench: Bench) -> None:
    [result] = scores_of("incidents", bench, SMALL)
    figures = {goal.name.split(",")[0]: goal for goal in result.goals}
    assert all(goal.is_met for name, goal in figures.items() if name != "issues per incident"), figures
    assert figures["issues per incident"].figure < 1.12, "so few incidents that a single one is 2 %"
