"""Rows for tests: they name only the columns that matter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
NEUTRAL = {
    "integer": 0,
    "bigint": 0,
    "double precision": 0.0,
    "text": "-",
    "jsonb": "{}",
    "json": "{}",
    "boolean": False,
}

_COLUMNS: dict[str, Sequence[sa.Row[Any]]] = {}
"""By table: asked once, as all databases of a test run have the same."""


def insert_row(connection: sa.Connection, table: str, row: dict[str, Any]) -> None:
    """Inserts a row; columns that must have a value and aren't named get a neutral one."""
    columns = _COLUMNS.get(table) or _COLUMNS.setdefault(table, _columns(connection, table))
    kinds = {name: kind for name, kind, _, _ in columns}
    assert kinds, f"no table {table}"
    if "hour" not in kinds:
        row.pop("hour")
    assert set(row) <= set(kinds), f"{table} has no column {set(row) - set(kinds)}"
    for name, kind, nullable, default in columns:
        if name not in row and nullable == "NO" and default is None:
            row[name] = NEUTRAL.get(kind, HOUR)
    values = {
        name: json.dumps(value) if kinds[name] == "jsonb" and not isinstance(value, str | None) else value
        for name, value in row.items()
    }
    names = ", ".join(f'"{name}"' for name in values)
    binds = ", ".join(f"cast(:{name} as {kinds[name]})" for name in values)
    connection.execute(sa.text(f"insert into {table} ({names}) values ({binds})"), values)


def _columns(connection: sa.Connection, table: str) -> Sequence[sa.Row[Any]]:
    schema, relation = table.split(".")
    return connection.execute(
        sa.text("""
            select
              column_name, case when data_type = 'ARRAY' then udt_name else data_type end, is_nullable, column_default
            from information_schema.columns
            where table_schema = :schema and table_name = :relation and is_identity = 'NO'"""),
        {"schema": schema, "relation": relation},
    ).all()
