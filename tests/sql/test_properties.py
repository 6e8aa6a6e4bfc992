"""What holds for every detector whatever its rule, tried on its own cases with something about them changed.

A gap never turns alarm or skip into ok: each measured figure of a case that isn't fine is taken away in turn. Another
cluster, or account, beside it changes no verdict. Draws are seeded: a failure comes again.
"""

from __future__ import annotations

import copy
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.detectors import Detector

from tests.sql.cases import CASES_OF, DETECTORS, judged

DRAWS = int(os.environ.get("DRAWS", "4"))
"""Of each detector's gaps and of its cases; `make mutants` draws more."""
CANT_HOLD = {
    # Most machines have no agent: then the JVMs that are known tell. To skip them all would judge none, and a case of
    # one hour can't show that there was an agent.
    ("app_memory_heavy", "metrics.instance_hourly.memory_used_mean_percent"),
    # Of an hour gone by, in which there were fewer; or the only figure that tells of stores at all, of a process that
    # isn't known to be a Streams application (of one that is, the changelogs tell).
    ("app_memory_heavy", "metrics.jvm_app_hourly.store_instances"),
    # Of an hour gone by that was slow: with one fewer the knee isn't learnt, and what is said of all brokers counts.
    ("broker_requests_high", "metrics.broker_hourly.produce_p99_ms"),
    # Of the only hours gone by that had more threads: nothing else remembers them.
    ("stream_threads_dead", "metrics.jvm_app_hourly.stream_threads_alive"),
}
"""Gaps that make something fine because nothing is left that says otherwise, each with the reason."""
SCOPES = ("cluster", "account")
OWN = ("instance_id", "volume_id", "endpoint", "instance_group", "scaling_group")
"""Names that no two clusters or accounts share."""


def verdicts_of(warehouse: sa.Engine, detector: Detector, case: dict[str, Any]) -> dict[str, str]:
    """Status by key, and by resource where no other has its name, of a case's rows."""
    found = judged(warehouse, detector, case)
    times = Counter(finding.resource_name for finding in found)
    named = {finding.resource_name: finding.status for finding in found if times[finding.resource_name] == 1}
    return named | {finding.resource.key: finding.status for finding in found}


def _cases(detector: Detector) -> list[dict[str, Any]]:
    return [case for case in CASES_OF[detector.id] if case["expect"]]


def _gaps(detector: Detector) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Cases that aren't fine with one measured figure less: which figure, the case, and whose verdict must hold."""
    for case in _cases(detector):
        bad = [
            row.get("resource") or row["resource_name"]
            for row in case["expect"]
            if detector.verdicts[row["reason"]].status != "ok"
        ]
        for table, rows in case["given"].items():
            for n, row in enumerate(rows or []):
                for column, value in row.items():
                    if table.startswith("metrics.") and isinstance(value, float | int) and not isinstance(value, bool):
                        for resource_name in bad:
                            less = copy.deepcopy(case)
                            less["given"][table][n][column] = None
                            yield f"{case['name']}: {table}.{column} [{n}]", less, resource_name


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_a_gap_never_makes_it_fine(module_warehouse: sa.Engine, detector: Detector) -> None:
    gaps = list(_gaps(detector))
    chosen = random.Random(5).sample(gaps, min(DRAWS, len(gaps)))  # noqa: S311 a simulation
    wrong = []
    for name, case, resource_name in chosen:
        try:
            verdicts = verdicts_of(module_warehouse, detector, case)
        except sa.exc.IntegrityError:
            continue  # the table doesn't allow this gap
        metric = name.rsplit(": ", 1)[1].split(" ")[0]
        if verdicts.get(resource_name) == "ok" and (detector.id, metric) not in CANT_HOLD:
            wrong.append(name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_another_cluster_or_account_beside_it_changes_nothing(module_warehouse: sa.Engine, detector: Detector) -> None:
    cases = _cases(detector)
    for case in random.Random(7).sample(cases, min(DRAWS, len(cases))):  # noqa: S311 a simulation
        alone = verdicts_of(module_warehouse, detector, case)
        both = verdicts_of(module_warehouse, detector, _with_another(module_warehouse, case))
        assert {resource_name: both[resource_name] for resource_name in alone} == alone, case["name"]


def _another(name: str | list[str]) -> str | list[str]:
    """A row of a case may stand for one in each of several clusters."""
    return [f"another {one}" for one in name] if isinstance(name, list) else f"another {name}"


def _with_another(warehouse: sa.Engine, case: dict[str, Any]) -> dict[str, Any]:
    """The case's rows twice: as they are, and with every cluster and account called another."""
    inspector = sa.inspect(warehouse)
    given: dict[str, list[dict[str, Any]]] = {}
    for table, rows in case["given"].items():
        schema, relation = table.split(".")
        columns = {column["name"] for column in inspector.get_columns(relation, schema=schema)}
        scopes = [column for column in SCOPES if column in columns]
        given[table] = list(rows or [])
        for row in list(given[table]) if scopes else []:
            scope = {column: _another(row.get(column, "")) for column in scopes}
            own = {column: f"{row[column]}x" for column in OWN if row.get(column)}
            given[table].append(row | scope | own)
    return case | {"given": given}
