"""Runs questions: parses values by type, then selects in a read-only transaction with a timeout and a row limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from psycopg.errors import QueryCanceled

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import FIRST_YEAR, LAST_YEAR
from streamwarden.base.similar import did_you_mean
from streamwarden.questions.load import Kind, Parameter, Question
from streamwarden.store.queries import ask

MAX_ROWS = 1000
TIMEOUT_SECONDS = 30
MAX_TEXT = 500
"""Maximum length of a text value."""
_TYPES: dict[Kind, sa.types.TypeEngine[Any]] = {
    "text": sa.Text(),
    "integer": sa.BigInteger(),
    "number": sa.Double(),
    "timestamp": sa.DateTime(timezone=True),
    "hours": sa.Interval(),
    "days": sa.Interval(),
}
_WAY_OUT: dict[Kind, str] = {
    "text": f"at most {MAX_TEXT} characters, without NUL",
    "integer": "an integer, such as 10",
    "number": "a number, such as 0.5",
    "timestamp": "a UTC time, such as 2026-11-21T05:00",
    "hours": "a number of hours from 1 to 11000, such as 24",
    "days": "a number of days from 1 to 455, such as 7",
}
_SETTINGS = "select set_config('statement_timeout', :ms, true), set_config('cursor_tuple_fraction', '1', true)"
"""The rows are read through a cursor; by default PostgreSQL plans a cursor for its first rows only."""
_NAMED = {"cluster": "cluster", "topic": "topic", "group_id": "group", "resource": None}
"""Parameter → kind of the resource that it names; None: a key of any kind."""
_MAX_SPAN = {"hours": 11_000, "days": 455}


class ParameterError(StreamwardenError):
    """A parameter is missing, unknown, or has a value of the wrong type. `parameter`: its name."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


@dataclass(frozen=True)
class Answer:
    """Rows of a question, in the order of its columns. `is_truncated`: there are more rows than the limit."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    is_truncated: bool


def run_question(
    warehouse: sa.Engine,
    question: Question,
    values: Mapping[str, str],
    *,
    max_rows: int = MAX_ROWS,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Answer:
    """Runs a question and returns at most `max_rows` rows.

    Args:
        values: texts of parameters by name; an empty text counts as not given.

    Raises:
        ParameterError: a value is missing, unknown, or of the wrong type.
        StreamwardenError: the query took longer than the timeout.
    """
    statement = sa.text(question.sql).bindparams(
        *(sa.bindparam(name, type_=_TYPES[parameter.type]) for name, parameter in question.params.items())
    )
    bound = parsed(question, values)
    with warehouse.connect().execution_options(postgresql_readonly=True) as connection:
        timeout = {"ms": f"{max(1, round(timeout_seconds * 1000))}ms"}
        connection.execute(sa.text(_SETTINGS), timeout)
        try:
            result = connection.execution_options(stream_results=True).execute(statement, bound)
            rows = [tuple(row) for row in result.fetchmany(max_rows + 1)]
            return Answer(list(result.keys()), rows[:max_rows], len(rows) > max_rows)
        except sa.exc.OperationalError as error:
            if not isinstance(error.orig, QueryCanceled):
                raise
            raise StreamwardenError(
                f"{question.id}: the query took longer than {timeout_seconds:g} s; narrow it by its parameters"
                f" ({', '.join(question.params) or 'none'}), or raise the timeout."
            ) from None


def unknown_values(warehouse: sa.Engine, question: Question, values: Mapping[str, str]) -> list[str]:
    """A sentence for each value that names no known topic, group, cluster, or resource: why an answer may be empty."""
    sentences = []
    with warehouse.connect().execution_options(postgresql_readonly=True) as connection:
        for name, what in _NAMED.items():
            value = values.get(name, "").strip() if name in question.params else ""
            known = [row["name"] for row in ask(connection, "pages/names_of_kind", kind=what)] if value else []
            if known and value not in known:
                within = next((one for one in known if value in one), None)
                way_out = (
                    f"did you mean '{within}'?"
                    if within
                    else did_you_mean(value, known, "the view `resource` lists all.")
                )
                sentences.append(f"No {what or 'resource'} has the {'name' if what else 'key'} '{value}'; {way_out}")
    return sentences


def parsed(question: Question, values: Mapping[str, str]) -> dict[str, Any]:
    """Typed values of all parameters of a question, with defaults.

    Raises:
        ParameterError: a value is missing, unknown, or of the wrong type.
    """
    for name in values:
        if name not in question.params:
            there = ", ".join(question.params) or "none"
            raise ParameterError(name, f"{name}: {question.id} has no such parameter; parameters: {there}.")
    return {name: _value(name, parameter, values.get(name, "")) for name, parameter in question.params.items()}


def _value(name: str, parameter: Parameter, text: str) -> Any:
    if not text.strip():
        if parameter.is_required:
            raise ParameterError(
                name,
                f"{name}: a value is required: {parameter.description}. Example: {name}={parameter.shown_example}.",
            )
        if parameter.default is None:
            return None
        text = str(parameter.default)
    try:
        return _parse(parameter.type, text)
    except (ValueError, OverflowError):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ParameterError(name, f"{name}='{shown}': must be {_WAY_OUT[parameter.type]}.") from None


def _parse(kind: Kind, text: str) -> Any:
    match kind:
        case "text":
            if len(text) > MAX_TEXT or "\0" in text:
                raise ValueError
            text.encode()  # lone surrogates
            return text
        case "integer":
            number = int(text)
            if abs(number) >= 2**63:
                raise ValueError
            return number
        case "number":
            if not math.isfinite(value := float(text)):
                raise ValueError
            return value
        case "timestamp":
            moment = datetime.fromisoformat(text.strip())
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            if not FIRST_YEAR <= moment.year <= LAST_YEAR:
                raise ValueError
            return moment
        case "hours" | "days":
            if not 1 <= (count := int(text)) <= _MAX_SPAN[kind]:
                raise ValueError
            return timedelta(**{kind: count})
