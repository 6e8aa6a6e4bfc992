"""Mutation tests of detectors and causes: `make mutants` (N=30 draws 30 mutants of each, ONLY=log_flush_slow,causes).

Each mutant has one change in the SQL of a detector or of a function or view that it calls. The detector's cases run
against each mutant. A mutant of a function or view that no case detects may be detected by tests/sql/functions.

A mutant that PostgreSQL rejects does not count. An undetected mutant is printed with file, line, and column. Mutants
with equivalent results are listed in equivalent_mutants.yaml, with the reason. Each detector's figures are printed as
soon as they are known, those of shared functions at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, get_args

import psycopg
import pytest
import sqlalchemy as sa
import yaml
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.detectors import Detector, findings
from streamwarden.detectors.select import Token, tokens

from tests.sql.cases import CASES_OF, DETECTORS, Case, hour_of, insert_given, params_of, unmet

MAX_UNDETECTED_RATIO = 0.05
ALIKE = Path(__file__).with_name("equivalent_mutants.yaml")
FUNCTION_TESTS = Path(__file__).with_name("functions")
_FIXTURE = "module_warehouse"
_TEMPLATE = "migrated_template"
"""What _FIXTURE depends on: to migrate it would take seconds for each mutant."""
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "="}
_SIGNS = {"+": "-", "-": "+"}
_LOGIC = {"and": "or", "or": "and"}
_FUNCTIONS = {"least": "greatest", "greatest": "least", "min": "max", "max": "min"}
_NO_CONSTANT_BEHIND = ("limit", "by", "select", "rows")
Part = Literal["all", "own", "functions"]
_PARTS: dict[Part, slice] = {"all": slice(None), "own": slice(1), "functions": slice(1, None)}
"""Of the sources of a detector."""
_ENDS_ON = ("left", "inner", "join", "cross", "full", "where", "group", "order", "union", "limit", ",", ";")


@dataclass(frozen=True)
class Source:
    """SQL that can be mutated: a detector, or a function or view that it calls."""

    file: str
    name: str
    text: str
    offset: int
    """Position of `text` in the file, in characters."""
    whole: str
    """Text of the whole file."""


@dataclass(frozen=True)
class Mutant:
    """One change of a source: `new` replaces the text from `start` to `end`."""

    source: Source
    start: int
    end: int
    new: str

    @property
    def text(self) -> str:
        return self.source.text[: self.start] + self.new + self.source.text[self.end :]

    @property
    def place(self) -> str:
        at = self.source.offset + self.start
        before = self.source.whole[:at]
        return f"{self.source.file}:{before.count(chr(10)) + 1}:{at - before.rfind(chr(10))}"

    @property
    def change(self) -> str:
        return f"{' '.join(self.source.text[self.start : self.end].split())} → {self.new.strip() or 'nothing'}"

    @property
    def line(self) -> str:
        """The changed line, which identifies the mutant in equivalent_mutants.yaml because line numbers change."""
        begins = self.source.text.rfind("\n", 0, self.start) + 1
        return " ".join(self.source.text[begins:].partition("\n")[0].split())


def sources_of(detector: Detector) -> list[Source]:
    """The detector, and each function and view that it calls directly or indirectly."""
    whole = detector.sql
    found = [Source(detector.file, "", whole, 0, whole)]
    known = {source.name: source for source in _replaceable()}
    seen: set[str] = set()
    waiting = [whole.partition("*/")[2]]
    while waiting:
        words = {token.text for token in tokens(waiting.pop()) if token.kind == "word"}
        for name in sorted(words & set(known) - seen):
            seen.add(name)
            found.append(known[name])
            waiting.append(known[name].text)
    return found


def _replaceable() -> Iterator[Source]:
    for file in sorted([*(SQL / "functions").glob("*.sql"), *(SQL / "views").glob("*.sql")]):
        whole = file.read_text()
        starts = [found.start() for found in re.finditer(r"^create (?:or replace )?(?:function|view) ", whole, re.M)]
        for begins, ends in zip(starts, [*starts[1:], len(whole)], strict=True):
            text = whole[begins:ends]
            name = re.match(r"create (?:or replace )?(?:function|view) ([\w.]+)", text)
            if name and "language plpgsql" not in text and name[1] not in ("public.resources", "public.resource_key"):
                yield Source(f"sql/{file.parent.name}/{file.name}", name[1], text, begins, whole)


def mutants(source: Source) -> Iterator[Mutant]:
    """All mutants of a source."""
    all_tokens = _tokens(source)
    nothing = Token("other", "", 0)
    later = [*all_tokens[1:], nothing, nothing]
    windows = zip([nothing, *all_tokens], all_tokens, later, later[1:], strict=False)
    for n, (before, token, after, second) in enumerate(windows):
        word = token.text.lower() if token.kind == "word" else ""
        if token.kind == "operator" and token.text in _COMPARISONS:
            yield _change(source, token, _COMPARISONS[token.text])
        elif token.text in _SIGNS and (before.kind in ("word", "parameter") or before.text == ")"):
            yield _change(source, token, _SIGNS[token.text])
        elif (word in _FUNCTIONS and after.text == "(") or (word in _LOGIC and not _is_between(all_tokens, n)):
            yield _change(source, token, {**_FUNCTIONS, **_LOGIC}[word])
        elif word == "is" and after.text.lower() == "null":
            yield Mutant(source, token.start, after.start + 4, "is not null")
        elif word == "is" and (after.text.lower(), second.text.lower()) == ("not", "null"):
            yield Mutant(source, token.start, second.start + 4, "is null")
        elif re.fullmatch(r"\d+(\.\d+)?", word) and before.text.lower() not in _NO_CONSTANT_BEHIND:
            yield _change(source, token, {"0": "1", "1": "0"}.get(word, f"({word} + 1)"))
        elif word == "coalesce" and (default := _last_argument(all_tokens, n + 1)) is not None:
            yield Mutant(source, *default, "null")
        elif word == "on":
            yield from _without_conjuncts(source, all_tokens, n)
        elif word == "using" and after.text == "(":
            yield from _without_columns(source, all_tokens, n + 1)


def _tokens(source: Source) -> list[Token]:
    """Tokens of the SQL without header or function signature; an operator of two characters is one token."""
    begins = source.text.find("*/") + 2 if not source.name else _body(source.text)
    found: list[Token] = []
    for token in tokens(source.text):
        if token.start < begins:
            continue
        last = found[-1] if found else None
        if token.kind == "other" and token.text in "<>=!~-+*/|":
            token = Token("operator", token.text, token.start)
            if last and last.kind == "operator" and last.start + len(last.text) == token.start:
                found[-1] = Token("operator", last.text + token.text, last.start)
                continue
        found.append(token)
    return found


def _body(text: str) -> int:
    body = re.search(r"\bas\s+\$\$|\bas\n", text)
    return body.end() if body else 0


def _change(source: Source, token: Token, new: str) -> Mutant:
    return Mutant(source, token.start, token.start + len(token.text), new)


def _is_between(all_tokens: list[Token], n: int) -> bool:
    return any(token.text.lower() == "between" for token in all_tokens[max(0, n - 8) : n])


def _close(all_tokens: list[Token], opened: int) -> int:
    depth = 0
    for n in range(opened, len(all_tokens)):
        depth += (all_tokens[n].text == "(") - (all_tokens[n].text == ")")
        if depth == 0:
            return n
    return len(all_tokens) - 1


def _last_argument(all_tokens: list[Token], opened: int) -> tuple[int, int] | None:
    closed, depth, comma = _close(all_tokens, opened), 0, None
    for n in range(opened, closed):
        depth += (all_tokens[n].text == "(") - (all_tokens[n].text == ")")
        if depth == 1 and all_tokens[n].text == ",":
            comma = n
    return None if comma is None else (all_tokens[comma + 1].start, all_tokens[closed].start)


def _without_conjuncts(source: Source, all_tokens: list[Token], on: int) -> Iterator[Mutant]:
    """`on a and b` without a, without b."""
    depth, ands, end = 0, [on], on + 1
    for n in range(on + 1, len(all_tokens)):
        word = all_tokens[n].text.lower()
        depth += (word == "(") - (word == ")")
        end = n
        if depth < 0 or (
            depth == 0
            and word
            in ("left", "inner", "join", "cross", "where", "group", "order", "union", "full", ",", ";", "limit")
        ):
            break
        if depth == 0 and word == "and" and not _is_between(all_tokens, n):
            ands.append(n)
    if len(ands) < 2:
        return
    for place, begins in enumerate(ands):
        if place + 1 < len(ands):  # this conjunct and the `and` behind it
            yield Mutant(source, all_tokens[begins + 1].start, all_tokens[ands[place + 1] + 1].start, "")
        else:
            yield Mutant(source, all_tokens[begins].start, all_tokens[end].start, "\n")


def _without_columns(source: Source, all_tokens: list[Token], opened: int) -> Iterator[Mutant]:
    names = [token for token in all_tokens[opened + 1 : _close(all_tokens, opened)] if token.kind == "word"]
    if len(names) < 2:
        return
    for n, name in enumerate(names):
        end = names[n + 1].start if n + 1 < len(names) else name.start + len(name.text)
        yield Mutant(source, name.start if n + 1 < len(names) else names[n - 1].start + len(names[n - 1].text), end, "")


@dataclass
class Score:
    """Result of a detector's mutants."""

    detector: str
    tried: list[Mutant]
    """Mutants that PostgreSQL accepts."""
    rejected: int
    undetected: list[Mutant]
    seconds: float


def score(
    warehouse: sa.Engine,
    detector: Detector,
    only: int | None = None,
    seed: int = 1,
    detected: Collection[Mutant] = frozenset(),
    *,
    of: Part = "all",
) -> Score:
    """Runs a detector's cases against its mutants, or against `only` mutants drawn by `seed`.

    Args:
        detected: mutants of functions and views that another detector's cases detect; they are not tried again.
        of: mutants of the detector's own SQL, of the functions and views that it calls, or of all.

    Raises:
        StreamwardenError: a case fails without a mutant.
    """
    known = {(entry["line"], entry["change"]) for entry in yaml.safe_load(ALIKE.read_text()) or []}
    every = [mutant for source in sources_of(detector)[_PARTS[of]] for mutant in mutants(source)]
    alike = [mutant for mutant in every if (mutant.line, mutant.change) in known]
    alive = [mutant for mutant in every if mutant not in alike]
    if only is not None:
        alive = random.Random(seed).sample(alive, min(only, len(alive)))  # noqa: S311  # no secret
    return _tried(warehouse, detector, [mutant for mutant in alive if mutant not in detected])


def _tried(warehouse: sa.Engine, detector: Detector, alive: list[Mutant]) -> Score:
    """Runs a detector's cases against these mutants."""
    started = time.monotonic()
    tried, rejected = alive, set[Mutant]()
    for case in CASES_OF[detector.id]:
        if not alive:
            break
        remaining: list[Mutant] = []
        with warehouse.connect() as connection, connection.begin() as transaction:
            connection.exec_driver_sql("set local jit = off")
            insert_given(connection, case)
            sound = findings(connection, detector, hour_of(case), Config(), params_of(detector, case))
            if wrong := next(unmet(sound, case), None):  # it would detect every mutant
                raise StreamwardenError(f"{detector.id}: case {case['name']!r} fails without a mutant: {wrong}")
            for mutant in alive:
                outcome = _outcome(connection, detector, case, mutant)
                if outcome == "rejected":
                    rejected.add(mutant)
                if outcome == "undetected":
                    remaining.append(mutant)
            transaction.rollback()
        alive = remaining
    counted = [mutant for mutant in tried if mutant not in rejected]
    return Score(detector.id, counted, len(rejected), alive, time.monotonic() - started)


def _outcome(connection: sa.Connection, detector: Detector, case: Case, mutant: Mutant) -> str:
    """One of undetected, detected, rejected."""
    changed, own = mutant.source.name == "", detector
    savepoint = connection.begin_nested()
    try:
        connection.exec_driver_sql("set local statement_timeout = '20s'")
        if changed:
            own = replace(detector, sql=mutant.text)
        else:
            _define(connection, mutant)
        found = findings(connection, own, hour_of(case), Config(), params_of(detector, case))
        return "detected" if next(unmet(found, case), None) else "undetected"
    except StreamwardenError as error:  # a syntax error in PostgreSQL, or an invalid row of the detector
        return "rejected" if error.excerpt else "detected"
    except (sa.exc.ProgrammingError, psycopg.ProgrammingError):
        return "rejected"
    except (sa.exc.DBAPIError, KeyError, TypeError):
        return "detected"
    finally:
        savepoint.rollback()


def _define(connection: sa.Connection, mutant: Mutant) -> None:
    _create(connection, mutant.text)


def _create(connection: sa.Connection, text: str) -> None:
    raw: Any = connection.connection.driver_connection
    if not text.startswith("create or replace"):
        text = text.replace("create ", "create or replace ", 1)
    psycopg.RawCursor(raw).execute(text.encode())


def detected_by_callers(warehouse: sa.Engine, scores: Sequence[Score]) -> Iterator[Mutant]:
    """The mutants of functions and views that detectors detect for which they were not drawn."""
    remaining = called_by(scores)[1]
    for one in scores:
        if one.detector in DETECTORS:
            calls = set(sources_of(DETECTORS[one.detector]))
            new = [mutant for mutant in remaining if mutant.source in calls and mutant not in one.tried]
            undetected = _tried(warehouse, DETECTORS[one.detector], new).undetected
            detected = set(new) - set(undetected)
            yield from detected
            remaining = [mutant for mutant in remaining if mutant not in detected]


class _Warehouse:
    """A pytest plugin that gives the tests this warehouse."""

    def __init__(self, warehouse: sa.Engine) -> None:
        self.warehouse = warehouse

    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: Any) -> sa.Engine | str | None:
        values: dict[str, sa.Engine | str] = {_FIXTURE: self.warehouse}
        if not any("warehouse_url" in item.fixturenames for item in request.session.items):
            values[_TEMPLATE] = "not needed"
        value = values.get(fixturedef.argname)
        if value is not None:
            fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
        return value


def detected_by_tests(warehouse: sa.Engine, undetected: Sequence[Mutant]) -> Iterator[Mutant]:
    """The mutants of functions and views that tests detect, of the files in FUNCTION_TESTS that call them.

    Raises:
        StreamwardenError: the tests fail without a mutant.
    """
    # Tests call a function of the schema public with or without its schema.
    words = {
        str(file): {word.removeprefix("public.") for word in re.findall(r"[\w.]+", file.read_text())}
        for file in FUNCTION_TESTS.glob("*.py")
    }
    files_of = {
        mutant: [f for f, known in words.items() if {mutant.source.name.removeprefix("public."), _FIXTURE} <= known]
        for mutant in undetected
    }
    needed = {file for files in files_of.values() for file in files}
    if needed and _fail(warehouse, needed):  # they would detect every mutant
        raise StreamwardenError(f"{FUNCTION_TESTS.name}: tests fail without a mutant.")
    for mutant, files in files_of.items():
        if files:
            with warehouse.begin() as connection:
                _define(connection, mutant)
            if _fail(warehouse, files):
                yield mutant
            with warehouse.begin() as connection:
                _create(connection, mutant.source.text)


def _fail(warehouse: sa.Engine, files: Iterable[str]) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):
        return pytest.main([*files, "-x", "-p", "no:cacheprovider"], [_Warehouse(warehouse)]) != pytest.ExitCode.OK


def report(one: Score) -> str:
    """Undetected mutants of a detector's own SQL, and their share. Others are reported at the end, by all callers."""
    own, undetected = _own(one.tried), _own(one.undetected)
    if not own:
        return f"{one.detector}: {len(one.tried)} mutants of functions and views tried, {one.seconds:.0f} s"
    share = f"{one.detector}: {_share(undetected, own)}; {one.rejected} rejected, {one.seconds:.0f} s"
    return "\n".join([*map(_shown, undetected), share])


def report_all(scores: Sequence[Score]) -> str:
    """Undetected mutants of the functions and views that detectors call, their share, and that of all detectors."""
    called, undetected = called_by(scores)
    lines = [_shown(mutant) for mutant in undetected]
    if called:
        lines.append(
            f"functions and views: {_share(undetected, called)} by detectors that call them and by their tests"
        )
    lines.append(f"{len(scores)} detectors: {_share(*_all_own(scores))}")
    return "\n".join(lines)


def called_by(scores: Sequence[Score]) -> tuple[list[Mutant], list[Mutant]]:
    """Mutants of functions and views, and those of them that no case of any detector detected."""
    tried = list(dict.fromkeys(mutant for one in scores for mutant in one.tried if mutant.source.name))
    detected = {mutant for one in scores for mutant in set(one.tried) - set(one.undetected)}
    return tried, [mutant for mutant in tried if mutant not in detected]


def is_good(scores: Sequence[Score]) -> bool:
    """Whether the share of undetected mutants is low enough, in the detectors' own SQL if that was tried."""
    undetected, tried = _all_own(scores)
    if not tried:
        tried, undetected = called_by(scores)
    return len(undetected) <= MAX_UNDETECTED_RATIO * len(tried)


def _all_own(scores: Sequence[Score]) -> tuple[list[Mutant], list[Mutant]]:
    """Undetected and tried mutants of the detectors' own SQL."""
    return (
        [mutant for one in scores for mutant in _own(one.undetected)],
        [mutant for one in scores for mutant in _own(one.tried)],
    )


def _own(found: Iterable[Mutant]) -> list[Mutant]:
    return [mutant for mutant in found if not mutant.source.name]


def _shown(mutant: Mutant) -> str:
    return f"  {mutant.place}: {mutant.change}   in `{mutant.line[:90]}`"


def _share(undetected: Sequence[Mutant], tried: Sequence[Mutant]) -> str:
    return f"{len(undetected)} of {len(tried)} undetected ({len(undetected) / max(1, len(tried)):.1%})"


def main() -> None:
    """Runs `make mutants`; exit code 1 if too many mutants of detectors are undetected."""
    from streamwarden.base.warehouse import engine

    from tests.conftest import a_database, migrate_for_any_day
    from tests.sql import cause_mutants

    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", default="", help="comma-separated detector ids, or causes")
    arguments.add_argument("--tested", action="store_true", help="detectors whose header has is_mutation_tested")
    arguments.add_argument(
        "--of",
        choices=get_args(Part),
        default="all",
        help="the detectors' own SQL, or what it calls",
    )
    arguments.add_argument("-n", type=int, help="number of mutants drawn of each detector")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    wanted = [id_ for id_ in given.only.split(",") if id_] or [
        *(id_ for id_, detector in DETECTORS.items() if detector.is_mutation_tested or not given.tested),
        *([cause_mutants.NAME] if given.of != "functions" else []),
    ]
    if unknown := set(wanted) - {*DETECTORS, cause_mutants.NAME}:
        sys.exit(f"ONLY={min(unknown)}: no such detector; there are: {', '.join(DETECTORS)}.")
    draw = {"only": given.n, "seed": given.seed}
    scores: list[Score] = []
    detected = frozenset[Mutant]()
    with ExitStack() as stack:
        warehouses = [engine(stack.enter_context(a_database())) for _ in range(os.cpu_count() or 1)]
        idle: SimpleQueue[sa.Engine] = SimpleQueue()
        for warehouse in warehouses:
            migrate_for_any_day(warehouse)
            idle.put(warehouse)

        def score_one(id_: str) -> Score:
            warehouse = idle.get()
            try:
                if id_ == cause_mutants.NAME:
                    return cause_mutants.score(warehouse, **draw)
                return score(warehouse, DETECTORS[id_], **draw, detected=detected, of=given.of)
            finally:
                idle.put(warehouse)

        cases = {id_: len(of_detector) for id_, of_detector in CASES_OF.items()}
        cases[cause_mutants.NAME] = len(cause_mutants.CASES)
        long_ones_first = sorted(wanted, key=lambda id_: -cases[id_])
        pool = stack.enter_context(ThreadPoolExecutor(len(warehouses)))  # PostgreSQL does the work
        try:
            for done in as_completed([pool.submit(score_one, id_) for id_ in long_ones_first]):
                scores.append(done.result())
                detected |= set(scores[-1].tried) - set(scores[-1].undetected)
                print(report(scores[-1]), flush=True)
            if given.n is not None:
                detected |= set(detected_by_callers(warehouses[0], scores))
            remaining = [mutant for mutant in called_by(scores)[1] if mutant not in detected]
            detected |= set(detected_by_tests(warehouses[0], remaining))
        except StreamwardenError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(str(error))
    for one in scores:
        one.undetected = [mutant for mutant in one.undetected if mutant not in detected]
    print(report_all(scores))
    sys.exit(not is_good(scores))


if __name__ == "__main__":
    main()
