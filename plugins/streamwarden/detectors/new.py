"""Begins a detector: its two files, with the columns of what it reads at hand. As they are, they load and pass.

What must be said by whoever knows the field is a placeholder in capitals.
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
"""The likeliest figures first."""
_EXAMPLES = {
    "cluster": "c", "account": "a", "region": "r", "volume_id": "vol-1", "instance_id": "i-1", "broker_id": "1",
    "endpoint": "e1", "topic": "t", "application_id": "app", "group_id": "g", "client_id": "reader",
}  # fmt: skip
_ELSEWHERE = {"cluster": "d", "account": "b"}


def new_detector(
    name: str, resource: str, reads: Sequence[str], folder: Path = FOLDER, cases: Path = CASES
) -> tuple[Path, Path]:
    """Writes a detector's two files; returns them.

    Args:
        name: subject/id.
        about: a kind of thing.
        reads: its tables, the one to select from first.

    Raises:
        StreamwardenError: a name, kind or table that can't be, or a file that is there already; one line.
    """
    subject, _, id_ = name.partition("/")
    if not re.fullmatch(r"[a-z][a-z_]*/[a-z][a-z0-9_]*", name):
        raise StreamwardenError(f"{name}: must be SUBJECT/ID in small letters, like brokers/broker_slow.")
    if resource not in KINDS:
        raise StreamwardenError(f"--about {resource}: no kind of thing; there are: {', '.join(KINDS)}.")
    files = folder / subject / f"{id_}.sql", cases / subject / f"{id_}.yaml"
    if taken := next((file for file in files if file.exists()), None):
        raise StreamwardenError(f"{taken}: is there already; remove it, or take another id.")
    if id_ in (known := load_detectors(folder, check=False)):
        raise StreamwardenError(f"{id_}: the id is taken by {known[id_].file}.")
    columns = _columns_of(reads)
    metric = _figure(resource, reads[0], columns[reads[0]])
    texts = _sql(resource, columns, metric), _cases(resource, reads[0], columns[reads[0]], metric)
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


def _figure(resource: str, table: str, columns: list[Column]) -> str:
    names = {column.name for column in columns}
    if missing := {"hour", *KINDS[resource]} - names:
        raise StreamwardenError(
            f"--reads {table}: has no {min(missing)}; name first a table of each {resource}'s hours."
        )
    for kind in _NUMBERS:
        for column in columns:
            if column.type == kind and column.nullable and not column.name.endswith("_id"):
                return column.name
    raise StreamwardenError(f"--reads {table}: has no figure that may be missing; name first a table that has one.")


def _sql(resource: str, columns: dict[str, list[Column]], metric: str) -> str:
    table, own = next(iter(columns.items()))
    names = {column.name for column in own}
    keys = {name: f"t.{name}" for name in KINDS[resource]}
    if resource == "broker" and "endpoint" in names:  # one that never answered has no id
        keys["broker_id"] = "coalesce(t.broker_id::text, t.endpoint)"
    selected = "".join(f"  {key if key == f't.{name}' else f'{key} as {name}'},\n" for name, key in keys.items())
    return f"""/*
title: WHAT IS WRONG, IN FOUR WORDS
about: {resource}
owner: WHO KEEPS THE RULE
maturity: experimental
reads: [{", ".join(columns)}]
params:
  most: {{default: 100, unit: THE UNIT, why: "WHY THIS VALUE AND NO OTHER; WHO SAYS SO"}}
rule: |
  IN WORDS, FOR WHO WANTS TO ARGUE WITH IT: what is compared with what, over how long, and when it is silent.
convinces: [{metric}]
says:
  too_much:
    status: alarm
    severity: warning
    reason: "ONE SENTENCE: what is so, the figure that proves it ({{{{ {metric} }}}}) and its limit ({{{{ most }}}})."
    cure: "WHAT TO DO ABOUT IT, in the order in which to try it."
    commands: ["A LINE TO PASTE, with --bootstrap-server {{{{ bootstrap_servers }}}} where it needs one"]
  fine: {{status: ok, reason: "WHY ALL IS WELL: {{{{ {metric} }}}}, {{{{ most }}}} is the limit."}}
  untold: {{status: skip, reason: "WHAT IS MISSING, so that it can't be judged."}}
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. WHERE TO LOOK FIRST, and what it means if it is so.
  2. WHERE TO LOOK NEXT.
limitations: |
  WHAT IT CAN'T SEE, and when it says something though nothing is wrong.
*/
-- One row about each {resource}: which case it is (`because`), its key, the figures. At hand are:
{_at_hand(columns)}select
  case
    when max(t.{metric}) is null then 'untold'
    when max(t.{metric}) > :most then 'too_much'
    else 'fine'
  end as reason,
{selected}  max(t.{metric}) as {metric}
from {table} as t
where t.hour = :hour
group by {", ".join(keys.values())}
"""  # noqa: S608


def _at_hand(columns: dict[str, list[Column]]) -> str:
    lines = []
    for table, of_table in columns.items():
        lines.append(f"-- {table}: {of_table[0].relation_comment}\n")
        lines += [f"--   {column.name}: {column.comment}\n" for column in of_table]
    return "".join(lines)


def _cases(resource: str, table: str, columns: list[Column], metric: str) -> str:
    extra = {"endpoint"} & {column.name for column in columns}
    here = {name: _EXAMPLES[name] for name in (*KINDS[resource], *sorted(extra - set(KINDS[resource])))}
    there = {name: _ELSEWHERE.get(name, value) for name, value in here.items()}

    def row(of: dict[str, str], value: str) -> str:
        return "{" + ", ".join(f"{name}: {text}" for name, text in of.items()) + f", {metric}: {value}}}"

    def expected(of: dict[str, str], reason: str) -> str:
        key = resource_key(resource, *(of[name] for name in KINDS[resource]))
        return f'    - {{thing: "{key}", because: {reason}}}\n'

    def case(name: str, given: Sequence[str], expect: Sequence[str]) -> str:
        rows = "".join(f"      - {one}\n" for one in given)
        return f"- name: {name}\n  given:\n    {table}:\n{rows}  expect:\n{''.join(expect)}"

    scope = KINDS[resource][0]
    return "".join(
        [
            "# One case for each sentence that it can say, and for all that it must be silent on. A row names only\n"
            "# the columns that matter. `make mutants ONLY=<id>` shows which changes of the SQL no case notices.\n",
            case("ABOVE THE LIMIT", [row(here, "101")], [expected(here, "too_much")]),
            case("AT THE LIMIT", [row(here, "100")], [expected(here, "fine")]),
            case("NOT TOLD", [row(here, "null")], [expected(here, "untold")]),
            case(
                f"two {scope}s with equal ids, each by its own figures",
                [row(here, "101"), row(there, "100")],
                [expected(here, "too_much"), expected(there, "fine")],
            ),
        ]
    )
