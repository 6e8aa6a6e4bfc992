"""Brings the warehouse's schema up to date: `sql/migrations/NNNN_name.sql`, forward only, then `sql/views/*.sql` anew.

In these files every table and column carries its comment on the spot, and the migrator turns it into COMMENT ON:

    -- What a row of the table is.
    create table metrics.volume_sample (
      at timestamptz not null,  -- Start of the period (UTC)

    alter table metrics.volume_sample
      add column wanted_bytes double precision;  -- Bytes that were asked for

Views are dropped and made again whenever their text has changed, so they need no migrations.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

MIGRATIONS = PROJECT_ROOT / "sql" / "migrations"
VIEWS = PROJECT_ROOT / "sql" / "views"
_HISTORY = """
create table if not exists public.schema_migration (
  name text primary key, checksum text not null, applied_at timestamptz not null default now());
comment on table public.schema_migration is 'Migrations and views that this warehouse has.';
comment on column public.schema_migration.name is 'File name under sql/.';
comment on column public.schema_migration.checksum is 'SHA-256 of the file as it was applied.';
comment on column public.schema_migration.applied_at is 'When it was applied (UTC).';
"""


def migrate(engine: sa.Engine) -> list[str]:
    """Applies what is missing, in one transaction; returns the names of the files applied.

    Raises:
        StreamwardenError: an applied migration was edited, or one fails; nothing is changed then.
    """
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(7062)"))
        connection.exec_driver_sql(_HISTORY)
        had = connection.execute(sa.text("select name, checksum from public.schema_migration"))
        known: dict[str, str] = dict(had.tuples().all())
        applied = [name for name in (_apply_migration(connection, f, known) for f in _files(MIGRATIONS)) if name]
        return applied + _renew_views(connection, known, force=bool(applied))


def _apply_migration(connection: sa.Connection, file: Path, known: dict[str, str]) -> str | None:
    name, checksum = f"migrations/{file.name}", _checksum(file)
    if name in known:
        if known[name] != checksum:
            raise StreamwardenError(f"sql/{name}: was edited after it was applied. Restore it and add a new migration.")
        return None
    _execute(connection, file, name)
    _remember(connection, name, checksum)
    return name


def _renew_views(connection: sa.Connection, known: dict[str, str], *, force: bool) -> list[str]:
    files = list(_files(VIEWS))
    wanted = {f"views/{file.name}": _checksum(file) for file in files}
    had = {name: checksum for name, checksum in known.items() if name.startswith("views/")}
    if wanted == had and not force:
        return []
    for view in connection.execute(
        sa.text("select quote_ident(viewname) from pg_views where schemaname = 'public' and viewowner = current_user")
    ).scalars():
        connection.exec_driver_sql(f"drop view if exists public.{view} cascade")
    connection.execute(sa.text("delete from public.schema_migration where name like 'views/%'"))
    for file in files:
        _execute(connection, file, f"views/{file.name}")
        _remember(connection, f"views/{file.name}", _checksum(file))
    return [name for name in wanted if wanted[name] != had.get(name)]


def _execute(connection: sa.Connection, file: Path, name: str) -> None:
    text = file.read_text()
    try:
        with connection.begin_nested():
            # psycopg takes several statements at once only without parameters, and reads % only with them.
            connection.connection.cursor().execute(text.encode())
            for statement in comments(text):
                connection.exec_driver_sql(statement)
    except Exception as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        raise StreamwardenError(f"sql/{name}: {reason}") from error


def _remember(connection: sa.Connection, name: str, checksum: str) -> None:
    connection.execute(
        sa.text("insert into public.schema_migration (name, checksum) values (:name, :checksum)"),
        {"name": name, "checksum": checksum},
    )


def comments(text: str) -> Iterator[str]:
    """COMMENT ON statements for the `-- …` lines above each table or view, and behind each of its columns."""
    heading: list[str] = []
    relation: tuple[str, str] | None = None
    for line in text.splitlines():
        if opened := re.match(r"(?:create (?:or replace )?|alter )(table|view) (?:if not exists )?([\w.]+)", line):
            relation = (opened[1], opened[2])
            if heading and not line.startswith("alter"):
                yield _comment(f"{relation[0]} {relation[1]}", " ".join(heading))
            heading = []
        elif line.startswith("-- "):
            heading.append(line[3:].strip())
        elif relation and (column := _commented_column(line, relation[0])):
            yield _comment(f"column {relation[1]}.{column[0]}", column[1])
        elif not line.startswith(" "):
            heading = []
            relation = None if line.startswith((")", "from")) or not line.strip() else relation


def _commented_column(line: str, kind: str) -> tuple[str, str] | None:
    # A table's column begins with its name; a view's ends in it: `… as name,  -- comment`, `t.name,  -- comment`.
    found = re.match(r"  (?:add column )?(\w+) .*?-- (.+)$" if kind == "table" else r"  .*?(\w+),?\s+-- (.+)$", line)
    return (found[1], found[2].strip()) if found else None


def _comment(target: str, text: str) -> str:
    quoted = text.replace("'", "''").replace("%", "%%")
    return f"comment on {target} is '{quoted}'"


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("*.sql")))


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
