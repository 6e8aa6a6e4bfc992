"""Cases of causes (tests/sql/causes/*.yaml): a fleet, findings that fire or are ok, and the expected causes.

A list in a row stands for one row each: `partition: [0, 1]`, `group:c/[g1, g2]`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml
from streamwarden.base.config import Config
from streamwarden.causes import Cause, rule, weigh
from streamwarden.detectors import Finding, load_detectors
from streamwarden.detectors.resources import KINDS, Resource
from streamwarden.detectors.results import store_findings

from tests.sql.rows import HOUR, insert_row

FILES = sorted((Path(__file__).parent / "causes").glob("*.yaml"))
DETECTORS = load_detectors()
_KEYS = {"name", "params", "given", "without", "firing", "ok", "expect"}
_EXPECTED_KEYS = {"effect", "cause", "accepted", "strength", "message", "mechanism", "metrics"}


@dataclass(frozen=True)
class CauseCase:
    """One case, with the fleet of its file."""

    id: str
    fleet: Mapping[str, Any]
    case: Mapping[str, Any]

    def insert(self, connection: sa.Connection) -> dict[str, str]:
        """Inserts the fleet and the findings. Returns resource keys by fingerprint."""
        unknown = set(self.case) - _KEYS | {key for row in self.case["expect"] for key in set(row) - _EXPECTED_KEYS}
        assert not unknown, f"unknown keys in the case: {unknown}"
        tables = {table: rows for table, rows in self.fleet.items() if table not in self.case.get("without", ())}
        for given in (tables, self.case.get("given", {})):
            for table, rows in given.items():
                for row in (one for many in rows for one in each(many)):
                    insert_row(connection, table, {"hour": HOUR, **row})
        resources = {}
        for status in ("firing", "ok"):
            for finding in (one for many in self.case.get(status, ()) for one in each(many)):
                resources[store(connection, finding, status)] = finding["resource"]
        return resources

    def weigh(self, connection: sa.Connection, sql: str | None = None) -> list[Cause]:
        """The weighed causes of the case's hour; `sql` replaces the query."""
        config = Config.model_validate({"causes": {"params": self.case.get("params", {})}})
        return weigh(connection, DETECTORS, HOUR, rule.params_in_force(config), sql=sql)

    def unmet(self, found: list[Cause], resources: Mapping[str, str]) -> str | None:
        """The first difference from the expectation; None if there is none."""
        by_pair = {(resources[cause.effect], resources[cause.cause]): cause for cause in found}
        expected = {(row["effect"], row["cause"]): row for row in self.case["expect"]}
        if set(by_pair) != set(expected):
            return f"pairs: {sorted(by_pair)}, expected: {sorted(expected)}"
        for pair, row in expected.items():
            cause = by_pair[pair]
            got = {
                "accepted": cause.is_accepted, "strength": round(cause.strength, 2), "message": cause.message,
                "mechanism": cause.mechanism, "metrics": cause.metrics,
            }  # fmt: skip
            if wrong := {key: got[key] for key in got if key in row and got[key] != row[key]}:
                return f"{pair}: {wrong}"
            if cause.is_possible != (cause.strength >= 0.3):
                return f"{pair}: is_possible is {cause.is_possible} at {cause.strength}"
        return None


def each(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows that one row with lists stands for; `affected` remains a list."""
    row = dict(row)
    if named := re.match(r"(.*)\[(.*)\]$", row.get("resource", "")):
        row["resource"] = [named[1] + one for one in named[2].split(", ")]
    lists = {column: value for column, value in row.items() if isinstance(value, list) and column != "affected"}
    for values in itertools.product(*lists.values()):
        yield row | dict(zip(lists, values, strict=True))


def store(connection: sa.Connection, wanted: dict[str, Any], status: str) -> str:
    """Stores a finding for each of its hours; returns its fingerprint."""
    kind, _, parts = wanted["resource"].partition(":")
    resource = Resource(kind, dict(zip(KINDS[kind], parts.split("/"), strict=True)), parts)
    partitions = [one.rpartition("-") for one in wanted.get("affected", ())]
    affected = tuple({"topic": topic, "partition": int(partition)} for topic, _, partition in partitions)
    last = HOUR + timedelta(hours=wanted.get("until", 0))
    reasons = [wanted.get("reason", "fine")] * wanted.get("hours", 1)
    if before := wanted.get("before"):
        reasons += [before["reason"]] * before["hours"]
    for number, reason in enumerate(reasons):
        finding = Finding(
            wanted["of"], resource, reason, status, "warning" if status == "firing" else None,  # type: ignore[arg-type]
            wanted.get("metrics", {}), "So it is.", affected=affected,
        )  # fmt: skip
        at = last - timedelta(hours=number)
        store_findings(connection, [finding], at, HOUR)
    return finding.fingerprint


CASES = [
    CauseCase(f"{path.stem}: {case['name']}", file.get("fleet", {}), case)
    for path in FILES
    for file in [yaml.load(path.read_text(), yaml.CSafeLoader)]
    for case in file["cases"]
]
