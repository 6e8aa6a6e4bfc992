"""Analyses on small fleets: no missed fault, no false alarm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.simulator import brokers, cluster_sources, courses, notifications, workloads
from tests.simulator.__main__ import scores_of
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import EVALUATED, SMALL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def bench(spark: Any) -> Iterator[Bench]:
    """A bench with a new warehouse per part, as in `make evaluate`: a detector evaluates everything in it."""
    with a_bench(spark) as made:
        yield made


@pytest.mark.rare
def test_a_small_fleet_is_evaluated_correctly(bench: Bench) -> None:
    """Volumes only, because each analysis takes a minute; `make evaluate` runs all."""
    [result] = scores_of("volumes", bench, SMALL)
    assert result.missed == [] and result.false_alarms == []
    assert result.faults >= 3 and result.cases > result.faults


@pytest.mark.rare
@pytest.mark.parametrize("part", ["memory", "schemas", "consumers", "lag"])
def test_applications_stores_and_groups_are_evaluated_correctly(bench: Bench, part: str) -> None:
    scores = scores_of(part, bench, SMALL)
    assert [(s.analysis, s.missed, s.false_alarms) for s in scores] == [(s.analysis, [], []) for s in scores]
    assert sum(each.faults for each in scores) >= 3


@pytest.mark.rare
def test_some_topics_groups_and_applications_are_evaluated_correctly(bench: Bench) -> None:
    """A quarter of the kinds, because all take two minutes."""
    scores = scores_of("workloads", bench, replace(SMALL, seed=3, groups=8))
    assert [
        (s.analysis, s.missed, s.false_alarms, s.false_claims) for s in scores if not all(g.is_met for g in s.goals)
    ] == []
    assert sum(each.faults for each in scores) >= 5 and len(scores) == len(workloads.RULES)


@pytest.mark.rare
def test_incidents_of_a_small_fleet_are_one_issue_each(bench: Bench) -> None:
    [result] = scores_of("incidents", bench, SMALL)
    metrics = {goal.name.split(",")[0]: goal for goal in result.goals}
    assert all(goal.is_met for name, goal in metrics.items() if name != "issues per incident"), metrics
    assert metrics["issues per incident"].metric < 1.12, "so few incidents that a single one is 2 %"


@pytest.mark.rare
def test_no_notification_is_sent_twice(bench: Bench) -> None:
    [result] = scores_of("notifications", bench, SMALL)
    assert result.wrong == [] and all(goal.is_met for goal in result.goals), result.goals
    assert (
        isinstance(result, notifications.NotificationsScore) and result.issues > 5 and result.output > 2 * result.issues
    )


@pytest.mark.rare
def test_incidents_clear_flap_and_miss_hours_as_one_issue_each(bench: Bench) -> None:
    [result] = scores_of("courses", bench, SMALL)
    assert result.wrong == [] and all(goal.is_met for goal in result.goals), result.goals
    assert result.faults == len(courses.FAULTS) and result.unknown


@pytest.mark.rare
def test_brokers_of_a_small_fleet_are_evaluated_correctly_and_past_rows_equal_those_of_the_app(bench: Bench) -> None:
    results = scores_of("brokers", bench, SMALL)
    assert [(each.analysis, each.missed, each.false_alarms, each.wrong_verdicts) for each in results] == [
        (each.analysis, [], [], []) for each in results
    ]
    with bench.warehouse.connect() as connection:
        made = pd.read_sql(f"select * from metrics.broker_hourly where hour = '{EVALUATED}'", connection)
    fleet = brokers.build(SMALL)
    for cluster in (cluster for cluster in fleet.clusters if not cluster.own_samples):
        output = cluster_sources.past(cluster).query("hour == @EVALUATED").set_index("endpoint")
        of_app = made.set_index("endpoint").loc[output.index]
        for column in output.columns.intersection(made.columns).difference(
            ["hour", "cluster", "instance_id", "produce_errors"]
        ):
            if column == "process_started_at":
                assert (output[column] == pd.to_datetime(of_app[column], utc=True))[output[column].notna()].all()
                continue
            verdicts, said = (frame[column].to_numpy(float, na_value=np.nan) for frame in (output, of_app))
            assert np.allclose(verdicts, said, rtol=0.01, equal_nan=True), f"{cluster.kind}: {column}"


@pytest.mark.rare
def test_processes_with_growing_memory_are_distinguished_from_those_that_only_fill_up(bench: Bench) -> None:
    [result] = scores_of("growth", bench, SMALL)
    assert result.missed == [] and result.false_alarms == []
    assert result.faults >= 10


@pytest.mark.rare
def test_disks_that_fill_up_are_distinguished_from_those_that_go_up_and_down(bench: Bench) -> None:
    [result] = scores_of("disks", bench, SMALL)
    assert result.missed == [] and result.false_alarms == []
    assert result.faults >= 10


@pytest.mark.rare
def test_instances_are_evaluated_correctly(bench: Bench) -> None:
    scores = scores_of("instances", bench, SMALL)
    assert [(s.analysis, s.missed, s.false_alarms, s.wrong_verdicts) for s in scores] == [
        ("instance_unhealthy", [], [], []), ("instance_network_starving", [], [], []),
        ("instance_cpu_starving", [], [], []),
    ]  # fmt: skip
    assert all(each.faults >= 6 for each in scores)
