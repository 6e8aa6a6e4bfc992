"""Migrates the warehouse: `sql/migrations/NNNN_name.sql`, forward only, then `sql/functions` and `sql/views`.

In these files each table, view, function, and column has its comment next to it, which becomes a COMMENT ON:

    -- What a row of the table is.
    create table metrics.volume_sample (
      at timestamptz not null,  -- Start of the period (UTC)

    alter table metrics.volume_sample
      add column wanted_bytes double precision;  -- Requested bytes

Migrations contain tables. Functions and views need no migrations: a file with `create or replace` is applied again if
its text has changed or if one of its objects is missing. Functions come first (their bodies may use views, their
signatures may not), then views, each after those that it reads. Only objects of these files are replaced or dropped.
Objects that users build on them, in any schema, are kept; if a change requires dropping them, they are recreated.

`sql/retired.txt` lists deleted files of functions and views. If a warehouse has files that are neither in `sql/` nor
listed there, it was migrated by a newer release and is not changed. The same holds if it has already had all texts that
would be applied (`migrate --back` applies older texts on purpose).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import open_warehouse
from streamwarden.store.dependents import (
    Saved,
    attached,
    dependents,
    first_line,
    give_rights_back,
    put_back,
    run,
    take_down,
)
from streamwarden.store.migration_files import (
    checksum_of,
    comments,
    file_named,
    functions_in,
    functions_of_migrations,
    migration_files,
    name_of,
    replaceable_files,
    retired_files,
    views_in,
)

_HISTORY = """
create table if not exists public.schema_migration (
  name text primary key, checksum text not null, applied_at timestamptz not null default now());
alter table public.schema_migration add column if not exists makes text[];
alter table public.schema_migration add column if not exists superseded text[];
update public.schema_migration set makes = array['view public.' || split_part(split_part(name, '/', 2), '.', 1)]
where name like 'views/%' and makes is null;
comment on table public.schema_migration is 'Migrations, functions and views that this warehouse has.';
comment on column public.schema_migration.name is 'File name under sql/.';
comment on column public.schema_migration.checksum is 'SHA-256 of the file as it was applied; empty once it is gone.';
comment on column public.schema_migration.applied_at is 'When it was applied (UTC).';
comment on column public.schema_migration.makes is 'Views and functions that the file made.';
comment on column public.schema_migration.superseded is 'Checksums of the texts that it had before.';
"""
_REMEMBER = sa.text("""
    insert into public.schema_migration (name, checksum, makes, superseded)
    values (:name, :checksum, :makes, :superseded)
    on conflict (name) do update
    set checksum = excluded.checksum, makes = excluded.makes, superseded = excluded.superseded,
      applied_at = excluded.applied_at""")
# As jsonb, because columns may be missing in a table of an older release.
_KNOWN = sa.text("""
    select name, checksum, to_jsonb(m) -> 'makes', to_jsonb(m) -> 'superseded' from public.schema_migration as m""")
_SET_MAKES = sa.text("update public.schema_migration set makes = :makes where name = :name")
_FORGET = sa.text("""
    update public.schema_migration set checksum = '', makes = '{}', superseded = array_append(superseded, checksum)
    where name = :name and checksum <> ''""")
_FUNCTIONS = sa.text("""
    select i.type || ' ' || i.identity, cast(p.ctid as text)
    from pg_proc as p cross join lateral pg_identify_object('pg_proc'::regclass, p.oid, 0) as i
    where format('%s.%s', p.pronamespace::regnamespace, p.proname) = any(:names)""")
_VIEWS_ON_TABLES = sa.text("""
    select distinct i.type || ' ' || i.identity
    from pg_depend as d
    inner join pg_rewrite as w on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid and w.rulename = '_RETURN'
    inner join pg_class as c on d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and c.relkind in ('r', 'p')
    cross join lateral pg_identify_object('pg_class'::regclass, w.ev_class, 0) as i
    where c.relnamespace::regnamespace::text in ('inventory', 'metrics', 'detect', 'tickets')""")
_VALIDATOR = sa.text("""
    select format('%s(%s)', cast(l.lanvalidator as regproc), p.oid)
    from pg_proc as p inner join pg_language as l on p.prolang = l.oid
    -- Of a view, it would raise before PostgreSQL 16.
    where p.oid = case when cast(:identity as text) like '%(%' then to_regprocedure(:identity) end""")
_BEFORE_0_1_0 = "migrations/0003_detect.sql"
"""A migration of unreleased versions only."""
_IN_THE_WAY = {"42P16", "42P13", "2BP01", "0A000", "42P07", "42723", "42725"}
"""SQLSTATEs of objects that have to be dropped first: the definition cannot be replaced, other objects depend on it, it
exists already, or a name is ambiguous between the new and the older signature (in `comment on function`)."""


def migrate(engine: sa.Engine, *, back: bool = False) -> list[str]:
    """Applies missing and changed files in one transaction; returns their names.

    Args:
        back: also apply if the warehouse has already had all these texts, that is, migrate to an older release.

    Raises:
        StreamwardenError: an applied migration was edited, a file fails, the warehouse belongs to a newer release, or
            users' objects do not fit the new views. Nothing is changed then.
    """
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(7062)"))
        run(connection, _HISTORY)
        return _Migration(connection, back).run()


def migrated_warehouse(config: Config) -> sa.Engine:
    """Engine of the warehouse, after checking that its schema is up to date.

    Raises:
        StreamwardenError: `streamwarden migrate` is due, or the warehouse belongs to a newer release.
    """
    warehouse = open_warehouse(config)
    require_migrated(warehouse)
    return warehouse


def require_migrated(warehouse: sa.Engine) -> None:
    """Checks that the schema of the warehouse is up to date.

    Raises:
        StreamwardenError: `streamwarden migrate` is due, or the warehouse belongs to a newer release.
    """
    with warehouse.connect() as connection:
        there = connection.execute(sa.text("select to_regclass('public.schema_migration') is not null")).scalar_one()
        known = _known(connection) if there else {}
    _refuse_newer(known)
    if due := _due(known):
        raise StreamwardenError(f"the warehouse is not up to date ({_some(due)}): run `streamwarden migrate` first.")


@dataclass(frozen=True)
class _Known:
    """The row of `public.schema_migration` of a file."""

    checksum: str
    makes: list[str]
    superseded: list[str]
    """Checksums of its earlier texts, oldest first."""


_NEW = _Known("", [], [])


def _known(connection: sa.Connection) -> dict[str, _Known]:
    rows = connection.execute(_KNOWN).tuples()
    return {name: _Known(checksum, makes or [], superseded or []) for name, checksum, makes, superseded in rows}


class _Migration:
    """The state of one run: applied files, and dropped objects that have to be restored."""

    def __init__(self, connection: sa.Connection, back: bool) -> None:
        self.connection, self.back = connection, back
        self.known = _known(connection)
        self.makes = {name: known.makes for name, known in self.known.items()}
        self.ours = self._ours()
        self.down: list[Saved] = []
        self.left_over: dict[str, list[str]] = {}

    def run(self) -> list[str]:
        """Applies the files and returns their names."""
        _refuse_newer(self.known, self.back)
        # Function bodies are checked at the end, when all objects exist. Names are schema-qualified.
        run(self.connection, "set local check_function_bodies = off; set local search_path = pg_catalog")
        applied = [name_of(file) for file in migration_files() if self._apply_migration(file)]
        applied += [name_of(file) for file in replaceable_files() if self._renew(file)]
        self._put_others_back()
        self._drop_left_over()
        if applied:
            self._check_bodies()
        return applied

    def _apply_migration(self, file: Path) -> bool:
        if known := self.known.get(name_of(file)):
            if known.checksum != checksum_of(file):
                raise StreamwardenError(
                    f"sql/{name_of(file)}: was edited after it was applied. Restore it and add a new migration."
                )
            return False
        before = attached(self.connection)
        self._execute(file, lambda: list(self.connection.execute(_VIEWS_ON_TABLES).scalars()))
        self._keep_attached(file, before)
        self._comment(file)
        self._remember(file, [])
        return True

    def _keep_attached(self, file: Path, before: dict[str, tuple[str, str]]) -> None:
        """Restores what was attached to our tables and is gone, such as a user's index on a table that was replaced.

        What the file names itself is dropped on purpose, and so is what was attached to a table that is gone.
        """
        text, after = file.read_text(), attached(self.connection)
        lost = {name: made for name, made in before.items() if name not in after}
        for name, (table, definition) in lost.items():
            if not self._exists(f"view {table}") or re.search(
                rf"\b{re.escape(name.split()[-1].split('.')[-1])}\b", text
            ):
                continue
            try:
                with self.connection.begin_nested():
                    run(self.connection, definition)
            except psycopg.Error as error:
                raise StreamwardenError(
                    f"nothing was changed: sql/{name_of(file)} would drop {name}, and it does not fit the new table"
                    f" ({first_line(error)}). Change or drop it first."
                ) from error

    def _renew(self, file: Path) -> bool:
        """Applies a file if its text has changed or one of its objects is missing; True if the text has changed."""
        had = self.makes.get(name_of(file), [])
        changed = self.known.get(name_of(file), _NEW).checksum != checksum_of(file)
        if not changed and all(self._exists(made) for made in had):
            return False
        self._refuse_what_others_made(file)
        before = self._functions(file)
        self._execute(file, lambda: had or list(before))
        after = self._functions(file)
        self._refuse_functions_of_others(file, {f for f in after if after[f] != before.get(f, after[f])})
        makes = [f"view {view}" for view in views_in(file)] + [f for f in after if after[f] != before.get(f)]
        self._part_with(file, [made for made in had if made not in makes], makes)
        self._comment(file)
        self._remember(file, makes)
        for saved in self.down:
            for made in makes:
                if made == saved.name or (saved.name in had and _callable(made) == _callable(saved.name)):
                    give_rights_back(self.connection, saved, made)
        return changed

    def _part_with(self, file: Path, gone: list[str], makes: list[str]) -> None:
        """Drops older signatures at once, because callers still find them; other objects at the end, if unused."""
        still = {_callable(made) for made in makes}
        self.left_over[name_of(file)] = [made for made in gone if _callable(made) not in still]
        if older := [made for made in gone if _callable(made) in still]:
            self._take_down(file, older)

    def _execute(self, file: Path, in_its_way: Callable[[], list[str]]) -> None:
        try:
            with self.connection.begin_nested():
                run(self.connection, file.read_text())
                return
        except psycopg.Error as error:
            if error.sqlstate not in _IN_THE_WAY or not (names := in_its_way()):
                raise StreamwardenError(f"sql/{name_of(file)}: {first_line(error)}") from error
        self._take_down(file, names)
        try:
            run(self.connection, file.read_text())
        except psycopg.Error as error:
            raise StreamwardenError(f"sql/{name_of(file)}: {first_line(error)}") from error

    def _take_down(self, file: Path, names: list[str]) -> None:
        try:
            self.down += take_down(self.connection, names)
        except StreamwardenError as error:
            raise StreamwardenError(f"sql/{name_of(file)}: {error}") from error

    def _put_others_back(self) -> None:
        waiting = [saved for saved in self.down if saved.name not in self.ours | self._ours()]
        while waiting:
            errors = {saved.name: error for saved in waiting if (error := self._try(saved))}
            if len(errors) == len(waiting):
                raise StreamwardenError(
                    "nothing was changed: objects that depend on Streamwarden's views do not fit the new views:"
                    f" {'; '.join(f'{name} ({error})' for name, error in errors.items())}. Change or drop them first."
                )
            waiting = [saved for saved in waiting if saved.name in errors]

    def _try(self, saved: Saved) -> str | None:
        try:
            with self.connection.begin_nested():
                put_back(self.connection, saved)
                return None
        except psycopg.Error as error:
            return first_line(error)

    def _drop_left_over(self) -> None:
        """Drops objects that no file creates any more. An object with dependents stays until a later migration."""
        there = {name_of(file) for file in (*migration_files(), *replaceable_files())}
        left_over = {**self.left_over, **{name: self.makes.pop(name) for name in set(self.makes) - there}}
        gone = {made for makes in left_over.values() for made in makes} - self._ours()
        waiting = [made for made in sorted(gone) if self._exists(made)]
        while unused := [made for made in waiting if not dependents(self.connection, made)]:
            for made in unused:
                run(self.connection, f"drop {made}")
            waiting = [made for made in waiting if made not in unused]
        for name, makes in left_over.items():
            kept = [made for made in makes if made in waiting]
            if name in there or kept:
                self.connection.execute(_SET_MAKES, {"name": name, "makes": self.makes.get(name, []) + kept})
            else:
                self.connection.execute(_FORGET, {"name": name})

    def _refuse_what_others_made(self, file: Path) -> None:
        for view in views_in(file):
            if f"view {view}" not in self.ours and self._exists(f"view {view}"):
                raise StreamwardenError(
                    f"sql/{name_of(file)}: {view} exists and is not Streamwarden's. Rename it: `alter view … rename"
                    " to …`."
                )

    def _refuse_functions_of_others(self, file: Path, replaced: set[str]) -> None:
        """Checked after the file has run, when the signatures are known; an error rolls everything back."""
        for made in sorted(replaced - self.ours):
            if _callable(made) not in functions_of_migrations():
                raise StreamwardenError(
                    f"sql/{name_of(file)}: {made.removeprefix('function ')} exists and is not Streamwarden's. Rename"
                    f" it: `alter {made} rename to …`."
                )

    def _check_bodies(self) -> None:
        run(self.connection, "set local check_function_bodies = on")
        for name, makes in self.makes.items():
            for made in makes:
                identity = {"identity": made.removeprefix("function ")}
                for validator in self.connection.execute(_VALIDATOR, identity).scalars():
                    try:
                        run(self.connection, f"select {validator}")
                    except psycopg.Error as error:
                        raise StreamwardenError(f"sql/{name}: {first_line(error)}") from error

    def _functions(self, file: Path) -> dict[str, str]:
        """Functions with the names in a file, each with the ctid of its row, which changes when it is replaced."""
        return dict(self.connection.execute(_FUNCTIONS, {"names": functions_in(file)}).tuples().all())

    def _ours(self) -> set[str]:
        return {made for makes in self.makes.values() for made in makes}

    def _exists(self, made: str) -> bool:
        kind, name = made.split(" ", 1)
        look_up = "to_regclass(:name)" if kind == "view" else "to_regprocedure(:name)"
        return bool(self.connection.execute(sa.text(f"select {look_up} is not null"), {"name": name}).scalar_one())

    def _comment(self, file: Path) -> None:
        for statement in comments(file.read_text()):
            try:
                run(self.connection, statement)
            except psycopg.Error as error:
                raise StreamwardenError(f"sql/{name_of(file)}: {first_line(error)}") from error

    def _remember(self, file: Path, makes: list[str]) -> None:
        self.makes[name_of(file)] = makes
        checksum, known = checksum_of(file), self.known.get(name_of(file), _NEW)
        if self.back and checksum in known.superseded:  # later texts may be applied again
            superseded = known.superseded[: known.superseded.index(checksum)]
        else:
            superseded = [had for had in (*known.superseded, known.checksum) if had not in ("", checksum)]
        row = {"name": name_of(file), "checksum": checksum, "makes": makes, "superseded": superseded}
        self.connection.execute(_REMEMBER, row)


def _due(known: dict[str, _Known]) -> list[str]:
    """Names of the files whose text differs from the applied one."""
    files = (*migration_files(), *replaceable_files())
    return [name_of(file) for file in files if known.get(name_of(file), _NEW).checksum != checksum_of(file)]


def _refuse_newer(known: dict[str, _Known], back: bool = False) -> None:
    retired = retired_files()
    if _BEFORE_0_1_0 in known:
        raise StreamwardenError(
            "the warehouse was created before release 0.1.0, which has a new schema. Migrate a new database"
            " (`warehouse.url`, or another `warehouse.data_folder`); this one is not changed."
        )
    if unknown := [name for name in sorted(known) if not file_named(name).exists() and name not in retired]:
        raise StreamwardenError(
            f"the warehouse was migrated by a newer release: this release does not have {_some(unknown)}. Nothing was"
            " changed; run the newer release. (If the file was deleted on purpose, list it in sql/retired.txt.)"
        )
    due = [] if back else _due(known)
    if due and all(checksum_of(file_named(name)) in known.get(name, _NEW).superseded for name in due):
        raise StreamwardenError(
            f"the warehouse was migrated by a newer release: this release has an older text of {_some(due)}. Nothing"
            " was changed; run the newer release. (To go back on purpose: `streamwarden migrate --back`.)"
        )


def _some(names: list[str]) -> str:
    return f"sql/{names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _callable(made: str) -> str:
    return made.split("(")[0]
