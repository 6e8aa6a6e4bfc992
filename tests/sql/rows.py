"""Rows for tests: they name only the columns that matter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
"""Columns by table: queried once, as all databases of a test run have the same schema."""


def insert_row(connection: sa.Connection, table: str, row: dict[str, Any]) -> None:
    """Inserts a row; columns that are not null, have no default, and are not named get a neutral value."""
    insert_rows(connection, table, [row])


def insert_rows(connection: sa.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Inserts rows like `insert_row`, with one statement for all rows that name the same columns."""
    columns = _COLUMNS.get(table) or _COLUMNS.setdefault(table, _columns(connection, table))
    kinds = {name: kind for name, kind, _, _ in columns}
    assert kinds, f"no table {table}"
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
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
        alike.setdefault(tuple(sorted(values)), []).append(values)
    for named, values_of in alike.items():
        names = ", ".join(f'"{name}"' for name in named)
        binds = ", ".join(f"cast(:{name} as {kinds[name]})" for name in named)
        connection.execute(sa.text(f"insert into {table} ({names}) values ({binds})"), values_of)


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
