"""Drops views and functions that have to change, and restores users' dependent objects and grants afterwards.

PostgreSQL cannot replace a view if its columns change, nor drop one that other objects use. `take_down` saves the
definitions, owners, grants, and comments of all dependent objects, drops them, and returns what it saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError

RECREATED = ("view", "materialized view", "function", "procedure")
_PASSED_OVER = ("toast table", "index", "type", "composite type")  # created and dropped with their relation

# A view depends on others through its rule `_RETURN`. An object that depends on its row type depends on the view.
_REACHED = sa.text("""
    with recursive reached (classid, objid, depth) as (
      select o.classid, o.objid, 0
      from unnest(cast(:kinds as text[]), cast(:identities as text[])) as root (kind, identity)
      cross join lateral (
        select
          case when root.kind in ('function', 'procedure') then 'pg_proc' else 'pg_class' end::regclass::oid as classid,
          case
            when root.kind in ('function', 'procedure') then to_regprocedure(root.identity)::oid
            else to_regclass(root.identity)::oid
          end as objid
      ) as o
      where o.objid is not null
      union
      select at.classid, at.objid, r.depth + 1
      from reached as r
      inner join pg_depend as d on r.classid = d.refclassid and r.objid = d.refobjid
      left join pg_rewrite as w
        on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid and w.rulename = '_RETURN'
      cross join lateral (
        select
          case when w.oid is null then d.classid else 'pg_class'::regclass::oid end as classid,
          coalesce(w.ev_class, d.objid) as objid
      ) as at
      where (at.classid, at.objid) <> (r.classid, r.objid)
    )
    select r.objid, i.type as kind, i.identity, pg_describe_object(r.classid, r.objid, 0) as said
    from reached as r
    cross join lateral pg_identify_object(r.classid, r.objid, 0) as i
    group by r.classid, r.objid, i.type, i.identity
    order by max(r.depth), r.objid""")
_CREATE_RELATION = sa.text("""
    select format(
      'create %s %s%s as %s%s', cast(:kind as text), cast(:identity as text),
      ' with (' || array_to_string(c.reloptions, ', ') || ')',
      rtrim(pg_get_viewdef(c.oid), ';'), case when not c.relispopulated then ' with no data' end
    )
    from pg_class as c where c.oid = :oid
    union all
    select pg_get_indexdef(indexrelid) from pg_index where indrelid = :oid""")
_CREATE_FUNCTION = sa.text("select pg_get_functiondef(:oid)")
_COMMENTS = sa.text("""
    select
      format(
        'comment on %s is %L',
        case
          when d.objsubid = 0 then format('%s %s', cast(:kind as text), cast(:identity as text))
          else format('column %s.%I', cast(:identity as text), a.attname)
        end,
        d.description
      )
    from pg_description as d
    left join pg_attribute as a on d.objoid = a.attrelid and d.objsubid = a.attnum and d.objsubid > 0
    where
      d.objoid = :oid
      and d.classoid = case when :runs then 'pg_proc'::regclass else 'pg_class'::regclass end""")
_RIGHTS = sa.text("""
    with held as (
      select relowner as owner, relacl as acl, null::name as attname from pg_class where oid = :oid and not :runs
      union all
      select null, attacl, attname from pg_attribute where attrelid = :oid and not :runs and attacl is not null
      union all
      select proowner, proacl, null from pg_proc where oid = :oid and :runs
    )
    select
      null as attname,
      format('alter %s %s owner to %I', cast(:kind as text), cast(:identity as text), pg_get_userbyid(owner))
    from held where owner <> (select oid from pg_roles where rolname = current_user)
    union all
    select null, format('revoke all on %s %s from public', cast(:noun as text), cast(:identity as text))
    from held where owner is not null and acl is not null
    union all
    select
      attname,
      format(
        'grant %s%s on %s %s to %s%s', g.privilege_type, ' (' || quote_ident(attname) || ')', cast(:noun as text),
        cast(:identity as text), case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end,
        case when g.is_grantable then ' with grant option' end
      )
    from held cross join lateral aclexplode(acl) as g""")

_ATTACHED = sa.text("""
    with relation as (
      select c.oid, format('%I.%I', n.nspname, c.relname) as name
      from pg_class as c inner join pg_namespace as n on c.relnamespace = n.oid
      where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = any(:schemas)
    )
    select format('index %s.%I', n.nspname, c.relname), r.name, pg_get_indexdef(i.indexrelid)
    from relation as r
    inner join pg_index as i on r.oid = i.indrelid
    inner join pg_class as c on i.indexrelid = c.oid
    inner join pg_namespace as n on c.relnamespace = n.oid
    where not exists (select from pg_constraint as k where k.conindid = i.indexrelid)
    union all
    select format('trigger on %s: %I', r.name, t.tgname), r.name, pg_get_triggerdef(t.oid)
    from relation as r
    inner join pg_trigger as t on r.oid = t.tgrelid
    where not t.tgisinternal and t.tgparentid = 0
    union all
    select format('statistics %I.%I', n.nspname, s.stxname), r.name, pg_get_statisticsobjdef(s.oid)
    from relation as r
    inner join pg_statistic_ext as s on r.oid = s.stxrelid
    inner join pg_namespace as n on s.stxnamespace = n.oid
    union all
    select
      format('constraint on %s: %I', r.name, k.conname), r.name,
      format('alter table %s add constraint %I %s', r.name, k.conname, pg_get_constraintdef(k.oid))
    from relation as r
    inner join pg_constraint as k on r.oid = k.conrelid
    where k.contype in ('c', 'u', 'x', 'f') and k.conparentid = 0
    order by 1""")
SCHEMAS = ("detect", "inventory", "metrics", "public", "tickets")


def attached(connection: sa.Connection) -> dict[str, tuple[str, str]]:
    """Indexes, triggers, statistics, and constraints of our tables, whoever made them: name → (table, definition)."""
    rows = connection.execute(_ATTACHED, {"schemas": list(SCHEMAS)}).tuples()
    return {name: (table, definition) for name, table, definition in rows}


@dataclass(frozen=True)
class Saved:
    """A dropped view or function, with the statements that restore it."""

    name: str
    """`view public.volumes`, `function metrics.volume_replay(text, …)`."""
    create: list[str]
    """Statements that recreate it, with its indexes and comments."""
    rights: list[tuple[str | None, str]]
    """Statements that restore owner and grants: (column of a column grant or None, statement)."""


def take_down(connection: sa.Connection, names: Iterable[str]) -> list[Saved]:
    """Drops views and functions with all dependent objects; returns them in the order in which to recreate them.

    Raises:
        StreamwardenError: a dependent object cannot be recreated from its definition, a table for example.
    """
    reached = _reached(connection, names)
    if lost := [row.said for row in reached if row.kind not in RECREATED]:
        raise StreamwardenError(
            f"{', '.join(lost)} cannot be dropped and recreated automatically: drop it, migrate, and recreate it."
        )
    saved = [_save(connection, row.objid, row.kind, row.identity) for row in reached]
    for each in reversed(saved):
        try:
            run(connection, f"drop {each.name}")
        except psycopg.Error as error:
            raise StreamwardenError(f"{each.name} cannot be dropped to recreate it: {first_line(error)}.") from error
    return saved


def dependents(connection: sa.Connection, name: str) -> list[str]:
    """Names of the objects that depend on a view or function."""
    return [f"{row.kind} {row.identity}" for row in _reached(connection, [name])][1:]


def put_back(connection: sa.Connection, saved: Saved) -> None:
    """Recreates a dropped view or function.

    Raises:
        psycopg.Error: its definition is no longer valid.
    """
    for statement in (*saved.create, *(statement for _, statement in saved.rights)):
        run(connection, statement)


def give_rights_back(connection: sa.Connection, saved: Saved, to: str) -> None:
    """Restores owner and grants on the new version of a view or function; grants on dropped columns are ignored."""
    has = sa.text("select count(*) from pg_attribute where attrelid = to_regclass(:name) and attname = :column")
    older, newer = _parts(saved.name)[1], _parts(to)[1]
    for column, statement in saved.rights:
        if column is None or connection.execute(has, {"name": newer, "column": column}).scalar_one():
            run(connection, statement.replace(older, newer))


def run(connection: sa.Connection, statements: str) -> None:
    """Runs SQL statements literally: `%` and `:name` are not parameters."""
    # psycopg accepts several statements only without parameters, and interprets % only with parameters.
    connection.connection.cursor().execute(statements.encode())


def first_line(error: psycopg.Error) -> str:
    """PostgreSQL's message without detail and context."""
    return str(error).splitlines()[0]


def _reached(connection: sa.Connection, names: Iterable[str]) -> list[sa.Row[Any]]:
    kinds, identities = zip(*(_parts(name) for name in names), strict=True)
    rows = connection.execute(_REACHED, {"kinds": list(kinds), "identities": list(identities)})
    return [row for row in rows if not row.kind.startswith(_PASSED_OVER)]


def _parts(name: str) -> tuple[str, str]:
    kind = next(kind for kind in RECREATED if name.startswith(f"{kind} "))
    return kind, name.removeprefix(f"{kind} ")


def _save(connection: sa.Connection, oid: int, kind: str, identity: str) -> Saved:
    runs = kind in ("function", "procedure")
    resource = {"oid": oid, "kind": kind, "identity": identity, "runs": runs, "noun": kind if runs else "table"}
    create = _CREATE_FUNCTION if runs else _CREATE_RELATION
    statements = [*connection.execute(create, resource).scalars(), *connection.execute(_COMMENTS, resource).scalars()]
    return Saved(
        f"{kind} {identity}", statements, [(column, text) for column, text in connection.execute(_RIGHTS, resource)]
    )
