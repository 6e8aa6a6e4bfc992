"""Loads and runs named SQL: `sql/<folder>/<name>.sql`, with named parameters."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from streamwarden.base.paths import SQL

Row = dict[str, Any]


def ask(connection: sa.Connection, query: str, **values: Any) -> list[Row]:
    """The rows of a query, e.g. `pages/finding`, as dicts. `values`: its parameters."""
    return [dict(row) for row in connection.execute(statement(query), values).mappings()]


@cache
def statement(query: str) -> sa.TextClause:
    """The SQL of a query; cached."""
    return sa.text((SQL / f"{query}.sql").read_text())
