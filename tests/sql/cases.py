"""A detector's cases (tests/sql/detectors/<subject>/<id>.yaml): rows that are given, and what the detector must say.

A row with `over` stands for many, one an hour: `over: {hours: 168, until: -1, rise: {log_bytes: 5}, cycle: {threads:
[0, 9]}}` is a week that ends with the hour before the judged one (without `until`: with the judged one). Its figures
are those of the last hour but for what they rise by each hour, and for what a cycle, from the first hour on, adds. With
`days` instead of `hours` it's a row a day, at the judged hour, and `until` counts days. `every: {column: began_at,
minutes: 9, times: 6, after: 2}` stands for as many within the hour, the first two minutes after its start. A list in a
row, `partition: [0, 1]`, stands for one row each.
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
    return FOLDER / detector.subject / f"{detector.id}.yaml"


def read_cases(file: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        ValueError: no YAML, or not a list of cases with `name`, `given`, and `expect`; names the file.
    """
    try:
        cases = yaml.load(file.read_text(), yaml.CSafeLoader)  # a tenth of the pure Python's time
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: {error}") from None
    if not isinstance(cases, list) or not all(
        isinstance(c, dict) and {"name", "given", "expect"} <= set(c) for c in cases
    ):
        raise ValueError(f"{file}: not a list of cases with name, given, and expect")
    return cases


def readable(files: dict[str, Path]) -> tuple[dict[str, list[Case]], dict[str, str]]:
    """Cases by detector, and why a file cannot be read: a broken one does not stop the others."""
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
    return case.get("hour", HOUR)


def params_of(detector: Detector, case: Case) -> dict[str, ParameterValue]:
    return detector.params_in_force(Config()) | case.get("params", {})


def insert_given(connection: sa.Connection, case: Case) -> None:
    """A case's rows, in the open transaction."""
    unknown = set(case) - {"name", "given", "params", "hour", "expect"}
    assert not unknown, f"unknown keys in the case: {unknown}"
    hour = hour_of(case)
    given = [(table, one) for table, rows in case["given"].items() for row in rows or [] for one in _each(row, hour)]
    sampled = [row["hour"] for table, row in given if table.endswith("_sample")]  # others take rows of any month
    days = {at.date() for at in sampled if isinstance(at, datetime)}
    days |= {hour.date() + timedelta(days=n) for n in (-1, 0, 1) if sampled and hour != HOUR}
    for day in sorted(days):
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day})
    for table, rows in groupby(given, itemgetter(0)):
        insert_rows(connection, table, (row for _, row in rows))


def _each(row: dict[str, Any], hour: datetime) -> Iterator[dict[str, Any]]:
    """The rows that a row of a case stands for."""
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


def judged(warehouse: sa.Engine, detector: Detector, case: Case) -> list[Finding]:
    """What the detector says of a case's rows, in a transaction that is rolled back."""
    with warehouse.connect() as connection, connection.begin() as transaction:
        insert_given(connection, case)
        found = findings(connection, detector, hour_of(case), Config(), params_of(detector, case))
        transaction.rollback()
    return found


def unmet(found: list[Finding], case: Case) -> Iterator[str]:
    """What the case expects and isn't so. A row names its thing by `thing`, the key, or by `resource`, the name."""
    by_name = {name: finding for finding in found for name in (finding.resource_name, finding.resource.key)}
    expected = {row.get("resource") or row["resource_name"]: row for row in case["expect"]}
    if len(found) != len(expected) or (set(expected) - set(by_name)):
        yield f"it expects {sorted(expected)}, found are {sorted(finding.resource_name for finding in found)}"
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
    if column in ("details~", "actions~"):
        return "\n".join(getattr(finding, column.removesuffix("~")))
    if column in ("message~", "impact~", "resource_name", "reason", "status", "severity", "is_not_applicable"):
        return getattr(finding, column.removesuffix("~"))
    return finding.metrics[column]
