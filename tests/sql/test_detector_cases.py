"""Every detector against its own cases (tests/sql/detectors/<subject>/<id>.yaml), each in a rolled-back transaction."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from streamwarden.base.config import Config
from streamwarden.detectors import Detector, Finding, findings, load_detectors

from tests.sql.rows import insert_row

CASES = Path(__file__).parent / "detectors"
HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
DETECTORS = load_detectors()


def _file_of(detector: Detector) -> Path:
    return CASES / detector.subject / f"{detector.id}.yaml"


CASES_OF = {
    detector.id: yaml.load(_file_of(detector).read_text(), yaml.CSafeLoader)  # a tenth of the pure Python's time
    for detector in DETECTORS.values()
    if _file_of(detector).exists()
}
CASE_PARAMS = [
    pytest.param(DETECTORS[id_], case, id=f"{id_}: {case['name']}") for id_, cases in CASES_OF.items() for case in cases
]


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_each_sentence_of_a_detector_has_a_case(detector: Detector) -> None:
    assert detector.id in CASES_OF, f"{detector.id} has no cases: write {_file_of(detector)}"
    expected = {row["because"] for case in CASES_OF[detector.id] for row in case["expect"] if "because" in row}
    assert set(detector.says) <= expected, f"no case for {sorted(set(detector.says) - expected)}"
    assert {case.status for case in detector.says.values()} == {"alarm", "ok", "skip"}


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_a_case_has_two_clusters_at_once_that_fare_differently(detector: Detector) -> None:
    assert any(_fare_differently(detector, case) for case in CASES_OF[detector.id]), (
        f"{_file_of(detector)}: a rule that mixes up two {detector.identity[0]}s would pass all cases"
    )


def _fare_differently(detector: Detector, case: dict[str, Any]) -> bool:
    scope = detector.identity[0]  # cluster or account
    scopes = {row[scope] for rows in case["given"].values() for row in rows or [] if scope in row}
    return len(scopes) > 1 and len({row.get("because") for row in case["expect"]}) > 1


def test_no_cases_without_a_detector() -> None:
    files = {f"{file.parent.name}/{file.stem}" for file in CASES.glob("*/*.yaml")}
    assert files <= {f"{detector.subject}/{detector.id}" for detector in DETECTORS.values()}


@pytest.mark.parametrize(("detector", "case"), CASE_PARAMS)
def test_case(module_warehouse: sa.Engine, detector: Detector, case: dict[str, Any]) -> None:
    found = judged(module_warehouse, detector, case)
    got = {finding.resource: finding for finding in found}
    expected = {row["resource"]: row for row in case["expect"]}
    assert set(got) == set(expected), f"resources: {sorted(got)}"
    for resource, row in expected.items():
        for column, value in row.items():
            _check(got[resource], column, value)


def judged(warehouse: sa.Engine, detector: Detector, case: dict[str, Any]) -> list[Finding]:
    """What the detector says of a case's rows, in a transaction that is rolled back."""
    unknown = set(case) - {"name", "given", "params", "hour", "expect"}
    assert not unknown, f"unknown keys in the case: {unknown}"
    hour = case.get("hour", HOUR)
    params = detector.params_in_force(Config()) | case.get("params", {})
    with warehouse.connect() as connection, connection.begin() as transaction:
        for day in (hour - timedelta(days=1), hour, hour + timedelta(days=1)):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day.date()})
        for table, rows in case["given"].items():
            for row in rows or []:
                insert_row(connection, table, {"hour": hour, **row})
        found = findings(connection, detector, hour, Config(), params)
        transaction.rollback()
    return found


def _check(finding: Finding, column: str, value: Any) -> None:
    who = f"{finding.resource}: {column} ({finding.because}: {finding.reason})"
    if column in ("reason~", "cure~"):
        text = finding.reason if column == "reason~" else finding.cure
        assert re.search(value, text), f"{who}: {text!r}"
    elif column in ("resource", "because", "status", "severity", "nothing_to_judge"):
        assert getattr(finding, column) == value, f"{who} is {getattr(finding, column)!r}"
    elif column == "affected":
        assert list(finding.affected) == value, f"{who} is {finding.affected!r}"
    elif isinstance(value, float):
        assert finding.figures[column] is not None, f"{who} is null"
        assert float(finding.figures[column]) == pytest.approx(value, rel=1e-3), who
    else:
        assert finding.figures[column] == value, f"{who} is {finding.figures[column]!r}"
