"""Routes of the saved questions: the list, a form with the answer as a table, and downloads as CSV and Parquet."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from streamwarden.base.config import load_config
from streamwarden.base.warehouse import open_warehouse
from streamwarden.questions import Answer, ParameterError, Question, load_questions, run_question, unknown_values
from streamwarden.questions.formats import csv_text, parquet_bytes, rounded
from streamwarden.ui.pages import UnknownError

PAGE_ROWS, DOWNLOAD_ROWS = 200, 50_000
"""Maximum number of rows on a page and in a download."""
TIMEOUT_SECONDS = 20
Format = Literal["page", "csv", "parquet"]
PageFunction = Callable[[Request, str, dict[str, Any], int], HTMLResponse]
_NOT_PARAMETERS = ("run", "format")
_INPUTS = {"timestamp": "datetime-local", "text": "text", "number": "number"}


def routes(page: PageFunction) -> APIRouter:
    """The routes. `page`: renders a template with values and a status code."""
    router = APIRouter(prefix="/questions")

    @router.get("")
    def questions(request: Request) -> HTMLResponse:
        """All questions by subject."""
        found = sorted(load_questions().values(), key=lambda one: (one.subject, one.title))
        subjects = [(subject, list(those)) for subject, those in groupby(found, key=lambda one: one.subject)]
        return page(request, "questions.html", {"place": "questions", "subjects": subjects}, 200)

    @router.get("/{question_id}")
    def question(
        request: Request,
        question_id: str,
        run: Annotated[bool, Query()] = False,
        as_format: Annotated[Format, Query(alias="format")] = "page",
    ) -> Response:
        """One question: its form, and with `run` its answer. 400 if a parameter is missing or of the wrong type."""
        asked = load_questions().get(question_id)
        if asked is None:
            raise UnknownError("No question has this name. The page Questions lists all.")
        values = {name: value for name, value in request.query_params.items() if name not in _NOT_PARAMETERS}
        answer, wrong = None, None
        unknown: list[str] = []
        if run or as_format != "page":
            try:
                answer = _answer(asked, values, PAGE_ROWS if as_format == "page" else DOWNLOAD_ROWS)
                unknown = [] if answer.rows else unknown_values(open_warehouse(load_config()), asked, values)
            except ParameterError as error:
                wrong = error
        if answer is not None and as_format != "page":
            return _download(asked, answer, as_format)
        return page(
            request, "question.html", _shown(asked, values, answer, wrong) | {"unknown": unknown}, 400 if wrong else 200
        )

    return router


def _answer(question: Question, values: dict[str, str], max_rows: int) -> Answer:
    warehouse = open_warehouse(load_config())
    return run_question(warehouse, question, values, max_rows=max_rows, timeout_seconds=TIMEOUT_SECONDS)


def _shown(
    question: Question, values: dict[str, str], answer: Answer | None, wrong: ParameterError | None
) -> dict[str, Any]:
    """Values of the template. `fields`: name, parameter, type of the input, and text of each parameter."""
    fields = [
        {
            "name": name,
            "parameter": one,
            "input": _INPUTS.get(one.type, "number"),
            "value": values.get(name, "" if one.default is None else str(one.default)),
            "message": str(wrong) if wrong and wrong.parameter == name else None,
        }
        for name, one in question.params.items()
    ]
    rows = [["–" if cell is None else rounded(cell) for cell in row] for row in answer.rows] if answer else []
    given = {name: value for name, value in values.items() if value and name in question.params}
    return {
        "place": "questions",
        "question": question,
        "fields": fields,
        "answer": answer,
        "rows": rows,
        "query": urlencode(given),
        "message": str(wrong) if wrong else None,
    }


def _download(question: Question, answer: Answer, as_format: Format) -> Response:
    if as_format == "csv":
        body = csv_text(answer.columns, answer.rows, is_for_spreadsheets=True).encode()
        media_type = "text/csv; charset=utf-8"
    else:
        body, media_type = parquet_bytes(answer), "application/vnd.apache.parquet"
    headers = {
        "Content-Disposition": f'attachment; filename="{question.id}.{as_format}"',
        "X-Streamwarden-Truncated": str(answer.is_truncated).lower(),
    }
    return Response(body, media_type=media_type, headers=headers)
