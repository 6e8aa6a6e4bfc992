"""Generates the SQL file and the test cases of a new detector, with the columns of its tables as comments.

The files are valid and the cases pass. Placeholders for the author's texts are in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.detectors.load import FOLDER, load_detectors
from streamwarden.detectors.resources import KINDS, resource_key
from streamwarden.store.dictionary import Column, dictionary

CASES = SQL.parent / "tests" / "sql" / "detectors"
_NUMBERS = ("double precision", "bigint", "integer")
"""Types of metrics, the most likely first."""
_EXAMPLES = {
    "cluster": "c", "account": "a", "region": "r", "volume_id": "vol-1", "instance_id": "i-1", "broker_id": "1",
    "endpoint": "e1", "topic": "t", "application_id": "app", "group_id": "g", "client_id": "reader",
}  # fmt: skip
_SEVERAL = ("endpoint", "broker_id", "topic", "group_id", "client_id")
"""Columns by which a table has several rows per resource."""
_OTHERS = {"cluster": "d", "account": "b"}


def new_detector(
    name: str, resource_kind: str, reads: Sequence[str], metric: str = "", folder: Path = FOLDER, cases: Path = CASES
) -> tuple[Path, Path]:
    """Writes the two files of a new detector and returns their paths.

    Args:
        name: subject/id.
        resource_kind: kind of the evaluated resources, a key of `KINDS`.
        reads: its tables; the first is selected from.
        metric: the numeric column to compare with a limit; empty: the first nullable one.

    Raises:
        StreamwardenError: name, kind, table, or metric is invalid, or a file exists already; one line.
    """
    subject, _, id_ = name.partition("/")
    if not re.fullmatch(r"[a-z][a-z_]*/[a-z][a-z0-9_]*", name):
        raise StreamwardenError(f"{name}: must be SUBJECT/ID in small letters, like brokers/broker_slow.")
    if resource_kind not in KINDS:
        raise StreamwardenError(f"--kind {resource_kind}: no kind of resource; there are: {', '.join(KINDS)}.")
    files = folder / subject / f"{id_}.sql", cases / subject / f"{id_}.yaml"
    if taken := next((file for file in files if file.exists()), None):
        raise StreamwardenError(f"{taken}: exists already; remove it, or choose another id.")
    if id_ in (known := load_detectors(folder, check=False)):
        raise StreamwardenError(f"{id_}: the id is taken by {known[id_].file}.")
    columns = _columns_of(reads)
    metric = _metric(resource_kind, reads[0], columns[reads[0]], metric)
    texts = _sql(resource_kind, columns, metric), _cases(resource_kind, reads[0], columns[reads[0]], metric)
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return files


def _columns_of(reads: Sequence[str]) -> dict[str, list[Column]]:
    if not reads:
        raise StreamwardenError("--reads: name at least one table, like metrics.broker_hourly.")
    known: dict[str, list[Column]] = {}
    for column in dictionary().columns:
        known.setdefault(column.relation, []).append(column)
    for table in reads:
        if table not in known:
            raise StreamwardenError(f"--reads {table}: no such table; docs/warehouse.md lists them.")
    return {table: known[table] for table in reads}


def _metric(kind: str, table: str, columns: list[Column], wanted: str) -> str:
    names = {column.name for column in columns}
    if missing := {"hour", *KINDS[kind]} - names:
        raise StreamwardenError(f"--reads {table}: has no {min(missing)}; name first a table of each {kind}'s hours.")
    numbers = [
        column.name
        for type_ in _NUMBERS
        for column in columns
        if column.type == type_ and column.nullable and not column.name.endswith("_id")
    ]
    if wanted and wanted not in numbers:
        raise StreamwardenError(f"--metric {wanted}: no such number in {table}; it has: {', '.join(numbers)}.")
    if not numbers:
        raise StreamwardenError(f"--reads {table}: has no number that may be missing; name first a table that has one.")
    return wanted or numbers[0]


def _sql(kind: str, columns: dict[str, list[Column]], metric: str) -> str:
    table, own = next(iter(columns.items()))
    names = {column.name for column in own}
    keys = {name: f"t.{name}" for name in KINDS[kind]}
    if kind == "broker" and "endpoint" in names:  # a broker that never responded has no id
        keys["broker_id"] = "coalesce(t.broker_id::text, t.endpoint)"
    selected = "".join(f"  {key if key == f't.{name}' else f'{key} as {name}'},\n" for name, key in keys.items())
    has_several = bool(_extra_keys(kind, own))
    value, missing = f"t.{metric}", f"t.{metric} is null"
    if has_several:
        value, missing = f"max(t.{metric})", f"count(t.{metric}) = 0"
    grouped = f"\ngroup by {', '.join(keys.values())}" if has_several else ""
    return f"""/*
title: SYMPTOM IN FOUR WORDS
resource_kind: {kind}
owner_role: WHO MAINTAINS THE DETECTOR
maturity: experimental
reads: [{", ".join(columns)}]
params:
  limit: {{default: 100, unit: THE UNIT, why: "WHY THIS VALUE AND NO OTHER, WITH ITS SOURCE"}}
description: |
  HOW IT DECIDES: what is compared with what, over how long, and when it is not evaluated.
key_metrics: [{metric}]
verdicts:
  above_limit:
    status: firing
    severity: warning
    message: "{{{{ name }}}}: THE METRIC is {{{{ {metric} }}}}, above its limit of {{{{ limit }}}}."
    impact: "WHAT HAPPENS TO WHOM IF NOTHING IS DONE."
    actions: ["RESTORE SERVICE.", "FIX THE CAUSE.", "PREVENT IT."]
    commands: ["echo A COMMAND, with --bootstrap-server {{{{ bootstrap_servers }}}} where it needs one"]
  within_limit:
    status: ok
    message: "{{{{ name }}}}: THE METRIC is {{{{ {metric} }}}}, within its limit of {{{{ limit }}}}."
  not_reported: {{status: unknown, message: "Not evaluated: THE SOURCE did not report THE METRIC."}}
open_after_hours: 1
clear_after_hours: 2
runbook: |
  ## Meaning
  WHAT IS MEASURED, AND WHAT THE LIMIT IS.
  ## Impact
  WHO NOTICES IT, AND HOW.
  ## Diagnosis
  1. WHERE TO LOOK FIRST, and what it means.
  ## Mitigation
  1. WHAT RESTORES SERVICE; then what fixes the cause.
limitations: |
  WHAT IT CANNOT SEE, and when it fires although nothing is wrong.
*/
-- One row per {kind}: the reason, its key, the metrics. Available columns:
{_available(columns)}select
  case
    when {missing} then 'not_reported'
    when {value} > :limit then 'above_limit'
    else 'within_limit'
  end as reason,
{selected}  {value}{f" as {metric}" if has_several else ""}
from {table} as t
where t.hour = :hour{grouped}
"""  # noqa: S608


def _available(columns: dict[str, list[Column]]) -> str:
    lines = []
    for table, of_table in columns.items():
        lines.append(f"-- {table}: {of_table[0].relation_comment}\n")
        lines += [f"--   {column.name}: {column.comment}\n" for column in of_table]
    return "".join(lines)


def _extra_keys(kind: str, columns: list[Column]) -> list[str]:
    """Key columns of a table beyond those of the resource: there may be several rows per resource."""
    return [c.name for c in columns if not c.nullable and c.name in _SEVERAL and c.name not in KINDS[kind]]


def _cases(kind: str, table: str, columns: list[Column], metric: str) -> str:
    extra = _extra_keys(kind, columns)
    here = {name: _EXAMPLES[name] for name in (*KINDS[kind], *extra)}
    other = {name: _OTHERS.get(name, value) for name, value in here.items()}

    def row(of: dict[str, str], value: str, hour: str = "") -> str:
        return "{" + hour + ", ".join(f"{name}: {text}" for name, text in of.items()) + f", {metric}: {value}}}"

    def expected(of: dict[str, str], reason: str, value: str) -> str:
        key = resource_key(kind, *(of[name] for name in KINDS[kind]))
        return f'    - {{resource: "{key}", reason: {reason}, {metric}: {value}}}\n'

    def case(name: str, given: Sequence[str], expect: Sequence[str]) -> str:
        rows = "".join(f"      - {one}\n" for one in given)
        # The case has a limit of its own, so that another default changes no case.
        return f"- name: {name}\n  params: {{limit: 100}}\n  given:\n    {table}:\n{rows}  expect:\n{''.join(expect)}"

    several = (
        [case("THE WORST OF SEVERAL ROWS", [row(here, "100"), row(here | {extra[0]: '"2"'}, "101")],
              [expected(here, "above_limit", "101.0")])]
        if extra else []
    )  # fmt: skip
    before, scope = "hour: 2026-01-05T09:00:00Z, ", KINDS[kind][0]
    return "".join(
        [
            "# A case for each verdict and for each line of the SQL. A row names only the columns that matter.\n"
            "# `make mutants ONLY=<id>` lists the changes of the SQL that no case notices.\n",
            case("ABOVE THE LIMIT", [row(here, "101")], [expected(here, "above_limit", "101.0")]),
            case("AT THE LIMIT", [row(here, "100")], [expected(here, "within_limit", "100.0")]),
            case("NOT REPORTED", [row(here, "null")], [expected(here, "not_reported", "null")]),
            *several,
            case(
                "ANOTHER HOUR DOES NOT COUNT", [row(here, "101", before), row(here, "100")],
                [expected(here, "within_limit", "100.0")],
            ),
            case(
                f"two {scope}s with equal ids, each by its own metrics",
                [row(here, "101"), row(other, "100")],
                [expected(here, "above_limit", "101.0"), expected(other, "within_limit", "100.0")],
            ),
        ]
    )  # fmt: skip
