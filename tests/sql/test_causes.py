"""Causes of findings (tests/sql/causes/*.yaml): a fleet, findings in alarm or well, and which follows from which.

A list in a row stands for one row each: `partition: [0, 1]`, `group:c/[g1, g2]`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from streamwarden.causes import find_causes, weigh
from streamwarden.detectors import Finding, load_detectors
from streamwarden.detectors.evaluate import store_findings
from streamwarden.detectors.mechanisms import Mechanism
from streamwarden.detectors.resources import KINDS, Resource

from tests.sql.rows import HOUR, insert_row

MANY = "broker_partitions_too_many"
FILES = sorted((Path(__file__).parent / "causes").glob("*.yaml"))
DETECTORS = load_detectors()
CASES = [
    pytest.param(file.get("fleet", {}), case, id=f"{path.stem}: {case['name']}")
    for path in FILES
    for file in [yaml.load(path.read_text(), yaml.CSafeLoader)]
    for case in file["cases"]
]


@pytest.mark.parametrize(("fleet", "case"), CASES)
def test_a_case_of_causes(module_warehouse: sa.Engine, fleet: dict[str, Any], case: dict[str, Any]) -> None:
    unknown = set(case) - {"name", "given", "without", "firing", "wells", "expect"}
    assert not unknown, f"unknown keys in the case: {unknown}"
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        tables = {table: rows for table, rows in fleet.items() if table not in case.get("without", ())}
        for given in (tables, case.get("given", {})):
            for table, rows in given.items():
                for row in (one for many in rows for one in each(many)):
                    connection.execute(sa.text("select public.ensure_day(:day)"), {"day": row.get("hour", HOUR).date()})
                    insert_row(connection, table, {"hour": HOUR, **row})
        resources = {}
        for status, wanted in (("firing", case.get("firing", ())), ("ok", case.get("wells", ()))):
            for said in (one for many in wanted for one in each(many)):
                resources[store(connection, said, status)] = said["resource"]
        found = {(resources[c.effect], resources[c.cause]): c for c in weigh(connection, DETECTORS, HOUR)}
        transaction.rollback()
    keys = {"effect", "cause", "accepted", "strength", "message"}
    assert all(set(row) <= keys for row in case["expect"])
    expected = {(row["effect"], row["cause"]): row for row in case["expect"]}
    assert set(found) == set(expected)
    for pair, row in expected.items():
        cause = found[pair]
        assert (round(cause.strength, 2), cause.is_accepted) == (row["strength"], row["accepted"]), cause
        assert cause.message == row.get("message", cause.message)


def each(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows that one with lists stands for; lists of partitions that are hit are meant as such."""
    row = dict(row)
    if named := re.match(r"(.*)\[(.*)\]$", row.get("resource", "")):
        row["resource"] = [named[1] + one for one in named[2].split(", ")]
    lists = {column: value for column, value in row.items() if isinstance(value, list) and column != "affected"}
    for values in itertools.product(*lists.values()):
        yield row | dict(zip(lists, values, strict=True))


def store(connection: sa.Connection, said: dict[str, Any], status: str) -> str:
    """Stores a finding of as many hours as it says; returns its fingerprint."""
    kind, _, parts = said["resource"].partition(":")
    resource = Resource(kind, dict(zip(KINDS[kind], parts.split("/"), strict=True)), parts)
    spots = [one.rpartition("-") for one in said.get("affected", ())]
    affected = tuple({"topic": topic, "partition": int(partition)} for topic, _, partition in spots)
    last = HOUR + timedelta(hours=said.get("until", 0))
    reasons = [said.get("reason", "fine")] * said.get("hours", 1)
    if before := said.get("before"):
        reasons += [before["reason"]] * before["hours"]
    for number, reason in enumerate(reasons):
        finding = Finding(
            said["of"], resource, reason, status, "warning" if status == "firing" else None,  # type: ignore[arg-type]
            said.get("metrics", {}), "So it is.", affected=affected,
        )  # fmt: skip
        store_findings(connection, [finding], last - timedelta(hours=number), HOUR)
    return finding.fingerprint


def test_an_hour_weighed_again_gives_the_same(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        for resource, of, reason in (
            ("cluster:c", "topic_overpartitioned", "overpartitioned"),
            ("cluster:c", MANY, "many"),
        ):
            store(connection, {"of": of, "resource": resource, "reason": reason}, "firing")
    for _ in range(2):
        assert find_causes(warehouse, DETECTORS, HOUR) == "0 findings follow from others, 1 may, 0 pairs ruled out"
        with warehouse.connect() as connection:
            rows = connection.execute(sa.text("select hour, mechanism, strength, message from detect.cause")).all()
        assert rows == [(HOUR, "waste_adds_partitions", 0.59, "partitions that nobody needs are counted among them")]
    assert find_causes(warehouse, DETECTORS, HOUR - timedelta(days=1)).startswith("0 findings follow")


def test_a_circle_is_cut_at_what_began_first(module_warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    there_and_back = {name: Mechanism(path=("broker",), parts="resource", message="so") for name in ("there", "back")}
    monkeypatch.setattr("streamwarden.causes.weighing.mechanisms", lambda: there_and_back)
    slow, flushes = DETECTORS["broker_slow"], DETECTORS["log_flush_slow"]
    detectors = {
        slow.id: replace(slow, causes={"there": ("clients_affected",)}, caused_by={"back": ("clients_affected",)}),
        flushes.id: replace(flushes, causes={"back": ("slow",)}, caused_by={"there": ("slow",)}),
    }
    with module_warehouse.connect() as connection, connection.begin() as transaction:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        store(connection, {"of": slow.id, "resource": "broker:c/1", "reason": "clients_affected"}, "firing")
        first = store(connection, {"of": flushes.id, "resource": "broker:c/1", "reason": "slow", "hours": 2}, "firing")
        found = weigh(connection, detectors, HOUR)
        transaction.rollback()
    assert {cause.effect == first: cause.is_accepted for cause in found} == {False: True, True: False}
