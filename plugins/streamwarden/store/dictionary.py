"""The data dictionary: comments of the tables, views, columns, and functions of a migrated warehouse.

Creating a database for it takes seconds, so the result is cached in var/ by the checksum of its sources.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from streamwarden.base.embedded import stop_server
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.store import dependents, migration_files
from streamwarden.store import migrate as migration
from streamwarden.store.migrate import migrate

CACHE = PROJECT_ROOT / "var" / "dictionary"
_COLUMNS = sa.text("""
    select
      n.nspname || '.' || c.relname, case c.relkind when 'v' then 'view' else 'table' end,
      coalesce(obj_description(c.oid, 'pg_class'), ''), a.attname, format_type(a.atttypid, a.atttypmod),
      coalesce(col_description(c.oid, a.attnum), ''), not a.attnotnull
    from pg_class as c
    inner join pg_namespace as n on c.relnamespace = n.oid
    inner join pg_attribute as a on c.oid = a.attrelid and a.attnum > 0 and not a.attisdropped
    where
      n.nspname in ('inventory', 'metrics', 'detect', 'tickets', 'public')
      and c.relkind in ('r', 'p', 'v') and not c.relispartition
    order by n.nspname = 'public', n.nspname, c.relname, a.attnum""")
_FUNCTIONS = sa.text("""
    select
      n.nspname || '.' || p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
      coalesce(obj_description(p.oid, 'pg_proc'), '')
    from pg_proc as p inner join pg_namespace as n on p.pronamespace = n.oid
    where n.nspname in ('inventory', 'metrics', 'detect', 'tickets', 'public')
    order by n.nspname = 'public', n.nspname, p.proname, 2""")


class Column(NamedTuple):
    """A column of a table or view."""

    relation: str
    kind: str
    """table or view."""
    relation_comment: str
    name: str
    type: str
    comment: str
    nullable: bool


class Function(NamedTuple):
    """An SQL function."""

    name: str
    arguments: str
    result: str
    comment: str


class Dictionary(NamedTuple):
    """All columns and functions of a warehouse."""

    columns: list[Column]
    functions: list[Function]


def read_dictionary(warehouse: sa.Engine) -> Dictionary:
    """The dictionary of an existing warehouse."""
    with warehouse.connect() as connection:
        return _dictionary(connection.execute(_COLUMNS).all(), connection.execute(_FUNCTIONS).all())


def dictionary() -> Dictionary:
    """The dictionary of a warehouse that is migrated from the current sql/; cached."""
    known = CACHE / f"{_checksum()}.json"
    if not known.exists():
        with tempfile.TemporaryDirectory() as folder:
            made = _made_in(Path(folder))
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(made))
    return _dictionary(*json.loads(known.read_text()))


def _made_in(folder: Path) -> Dictionary:
    try:
        warehouse = engine(embedded_url(folder / "postgres", "dictionary"))
        migrate(warehouse)
        found = read_dictionary(warehouse)
        warehouse.dispose()
        return found
    finally:
        stop_server(folder / "postgres")


def _dictionary(columns: Sequence[Sequence[Any]], functions: Sequence[Sequence[Any]]) -> Dictionary:
    return Dictionary([Column(*row) for row in columns], [Function(*row) for row in functions])


def _checksum() -> str:
    makers = [Path(module.__file__ or "") for module in (migration, migration_files, dependents)] + [Path(__file__)]
    digest = hashlib.sha256()
    for file in (*makers, *migration_files.migration_files(), *migration_files.replaceable_files()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
