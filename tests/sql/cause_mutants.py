"""Mutants of the query that ranks causes (sql/causes), against the cases in tests/sql/causes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
import yaml
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.causes import rule

from tests.sql.cause_cases import CASES, CauseCase
from tests.sql.mutants import ALIKE, Mutant, Score, Source, mutants

NAME = "causes"
"""Stands for the query in `ONLY` and in the report, like a detector's id."""


def sources() -> Iterator[Source]:
    """The query and its pieces, one source per file."""
    for file in (rule.MAIN, *sorted(rule.PIECES.glob("*.sql"))):
        text = file.read_text()
        yield Source(f"sql/{file.relative_to(SQL)}", "", text, 0, text)


def score(warehouse: sa.Engine, only: int | None = None, seed: int = 1) -> Score:
    """Runs all cases of causes against the mutants of the query, or against `only` mutants drawn by `seed`.

    Raises:
        StreamwardenError: a case fails without a mutant.
    """
    started = time.monotonic()
    known = {(entry["line"], entry["change"]) for entry in yaml.safe_load(ALIKE.read_text()) or []}
    every = [mutant for source in sources() for mutant in mutants(source)]
    alive = [mutant for mutant in every if (mutant.line, mutant.change) not in known]
    if only is not None:
        alive = random.Random(seed).sample(alive, min(only, len(alive)))  # noqa: S311  # no secret
    tried, rejected = alive, set[Mutant]()
    for case in CASES:
        outcomes = _outcomes(warehouse, case, alive)
        rejected |= {mutant for mutant, outcome in outcomes.items() if outcome == "rejected"}
        alive = [mutant for mutant, outcome in outcomes.items() if outcome == "undetected"]
        if not alive:
            break
    counted = [mutant for mutant in tried if mutant not in rejected]
    return Score(NAME, counted, len(rejected), alive, time.monotonic() - started)


def _outcomes(warehouse: sa.Engine, case: CauseCase, alive: list[Mutant]) -> dict[Mutant, str]:
    """For each mutant one of undetected, detected, rejected."""
    with warehouse.connect() as connection, connection.begin() as transaction:
        connection.exec_driver_sql("set local jit = off")
        resources = case.insert(connection)
        if wrong := case.unmet(case.weigh(connection), resources):  # it would detect every mutant
            raise StreamwardenError(f"{NAME}: case {case.id!r} fails without a mutant: {wrong}")
        found = {mutant: _outcome(connection, case, resources, mutant) for mutant in alive}
        transaction.rollback()
    return found


def _outcome(connection: sa.Connection, case: CauseCase, resources: dict[str, str], mutant: Mutant) -> str:
    savepoint = connection.begin_nested()
    try:
        connection.exec_driver_sql("set local statement_timeout = '20s'")
        found = case.weigh(connection, rule.query({Path(mutant.source.file).name: mutant.text}))
        return "detected" if case.unmet(found, resources) else "undetected"
    except sa.exc.ProgrammingError:
        return "rejected"
    except (StreamwardenError, sa.exc.DBAPIError, KeyError, TypeError):  # also a message that cannot be rendered
        return "detected"
    finally:
        savepoint.rollback()
