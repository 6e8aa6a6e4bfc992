"""Calls SQL functions on given rows, in a transaction that is rolled back."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tests.sql.cases import insert_given
from tests.sql.rows import HOUR


def rows_for(
    warehouse: sa.Engine, given: dict[str, list[dict[str, Any]]], query: str, **parameters: Any
) -> list[tuple[Any, ...]]:
    """Rows of a query on a warehouse with the given rows only.

    Args:
        given: rows by table, as in a detector's case: `over` and lists stand for several rows.
        query: with `:hour` for the evaluated hour, and `:name` for each of `parameters`.
    """
    with warehouse.connect() as connection, connection.begin() as transaction:
        insert_given(connection, {"given": given})
        found = connection.execute(sa.text(query), {"hour": HOUR, **parameters}).all()
        transaction.rollback()
    return [tuple(row) for row in found]
