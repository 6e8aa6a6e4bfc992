"""Detectors that need a metric: those which their cases, without it, hardly make fire."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from streamwarden.base.metric_uses import NEEDED_BY

from spark_apps.sources.jmx_metrics import METRICS
from tests.sql.cases import CASES_OF, DETECTORS, Case, evaluate_case
from tests.sql.metric_uses import COLUMNS, without

FEW = 0.4
"""Of the cases in which it fires."""
OPTIONAL = {"remote_fetch_bytes_total"}
"""Brokers without tiered storage do not have them, and nothing is missing there."""


def test_metrics_and_detectors_exist() -> None:
    assert {metric for needs in NEEDED_BY.values() for metric in needs} <= COLUMNS.keys() - OPTIONAL
    assert COLUMNS.keys() <= METRICS.keys()
    detectors = {one for needs in NEEDED_BY.values() for detectors in needs.values() for one in detectors}
    assert detectors <= DETECTORS.keys()


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.parametrize("role", NEEDED_BY)
@pytest.mark.parametrize("metric", sorted(COLUMNS.keys() - OPTIONAL))
def test_who_needs_a_metric(module_warehouse: sa.Engine, role: str, metric: str) -> None:
    needing = [id_ for id_ in sorted(CASES_OF) if _share_that_fires(module_warehouse, id_, role, metric) <= FEW]
    assert tuple(needing) == NEEDED_BY[role].get(metric, ())


def _share_that_fires(warehouse: sa.Engine, id_: str, role: str, metric: str) -> float:
    """Of a detector's firing cases that give the metric: those in which it fires without it; 1 of none."""
    outcomes = [
        any(
            f.status == "firing" and {f.resource_name, f.resource.key} & firing
            for f in evaluate_case(warehouse, detector, one)
        )
        for detector in (DETECTORS[id_],)
        for case in CASES_OF[id_]
        if (firing := _firing(id_, case)) and (one := without(case, role, metric))
    ]
    return sum(outcomes) / len(outcomes) if outcomes else 1


def _firing(id_: str, case: Case) -> set[str]:
    verdicts = DETECTORS[id_].verdicts
    return {
        row.get("resource") or row["resource_name"]
        for row in case["expect"]
        if row.get("reason") in verdicts and verdicts[row["reason"]].status == "firing"
    }
