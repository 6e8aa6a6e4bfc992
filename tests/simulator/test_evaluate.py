"""A flagship analysis on a small fleet: no fault missed, no false alarm, and it says so."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from streamwarden.base.hours import HOUR

from tests.simulator.__main__ import PARTS
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import SMALL, START, Fault, Verdict
from tests.simulator.score import Score, show

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(spark: Any) -> Iterator[Bench]:
    with a_bench(spark) as made:
        yield made


def test_a_small_fleet_is_judged_right(bench: Bench) -> None:
    """Volumes only: each analysis takes a minute; `make evaluate` runs all."""
    result = PARTS["volumes"](bench, SMALL)
    assert result.missed == [] and result.false_alarms == []
    assert result.faults >= 3 and result.cases > result.faults


def test_a_missed_goal_is_named() -> None:
    fault = Fault("vol-1", "bucket empties", START, START, START + HOUR)
    verdict = Verdict("vol-2", START, "alarm", "Its bucket will be empty.")
    result = Score("starving volumes", 10, 2, 0, 1, [fault], false_alarms=[(verdict, "nightly batch")])
    out = io.StringIO()
    assert not show(Console(file=out, width=200), [result])
    assert "missed starving volumes: vol-1 (bucket empties)" in out.getvalue()
    assert "false alarm starving volumes: vol-2 (nightly batch)" in out.getvalue()
    assert show(Console(file=io.StringIO()), [replace(result, missed=[], false_alarms=[])])
