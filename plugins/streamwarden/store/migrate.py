"""Brings the warehouse up to date: `sql/migrations/NNNN_name.sql`, forward only, then `sql/functions` and `sql/views`.

In these files every table, view, function and column carries its comment on the spot, and the migrator turns it into
COMMENT ON:

    -- What a row of the table is.
    create table metrics.volume_sample (
      at timestamptz not null,  -- Start of the period (UTC)

    alter table metrics.volume_sample
      add column wanted_bytes double precision;  -- Bytes that were asked for

Migrations hold tables. Functions and views are made by `create or replace`, each file again when its text has changed
or what it makes is missing, so they need no migrations. Functions come first (their bodies may name views, their
signatures may not), then views, each behind those it reads. Only what these files made is ever replaced or dropped.
What people build on it, in any schema, is kept; where it has to give way to a change, it is made again.

A file of a function or view that is deleted is named in `sql/retired.txt`. A warehouse that has files which are neither
here nor there was migrated by a newer release, and is left alone; so is one that has had all that would be applied
(`migrate --back` goes back to it on purpose).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import psycopg
import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.base.warehouse import open_warehouse
from streamwarden.store.dependents import Saved, dependents, first_line, give_rights_back, put_back, run, take_down

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
# As jsonb, so that a column may be missing: an older release made the table.
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
    from pg_proc as p inner join pg_language as l on p.prolang = l.oid where p.oid = to_regprocedure(:identity)""")
# A definition that can't be replaced as it stands, a thing that others depend on, one that is there already; a name
# that means both the new signature and the older one (a file's `comment on function`).
_BEFORE_0_1_0 = "migrations/0003_detect.sql"
"""A migration that only unreleased versions had."""
_IN_THE_WAY = {"42P16", "42P13", "2BP01", "0A000", "42P07", "42723", "42725"}


def migrate(engine: sa.Engine, *, back: bool = False) -> list[str]:
    """Applies what is missing, in one transaction; returns the names of the files applied.

    With `back` also where all of it are texts that the warehouse has had before.

    Raises:
        StreamwardenError: an applied migration was edited, a file fails, the warehouse is a newer release's, or what
            people built doesn't fit any more. Nothing is changed then.
    """
    with engine.begin() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock(7062)"))
        run(connection, _HISTORY)
        return _Migration(connection, back).run()


def migrated_warehouse(config: Config) -> sa.Engine:
    """Engine on the warehouse for whoever works with its tables.

    Raises:
        StreamwardenError: `streamwarden migrate` is due, or the warehouse is a newer release's.
    """
    warehouse = open_warehouse(config)
    require_migrated(warehouse)
    return warehouse


def require_migrated(warehouse: sa.Engine) -> None:
    """Refuses a warehouse for which `streamwarden migrate` is due, and a newer release's."""
    with warehouse.connect() as connection:
        there = connection.execute(sa.text("select to_regclass('public.schema_migration') is not null")).scalar_one()
        known = _known(connection) if there else {}
    _refuse_newer(known)
    if due := _due(known):
        raise StreamwardenError(f"the warehouse isn't up to date ({_some(due)}): run `streamwarden migrate` first.")


@dataclass(frozen=True)
class _Known:
    """What the warehouse knows of a file."""

    checksum: str
    makes: list[str]
    superseded: list[str]
    """Checksums of its earlier texts, the oldest first."""


_NEW = _Known("", [], [])


def _known(connection: sa.Connection) -> dict[str, _Known]:
    rows = connection.execute(_KNOWN).tuples()
    return {name: _Known(checksum, makes or [], superseded or []) for name, checksum, makes, superseded in rows}


class _Migration:
    """One run: what the warehouse had, and what was taken down on the way."""

    def __init__(self, connection: sa.Connection, back: bool) -> None:
        self.connection, self.back = connection, back
        self.known = _known(connection)
        self.makes = {name: known.makes for name, known in self.known.items()}
        self.ours = self._ours()
        self.down: list[Saved] = []
        self.left_over: dict[str, list[str]] = {}

    def run(self) -> list[str]:
        """Returns the names of the files applied."""
        _refuse_newer(self.known, self.back)
        # Bodies are checked at the end, when all that they name is there. Names are written out in full.
        run(self.connection, "set local check_function_bodies = off; set local search_path = pg_catalog")
        applied = [_name(file) for file in migration_files() if self._apply_migration(file)]
        applied += [_name(file) for file in replaceable_files() if self._renew(file)]
        self._put_others_back()
        self._drop_left_over()
        if applied:
            self._check_bodies()
        return applied

    def _apply_migration(self, file: Path) -> bool:
        if known := self.known.get(_name(file)):
            if known.checksum != _checksum(file):
                raise StreamwardenError(
                    f"sql/{_name(file)}: was edited after it was applied. Restore it and add a new migration."
                )
            return False
        self._execute(file, lambda: list(self.connection.execute(_VIEWS_ON_TABLES).scalars()))
        self._comment(file)
        self._remember(file, [])
        return True

    def _renew(self, file: Path) -> bool:
        """Makes what a file makes if its text has changed or something of it is missing; true if it has changed."""
        had = self.makes.get(_name(file), [])
        changed = self.known.get(_name(file), _NEW).checksum != _checksum(file)
        if not changed and all(self._exists(made) for made in had):
            return False
        self._refuse_what_others_made(file)
        before = self._functions(file)
        self._execute(file, lambda: had or list(before))
        after = self._functions(file)
        self._refuse_functions_of_others(file, {f for f in after if after[f] != before.get(f, after[f])})
        makes = [f"view {view}" for view in _views(file)] + [f for f in after if after[f] != before.get(f)]
        self._part_with(file, [made for made in had if made not in makes], makes)
        self._comment(file)
        self._remember(file, makes)
        for saved in self.down:
            for made in makes:
                if made == saved.name or (saved.name in had and _callable(made) == _callable(saved.name)):
                    give_rights_back(self.connection, saved, made)
        return changed

    def _part_with(self, file: Path, gone: list[str], makes: list[str]) -> None:
        """Drops older signatures at once, since callers would still find them; other things at the end, if unused."""
        still = {_callable(made) for made in makes}
        self.left_over[_name(file)] = [made for made in gone if _callable(made) not in still]
        if older := [made for made in gone if _callable(made) in still]:
            self._take_down(file, older)

    def _execute(self, file: Path, in_its_way: Callable[[], list[str]]) -> None:
        try:
            with self.connection.begin_nested():
                run(self.connection, file.read_text())
                return
        except psycopg.Error as error:
            if error.sqlstate not in _IN_THE_WAY or not (names := in_its_way()):
                raise StreamwardenError(f"sql/{_name(file)}: {first_line(error)}") from error
        self._take_down(file, names)
        try:
            run(self.connection, file.read_text())
        except psycopg.Error as error:
            raise StreamwardenError(f"sql/{_name(file)}: {first_line(error)}") from error

    def _take_down(self, file: Path, names: list[str]) -> None:
        try:
            self.down += take_down(self.connection, names)
        except StreamwardenError as error:
            raise StreamwardenError(f"sql/{_name(file)}: {error}") from error

    def _put_others_back(self) -> None:
        waiting = [saved for saved in self.down if saved.name not in self.ours | self._ours()]
        while waiting:
            errors = {saved.name: error for saved in waiting if (error := self._try(saved))}
            if len(errors) == len(waiting):
                raise StreamwardenError(
                    "nothing was changed, since what was built on Streamwarden's views doesn't fit their new form:"
                    f" {'; '.join(f'{name} ({error})' for name, error in errors.items())}. Change or drop it first."
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
        """Drops what no file makes any more, unless something depends on it: then it is tried again next time."""
        there = {_name(file) for file in (*migration_files(), *replaceable_files())}
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
        for view in _views(file):
            if f"view {view}" not in self.ours and self._exists(f"view {view}"):
                raise StreamwardenError(
                    f"sql/{_name(file)}: {view} exists and isn't Streamwarden's. Rename it: `alter view … rename to …`."
                )

    def _refuse_functions_of_others(self, file: Path, replaced: set[str]) -> None:
        """Signatures are known once the file has run; what it did is rolled back then."""
        for made in sorted(replaced - self.ours):
            if _callable(made) not in _functions_of_migrations():
                raise StreamwardenError(
                    f"sql/{_name(file)}: {made.removeprefix('function ')} exists and isn't Streamwarden's. Rename it:"
                    f" `alter {made} rename to …`."
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
        """Functions by the names in a file, each with the place of its row, which is another once it was made anew."""
        return dict(self.connection.execute(_FUNCTIONS, {"names": _function_names(file)}).tuples().all())

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
                raise StreamwardenError(f"sql/{_name(file)}: {first_line(error)}") from error

    def _remember(self, file: Path, makes: list[str]) -> None:
        self.makes[_name(file)] = makes
        checksum, known = _checksum(file), self.known.get(_name(file), _NEW)
        if self.back and checksum in known.superseded:  # what came after it is undone, and may come again
            superseded = known.superseded[: known.superseded.index(checksum)]
        else:
            superseded = [had for had in (*known.superseded, known.checksum) if had not in ("", checksum)]
        row = {"name": _name(file), "checksum": checksum, "makes": makes, "superseded": superseded}
        self.connection.execute(_REMEMBER, row)


def _due(known: dict[str, _Known]) -> list[str]:
    """Names of the files whose text isn't the one that the warehouse has."""
    files = (*migration_files(), *replaceable_files())
    return [_name(file) for file in files if known.get(_name(file), _NEW).checksum != _checksum(file)]


def _refuse_newer(known: dict[str, _Known], back: bool = False) -> None:
    retired = {
        line.split()[0] for line in (SQL / "retired.txt").read_text().splitlines() if line.strip()[:1] not in ("", "#")
    }
    if _BEFORE_0_1_0 in known:
        raise StreamwardenError(
            "the warehouse was made before release 0.1.0, whose schema starts anew. Migrate into a new database"
            " (`warehouse.url`, or another `warehouse.data_folder`); this one stays as it is."
        )
    if unknown := [name for name in sorted(known) if not (SQL / name).exists() and name not in retired]:
        raise StreamwardenError(
            f"the warehouse was migrated by a newer release: this release does not have {_some(unknown)}. Nothing was"
            " changed; run the newer release. (If the file was deleted on purpose, list it in sql/retired.txt.)"
        )
    due = [] if back else _due(known)
    if due and all(_checksum(SQL / name) in known.get(name, _NEW).superseded for name in due):
        raise StreamwardenError(
            f"the warehouse was migrated by a newer release: this one has an older text of {_some(due)}. Nothing was"
            " changed; run that release. (To go back to the older text on purpose: `streamwarden migrate --back`.)"
        )


def _some(names: list[str]) -> str:
    return f"sql/{names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def comments(text: str) -> Iterator[str]:
    """COMMENT ON statements for the `-- …` lines above each table, view or function, and behind each column."""
    heading: list[str] = []
    relation: tuple[str, str] | None = None
    view: tuple[str, str] | None = None  # its columns are those of the select that begins a line: no CTE's
    for line in text.splitlines():
        if opened := re.match(
            r"(?:create (?:or replace )?|alter )(table|view|function) (?:if not exists )?([\w.]+)", line
        ):
            if heading and not line.startswith("alter"):
                yield _comment(f"{opened[1]} {opened[2]}", " ".join(heading))
            relation = (opened[1], opened[2]) if opened[1] == "table" else None
            view = (opened[1], opened[2]) if opened[1] == "view" else None
            heading = []
        elif line.startswith("select") and view:
            relation = view
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
    quoted = text.replace("'", "''")
    return f"comment on {target} is '{quoted}'"


def migration_files() -> list[Path]:
    """Migrations, in order."""
    return sorted((SQL / "migrations").glob("*.sql"))


def replaceable_files() -> list[Path]:
    """Functions, then views, each behind those it reads."""
    made_by = {view: file for file in sorted((SQL / "views").glob("*.sql")) for view in _views(file)}
    reads = {
        file: {made_by[name] for name in re.findall(r"\w+\.\w+", file.read_text()) if name in made_by} - {file}
        for file in made_by.values()
    }
    return [*sorted((SQL / "functions").glob("*.sql")), *TopologicalSorter(reads).static_order()]


def _views(file: Path) -> list[str]:
    return re.findall(r"^create (?:or replace )?view ([\w.]+)", file.read_text(), re.MULTILINE)


def _function_names(file: Path) -> list[str]:
    return re.findall(r"^create (?:or replace )?function ([\w.]+)", file.read_text(), re.MULTILINE)


def _functions_of_migrations() -> set[str]:
    """Some functions were made by migrations before they had files of their own."""
    return {f"function {name}" for file in migration_files() for name in _function_names(file)}


def _callable(made: str) -> str:
    return made.split("(")[0]


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
