"""Properties of every detector, tested on changed copies of its own cases.

Missing data never turns firing or unknown into ok: each metric of such a case is set to null in turn. Another
cluster or account next to it changes no verdict. Draws are seeded, so a failure can be repeated.
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

from tests.sql.cases import CASES_OF, DETECTORS, evaluate_case

DRAWS = [2, pytest.param(int(os.environ.get("DRAWS", "8")), marks=pytest.mark.rare)]
"""Number of missing values and of cases drawn for each detector; `make mutants` draws more."""
EXCEPTIONS = {
    # Most hosts have no CloudWatch agent, so the memory of the known JVMs is used. Without it no process could be
    # evaluated, and a case of one hour cannot show that there was an agent.
    ("app_memory_heavy", "metrics.instance_hourly.memory_used_mean_percent"),
    # The value of an earlier hour with fewer stores, or the only sign of stores in a process without a known
    # application id. With an application id, the changelogs show the stores.
    ("app_memory_heavy", "metrics.jvm_app_hourly.store_instances"),
    # The value of an earlier slow hour: with one hour less no capacity is learned, and the default applies.
    ("broker_requests_high", "metrics.broker_hourly.produce_p99_ms"),
    # The leader of the only moving partition of a slow broker: without a leader, that broker copies nothing for it.
    ("reassignment_impact", "metrics.partition_hourly.leader"),
    # The value of the only earlier hours with more threads: no other table keeps the thread count.
    ("stream_threads_dead", "metrics.jvm_app_hourly.stream_threads_alive"),
    # Null means that there is none: no limit of its own, no registered schema, no bucket, a bucket that refills, a lag
    # that is exact.
    ("app_memory_heavy", "metrics.jvm_app_hourly.memory_limit_bytes"),
    ("state_store_schema_drift", "metrics.state_store_change_hourly.old_schema_id"),
    ("ebs_volume_starving", "metrics.volume_hourly.bucket_credits"),
    ("ebs_volume_starving", "metrics.volume_hourly.hours_to_exhaustion"),
    ("consumer_group_lagging", "metrics.consumer_partition_hourly.lag_seconds_low"),
    # Computed from the minutes that minutes_present counts: null only together with it.
    ("ebs_volume_starving", "metrics.volume_hourly.minutes_throttled"),
    ("ebs_volume_starving", "metrics.volume_hourly.minutes_draining"),
    ("ebs_volume_starving", "metrics.volume_hourly.burst_balance_last_percent"),
    ("ebs_volume_starving", "metrics.volume_hourly.iops_mean"),
    ("ebs_volume_starving", "metrics.volume_hourly.iops_now"),
    ("ebs_volume_starving", "metrics.volume_hourly.hours_to_exhaustion_low"),
    ("ebs_volume_starving", "metrics.volume_hourly.credits_per_hour"),
    ("ebs_volume_starving", "metrics.volume_hourly.burst_iops"),
    # One of several data points of the hour: the others show the trend, or it is unknown in this hour.
    ("ebs_volume_starving", "metrics.instance_sample.ebs_byte_balance_percent"),
    ("ebs_volume_starving", "metrics.instance_sample.ebs_io_balance_percent"),
    # Exporters may omit it, and the other limits of the detector hold without it: the memory, and the lag limit.
    ("app_memory_heavy", "metrics.jvm_app_hourly.gc_seconds"),
    ("app_memory_heavy", "metrics.jvm_app_hourly.heap_survived_bytes"),
    ("consumer_group_lagging", "metrics.consumer_partition_hourly.still_seconds"),
    # Without members one commit gap counts instead of three, so the group is reported later.
    ("consumer_group_lagging", "metrics.consumer_group_hourly.members"),
    # Values of the day before: constants are compared only where a whole day is known.
    ("state_store_schema_drift", "metrics.state_store_hourly.values_profiled"),
}
"""Missing values that make a verdict ok because no other data shows the fault, each with the reason."""
SCOPES = ("cluster", "account")
OWN = ("instance_id", "volume_id", "endpoint", "instance_group", "scaling_group", "kubernetes")
"""Columns whose values no two clusters or accounts share."""


def verdicts_of(warehouse: sa.Engine, detector: Detector, case: dict[str, Any]) -> dict[str, str]:
    """Status of a case's resources by key, and by name where only one resource has that name."""
    found = evaluate_case(warehouse, detector, case)
    times = Counter(finding.resource_name for finding in found)
    named = {finding.resource_name: finding.status for finding in found if times[finding.resource_name] == 1}
    return named | {finding.resource.key: finding.status for finding in found}


def _cases(detector: Detector) -> list[dict[str, Any]]:
    return [case for case in CASES_OF[detector.id] if case["expect"]]


def _missing_values(detector: Detector) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Cases with a metric set to null: the metric, the case, and a resource that must not become ok."""
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


@pytest.mark.parametrize("draws", DRAWS, ids=["few", "many"])
@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_missing_data_never_gives_ok(module_warehouse: sa.Engine, detector: Detector, draws: int) -> None:
    gaps = list(_missing_values(detector))
    chosen = random.Random(5).sample(gaps, min(draws, len(gaps)))  # noqa: S311 a simulation
    wrong = []
    for name, case, resource_name in chosen:
        try:
            verdicts = verdicts_of(module_warehouse, detector, case)
        except sa.exc.IntegrityError:
            continue  # the column is not nullable
        metric = name.rsplit(": ", 1)[1].split(" ")[0]
        if verdicts.get(resource_name) == "ok" and (detector.id, metric) not in EXCEPTIONS:
            wrong.append(name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("draws", DRAWS, ids=["few", "many"])
@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_another_cluster_or_account_changes_no_verdict(
    module_warehouse: sa.Engine, detector: Detector, draws: int
) -> None:
    cases = _cases(detector)
    for case in random.Random(7).sample(cases, min(draws, len(cases))):  # noqa: S311 a simulation
        alone = verdicts_of(module_warehouse, detector, case)
        both = verdicts_of(module_warehouse, detector, _with_another(module_warehouse, case))
        assert {resource_name: both[resource_name] for resource_name in alone} == alone, case["name"]


def _another(name: str | list[str]) -> str | list[str]:
    """The name of another cluster or account; a list stands for several."""
    return [f"another {one}" for one in name] if isinstance(name, list) else f"another {name}"


def _with_another(warehouse: sa.Engine, case: dict[str, Any]) -> dict[str, Any]:
    """The case with its rows twice: as they are, and with other names of all clusters and accounts."""
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
