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
from streamwarden.detectors import Detector, load_detectors
from streamwarden.detectors.evaluate import run

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
def test_each_detector_has_an_alarm_an_ok_and_a_skip(detector: Detector) -> None:
    assert detector.id in CASES_OF, f"{detector.id} has no cases: write {_file_of(detector)}"
    assert {row["status"] for case in CASES_OF[detector.id] for row in case["expect"]} == {"alarm", "ok", "skip"}


def test_no_cases_without_a_detector() -> None:
    files = {f"{file.parent.name}/{file.stem}" for file in CASES.glob("*/*.yaml")}
    assert files <= {f"{detector.subject}/{detector.id}" for detector in DETECTORS.values()}


@pytest.mark.parametrize(("detector", "case"), CASE_PARAMS)
def test_case(module_warehouse: sa.Engine, detector: Detector, case: dict[str, Any]) -> None:
    unknown = set(case) - {"name", "given", "params", "hour", "expect"}
    assert not unknown, f"unknown keys in the case: {unknown}"
    hour = case.get("hour", HOUR)
    params = detector.params_in_force(Config()) | case.get("params", {})
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        for day in (hour - timedelta(days=1), hour, hour + timedelta(days=1)):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day.date()})
        for table, rows in case["given"].items():
            for row in rows or []:
                insert_row(connection, table, {"hour": hour, **row})
        got = {row["resource"]: row for row in run(connection, detector, hour, params)}
        transaction.rollback()
    expected = {row["resource"]: row for row in case["expect"]}
    assert set(got) == set(expected), f"resources: {sorted(got)}"
    for resource, row in expected.items():
        for column, value in row.items():
            _check(got[resource], column, value)


def _check(row: sa.RowMapping, column: str, value: Any) -> None:
    if column == "reason~":
        assert re.search(value, row["reason"]), f"{row['resource']}: reason is {row['reason']!r}"
    elif isinstance(value, float):
        assert row[column] is not None, f"{row['resource']}: {column} is null; reason: {row['reason']}"
        assert float(row[column]) == pytest.approx(value, rel=1e-3), f"{row['resource']}: {column}"
    else:
        assert row[column] == value, f"{row['resource']}: {column} is {row[column]!r}; reason: {row['reason']}"
