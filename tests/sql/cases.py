"""Cases of a detector (tests/sql/detectors/<subject>/<id>.yaml): given rows, and the expected findings.
`affected_count` is the number of affected resources.

A row with `over` stands for one row per hour: `over: {hours: 168, until: -1, rise: {log_bytes: 5}, cycle: {threads:
[0, 9]}}` is a week that ends one hour before the evaluated hour. Without `until` it ends with the evaluated hour. The
values are those of the last hour; `rise` is the increase per hour, and `cycle` adds its values in turn from the first
hour on. With `days` instead of `hours` there is one row per day at the evaluated hour, and `until` counts days.
`every: {column: began_at, minutes: 9, times: 6, after: 2}` stands for six rows within the hour, the first of them two
minutes after its start. A list in a row, such as `partition: [0, 1]`, stands for one row per value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from streamwarden.base.config import Config
from streamwarden.detectors import Detector, Finding, findings, load_detectors
from streamwarden.detectors.load import ParameterValue

from tests.sql.rows import HOUR, insert_rows

FOLDER = Path(__file__).parent / "detectors"
Case = dict[str, Any]


def file_of(detector: Detector) -> Path:
    """The file with the detector's cases, whether or not it exists."""
    return FOLDER / detector.subject / f"{detector.id}.yaml"


def read_cases(file: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        ValueError: the file is not valid YAML, or not a list of cases with `name`, `given`, and `expect`.
    """
    try:
        cases = yaml.load(file.read_text(), yaml.CSafeLoader)  # ten times as fast as SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: {error}") from None
    if not isinstance(cases, list) or not all(
        isinstance(c, dict) and {"name", "given", "expect"} <= set(c) for c in cases
    ):
        raise ValueError(f"{file}: not a list of cases with name, given, and expect")
    return cases


def readable(files: dict[str, Path]) -> tuple[dict[str, list[Case]], dict[str, str]]:
    """Cases by detector id, and the error of each file that cannot be read. A broken file does not stop the others."""
    cases: dict[str, list[Case]] = {}
    broken: dict[str, str] = {}
    for id_, file in files.items():
        try:
            cases[id_] = read_cases(file)
        except ValueError as error:
            broken[id_] = str(error)
    return cases, broken


DETECTORS = load_detectors()
CASES_OF, BROKEN = readable({one.id: file_of(one) for one in DETECTORS.values() if file_of(one).exists()})


def hour_of(case: Case) -> datetime:
    """The hour for which the case is evaluated."""
    return case.get("hour", HOUR)


def params_of(detector: Detector, case: Case) -> dict[str, ParameterValue]:
    """The detector's parameters, with those of the case."""
    return detector.params_in_force(Config()) | case.get("params", {})


def insert_given(connection: sa.Connection, case: Case) -> None:
    """Inserts the rows of a case in the open transaction."""
    unknown = set(case) - {"name", "given", "params", "hour", "expect"}
    assert not unknown, f"unknown keys in the case: {unknown}"
    hour = hour_of(case)
    given = [(table, one) for table, rows in case["given"].items() for row in rows or [] for one in _each(row, hour)]
    for table, rows in groupby(given, itemgetter(0)):
        insert_rows(connection, table, (row for _, row in rows))


def _each(row: dict[str, Any], hour: datetime) -> Iterator[dict[str, Any]]:
    """The rows that one row of a case stands for."""
    lists = {column: value for column, value in row.items() if isinstance(value, list)}
    for values in product(*lists.values()):
        yield from _in_time(row | dict(zip(lists, values, strict=True)), hour)


def _in_time(row: dict[str, Any], hour: datetime) -> Iterator[dict[str, Any]]:
    over = row.get("over")
    if every := row.get("every"):
        plain = {column: value for column, value in row.items() if column != "every"}
        for n in range(every["times"]):
            yield {
                "hour": hour,
                **plain,
                every["column"]: hour + timedelta(minutes=every.get("after", 0) + n * every["minutes"]),
            }
    elif over is None:
        yield {"hour": hour, **row}
    else:
        yield from _over(row, over, hour)


def _over(row: dict[str, Any], over: dict[str, Any], hour: datetime) -> Iterator[dict[str, Any]]:
    plain = {column: value for column, value in row.items() if column != "over"}
    step, rows = (timedelta(days=1), over["days"]) if "days" in over else (timedelta(hours=1), over["hours"])
    for n in range(rows):
        before = rows - 1 - n
        one = dict(plain, hour=hour + step * (over.get("until", 0) - before))
        for column, amount in over.get("rise", {}).items():
            if plain[column] is not None:
                one[column] = plain[column] - before * amount
        for column, amounts in over.get("cycle", {}).items():
            if one[column] is not None:
                one[column] += amounts[n % len(amounts)]
        yield one


def evaluate_case(warehouse: sa.Engine, detector: Detector, case: Case) -> list[Finding]:
    """The detector's findings for the rows of a case, in a transaction that is rolled back."""
    with warehouse.connect() as connection, connection.begin() as transaction:
        insert_given(connection, case)
        found = findings(connection, detector, hour_of(case), Config(), params_of(detector, case))
        transaction.rollback()
    return found


def unmet(found: list[Finding], case: Case) -> Iterator[str]:
    """Differences from the expectations of a case. A row names its resource by `resource` (key) or `resource_name`."""
    by_name = {name: finding for finding in found for name in (finding.resource_name, finding.resource.key)}
    expected = {row.get("resource") or row["resource_name"]: row for row in case["expect"]}
    if len(found) != len(expected) or (set(expected) - set(by_name)):
        yield f"expected: {sorted(expected)}, found: {sorted(finding.resource_name for finding in found)}"
        return
    for name, row in expected.items():
        finding = by_name[name]
        for column, value in row.items():
            got = _value(finding, column)
            if column.endswith("~"):
                fits = bool(re.search(value, got))
            elif isinstance(value, float):
                fits = got is not None and float(got) == pytest.approx(value, rel=1e-3)
            else:
                fits = got == value
            if not fits:
                yield f"{name}: {column} is {got!r}, not {value!r} ({finding.reason}: {finding.message})"


def _value(finding: Finding, column: str) -> Any:
    if column == "resource":
        return finding.resource.key
    if column in ("affected", "commands"):
        return list(getattr(finding, column))
    if column == "affected_count":
        return len(finding.affected)
    if column in ("details~", "actions~"):
        return "\n".join(getattr(finding, column.removesuffix("~")))
    if column in ("message~", "impact~", "resource_name", "reason", "status", "severity", "is_not_applicable"):
        return getattr(finding, column.removesuffix("~"))
    return finding.metrics[column]
