"""Loads questions: `sql/questions/<id>.sql`, a YAML header and one select with `:name` parameters."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.store.sql_header import read_header, shown

FOLDER = SQL / "questions"
Kind = Literal["text", "integer", "number", "timestamp", "hours", "days"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Model):
    """A typed parameter. It is required unless the header has `default`, which may be null."""

    type: Kind
    description: str = Field(min_length=1)
    default: str | int | float | None = None
    example: str | int | float | None = None
    """Value for docs and tests; default: `default`."""

    @property
    def is_required(self) -> bool:
        """Whether a value must be given."""
        return "default" not in self.model_fields_set

    @property
    def shown_example(self) -> str | int | float | None:
        """The value to show in docs: the example, otherwise the default."""
        return self.default if self.example is None else self.example


class Question(_Model):
    """A question of the folder: header and SQL."""

    id: str
    title: str = Field(min_length=1, max_length=80)
    subject: Literal["consumers", "cost", "coverage", "findings", "hosts", "streams", "topics"]
    description: str = Field(min_length=1)
    params: dict[str, Parameter] = {}
    columns: dict[str, str] = Field(min_length=1)
    """Names of the result columns, in order, and their meaning with units."""
    sql: str
    """The select, without the header."""

    @property
    def example(self) -> str:
        """A command that runs it with the example values."""
        values = [
            f" --param {name}={parameter.example}"
            for name, parameter in self.params.items()
            if parameter.example is not None
        ]
        return f"streamwarden ask {self.id}{''.join(values)}"


@cache
def load_questions() -> dict[str, Question]:
    """All questions by id, sorted.

    Raises:
        StreamwardenError: a file is invalid; one line with the file, the key, and the fix.
    """
    return {file.stem: load_question(file) for file in sorted(FOLDER.glob("*.sql"))}


def load_question(file: Path) -> Question:
    """The question of a file.

    Raises:
        StreamwardenError: as for `load_questions`.
    """
    header, text = read_header(file)
    sql = re.sub(r"^\s*/\*.*?\*/\s*", "", text, count=1, flags=re.DOTALL).strip()
    try:
        question = Question(id=file.stem, sql=sql, **header)
    except (ValidationError, TypeError) as error:
        raise StreamwardenError(f"{shown(file)}: {_first(error)}") from None
    used, declared = set(sa.text(sql)._bindparams), set(question.params)
    if used != declared:
        names = ", ".join(f":{name}" for name in sorted(used ^ declared))
        raise StreamwardenError(f"{shown(file)}: {names}: must be both in `params` and in the SQL; add or remove it.")
    if not re.match(r"(?:--[^\n]*\n|\s)*(select|with)\b", sql):
        raise StreamwardenError(f"{shown(file)}: the SQL must be one select (it may begin with `with`).")
    return question


def _first(error: ValidationError | TypeError) -> str:
    if isinstance(error, TypeError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}; see another file of the folder."
