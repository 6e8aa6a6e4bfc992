"""`streamwarden ask`: lists and runs the saved questions of `sql/questions`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.similar import did_you_mean
from streamwarden.cli import shared
from streamwarden.cli.shared import JsonOption, out
from streamwarden.rendering.readable import counted

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.questions import Question


_MISSING = "`streamwarden ask data_missing` lists the sources that did not respond."


def ask(
    question_id: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="Question id. Default: list all questions.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Value of a parameter; can be repeated.")
    ] = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Maximum number of rows.")] = 1000,
    timeout: Annotated[int, typer.Option(min=1, max=3600, help="Maximum run time in seconds.")] = 30,
) -> None:
    """Ask a saved question, or list all. Questions only read the warehouse."""
    if as_json and as_csv:
        raise typer.BadParameter("give either --json or --csv.")
    if question_id is None:
        _list(as_json=as_json, as_csv=as_csv)
        return
    from streamwarden.questions import ParameterError, load_questions, run_question

    questions = load_questions()
    if question_id not in questions:
        way_out = did_you_mean(question_id, questions, "`streamwarden ask` lists all.")
        raise StreamwardenError(f"{question_id}: no such question; {way_out}")
    question = questions[question_id]
    values, warehouse = _values(param or []), shared.warehouse()
    try:
        answer = run_question(warehouse, question, values, max_rows=limit, timeout_seconds=timeout)
    except ParameterError as error:
        raise StreamwardenError(f"--param {error}") from None
    empty = "" if answer.rows else _empty(warehouse, question, values)
    _print(answer.columns, answer.rows, as_json=as_json, as_csv=as_csv, empty=empty)
    if answer.is_truncated:
        print(f"streamwarden: only the first {counted(limit, 'row')}; raise --limit.", file=sys.stderr)


def _empty(warehouse: sa.Engine, question: Question, values: dict[str, str]) -> str:
    from streamwarden.questions import unknown_values

    answer = shared.none_found(warehouse, " ".join(["No rows.", *unknown_values(warehouse, question, values)]))
    return f"{answer} {_MISSING}" if answer == "No rows." else answer


def _list(*, as_json: bool, as_csv: bool) -> None:
    from streamwarden.questions import load_questions

    rows = [
        (
            one.id,
            one.title,
            ", ".join(name if parameter.is_required else f"[{name}]" for name, parameter in one.params.items()),
        )
        for one in load_questions().values()
    ]
    _print(["question", "title", "params"], rows, as_json=as_json, as_csv=as_csv, empty="There are no questions.")


def _values(params: list[str]) -> dict[str, str]:
    values = {}
    for param in params:
        name, separator, value = param.partition("=")
        if not separator or not name:
            raise StreamwardenError(f"--param {param}: must be NAME=VALUE, such as --param topic=orders.")
        if name in values:
            raise StreamwardenError(f"--param {param}: {name} is given twice; give it once.")
        values[name] = value
    return values


def _print(columns: list[str], rows: list[tuple[Any, ...]], *, as_json: bool, as_csv: bool, empty: str) -> None:
    from streamwarden.questions.formats import csv_text, rounded

    if as_json:
        shared.print_json(dict(zip(columns, row, strict=True)) for row in rows)
    elif as_csv:
        print(csv_text(columns, rows), end="")
    elif rows:
        from streamwarden.rendering.readable import clean

        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*("–" if cell is None else escape(clean(rounded(cell))) for cell in row))
        out.print(table)
    else:
        out.print(empty)
