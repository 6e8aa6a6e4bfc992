"""Evaluates one detector for one hour and stores the findings, with metrics, messages, and the checksum of the SQL."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import psycopg
import sqlalchemy as sa

from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import ensure_day
from streamwarden.detectors import select
from streamwarden.detectors.bootstrap import BootstrapServers
from streamwarden.detectors.exceptions import applies_to, exceptions_of
from streamwarden.detectors.finding import Finding, make_finding
from streamwarden.detectors.load import EXCEPTED, Detector
from streamwarden.detectors.price_age import with_age_of_prices
from streamwarden.detectors.resources import KINDS, Resource, resource_key
from streamwarden.detectors.results import DetectorRun, Params, store_run

log = logging.getLogger(__name__)

Row = dict[str, Any]


def evaluate(engine: sa.Engine, detector: Detector, hour: datetime, config: Config) -> DetectorRun:
    """Runs a detector for an hour and replaces its evaluations of that hour, in one transaction.

    If tables of the detector were not loaded for the hour, it is blocked: earlier evaluations of the hour stay.
    """
    params = detector.params_in_force(config)
    started = time.monotonic()
    found: list[Finding] = []
    # Before any table is read: partitions lock tables that another detector of the hour may hold in another order.
    ensure_day(engine, hour.date())
    with engine.begin() as connection:
        connection.execute(_FOR_LARGE_QUERIES)
        missing = _not_loaded(connection, detector, hour, config)
        problem = next(iter(missing.values()), None)
        status = "blocked" if problem else "evaluated"
        if not problem:
            sync_config(connection, config)
            try:
                found = findings(connection, detector, hour, config, params)
            except StreamwardenError as error:
                status, problem, found = "failed", f"{error}{_shown(error.excerpt)}", []
    counts = {s: sum(finding.status == s for finding in found) for s in ("firing", "ok", "unknown")}
    detector_run = DetectorRun(
        detector.id, status, problem, counts["firing"], counts["ok"], counts["unknown"], tuple(missing)
    )
    store_run(engine, detector, hour, config, params, detector_run, found, time.monotonic() - started)
    return detector_run


def findings(
    connection: sa.Connection, detector: Detector, hour: datetime, config: Config, params: Params
) -> list[Finding]:
    """The findings of a detector for all resources of an hour, with the config's exceptions. Stores nothing.

    Raises:
        StreamwardenError: PostgreSQL rejects the SQL, or a row is invalid; one line.
    """
    found: list[Finding] = []
    bootstrap = BootstrapServers.of(connection, config, hour)
    for one in evaluated_rows(connection, detector, hour, config, params, {}):
        if one.excepted:
            message = f"Excluded by the config: {one.excepted}."
            found.append(Finding(detector.id, one.resource, EXCEPTED, "ok", None, {}, message))
        else:
            context = _context(one.resource, bootstrap)
            found.append(make_finding(detector, one.row, one.resource, one.params, context))
    return with_age_of_prices(connection, hour, found)


@dataclass(frozen=True)
class EvaluatedRow:
    """A row of a detector's SQL about a resource, and the parameters that apply to the resource."""

    resource: Resource
    row: Row
    params: Params
    excepted: str = ""
    """The reason of the exception, if the config excludes the resource; else empty."""


def evaluated_rows(
    connection: sa.Connection, detector: Detector, hour: datetime, config: Config, params: Params,
    known: dict[str, Resource],
) -> Iterator[EvaluatedRow]:  # fmt: skip
    """A detector's rows of an hour, with the config's exceptions.

    Args:
        known: a cache of resources by key; the resources of this hour are added.
    """
    rows = _by_key(detector, run(connection, detector, hour, params))
    if unknown := {key: row for key, row in rows.items() if key not in known}:
        known |= _resources(connection, detector, hour, unknown)
    exceptions = [(n, one) for n, one in enumerate(exceptions_of(detector, config)) if one.holds_in(hour)]
    with_params: dict[int, dict[str, Row]] = {}
    for key, row in rows.items():
        resource = known[key]
        matching = next((pair for pair in exceptions if applies_to(pair[1], resource)), None)
        if matching is None:
            yield EvaluatedRow(resource, row, params)
        elif matching[1].off:
            yield EvaluatedRow(resource, row, params, matching[1].why)
        else:
            number, exception = matching
            own = {**params, **exception.params}
            if number not in with_params:
                with_params[number] = _by_key(detector, run(connection, detector, hour, own))
            yield EvaluatedRow(resource, with_params[number].get(key, row), own)


def run(connection: sa.Connection, detector: Detector, hour: datetime, params: Params) -> list[Row]:
    """The rows of a detector's SQL for an hour.

    Raises:
        StreamwardenError: PostgreSQL rejects the SQL; with file, line, and column, and the line as excerpt.
    """
    statement = _positional(detector.sql)
    values: dict[str, Any] = {"hour": hour, **params}
    raw: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    with connection.begin_nested():
        cursor = psycopg.RawCursor(raw)
        try:
            cursor.execute(statement.text.encode(), [values[name] for name in statement.names])
        except psycopg.Error as error:
            raise _refused(detector, statement, error) from None
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


@cache
def _positional(sql: str) -> select.Positional:
    return select.positional(sql)


def _refused(detector: Detector, statement: select.Positional, error: psycopg.Error) -> StreamwardenError:
    message = error.diag.message_primary or str(error).splitlines()[0]
    if not error.diag.statement_position:
        return StreamwardenError(f"{detector.file}: {message}")
    place = statement.original(int(error.diag.statement_position) - 1)
    before = detector.sql[:place]
    line, column = before.count("\n") + 1, place - before.rfind("\n")
    text = detector.sql.splitlines()[line - 1]
    return StreamwardenError(f"{detector.file}:{line}:{column}: {message}", f"{text}\n{' ' * (column - 1)}^")


def _shown(excerpt: str) -> str:
    return f" (`{excerpt.splitlines()[0].strip()}`)" if excerpt else ""


def _by_key(detector: Detector, rows: Sequence[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        if missing := [column for column in detector.identity if row.get(column) is None]:
            raise StreamwardenError(f"{detector.file}: key column {missing[0]} is null in a row ({row['reason']}).")
        kind = detector.kind_of(row)
        key = resource_key(kind, *(str(row[column]) for column in KINDS[kind]))
        if key in found:
            raise StreamwardenError(f"{detector.file}: two rows about {key}.")
        found[key] = row
    return found


def _resources(
    connection: sa.Connection, detector: Detector, hour: datetime, rows: Mapping[str, Row]
) -> dict[str, Resource]:
    """The resources of rows, by key, with name, owner, and application from the warehouse."""
    known = connection.execute(_RESOURCES, {"hour": hour, "kinds": list(detector.kinds), "keys": list(rows)}).mappings()
    by_key = {row["key"]: row for row in known}
    resources = {}
    for key, row in rows.items():
        kind = detector.kind_of(row)
        columns = {column: str(row[column]) for column in KINDS[kind]}
        own = by_key.get(key)
        name = own["name"] if own else "/".join(v for c, v in columns.items() if c not in ("account", "region"))
        resources[key] = Resource(
            kind, columns, name, own["owner"] if own else None, own["application"] if own else None
        )
    return resources


def _context(resource: Resource, bootstrap: BootstrapServers) -> dict[str, Any]:
    return {
        "name": resource.name, "owner": resource.owner, "application": resource.application,
        "bootstrap_servers": bootstrap.servers(resource.columns.get("cluster") or ""),
    }  # fmt: skip


def sync_config(connection: sa.Connection, config: Config) -> None:
    """Writes the config's `owners` and `latency_targets` to the tables that SQL reads."""
    owners = [(n, one.key_pattern, one.owner) for n, one in enumerate(config.owners) if one.key_pattern]
    targets = [(n, one.key_pattern, one.seconds) for n, one in enumerate(config.latency_targets)]
    _sync(connection, "detect.owner", "owner", owners)
    _sync(connection, "detect.latency_target", "seconds", targets)


_RUN: dict[str, bool] = {}
"""Checked patterns, and whether PostgreSQL accepts them."""


def _runs(connection: sa.Connection, table: str, pattern: str) -> bool:
    """Whether PostgreSQL accepts a pattern. A rejected one is logged and ignored, so that it fails no detector."""
    if pattern not in _RUN:
        try:
            with connection.begin_nested():
                connection.execute(sa.text("select '' ~ :pattern"), {"pattern": pattern})
            _RUN[pattern] = True
        except sa.exc.DBAPIError as error:
            if not isinstance(error.orig, psycopg.errors.InvalidRegularExpression):
                raise
            log.warning("%s: key_pattern %r is ignored: %s", table, pattern, str(error.orig).splitlines()[0])
            _RUN[pattern] = False
    return _RUN[pattern]


def _sync(connection: sa.Connection, table: str, column: str, wanted: Sequence[tuple[int, str, str | float]]) -> None:
    """Replaces the rows of a table of patterns if they differ from `wanted`: (position, pattern, value)."""
    names = f"position, key_pattern, {column}"
    wanted = [one for one in wanted if _runs(connection, table, one[1])]
    has = connection.execute(sa.text(f"select {names} from {table} order by position")).all()  # noqa: S608 our own names
    if [tuple(row) for row in has] == wanted:
        return
    connection.execute(sa.text(f"lock table {table} in share row exclusive mode"))
    connection.execute(sa.text(f"delete from {table}"))  # noqa: S608
    if wanted:
        connection.execute(
            sa.text(f"insert into {table} ({names}) values (:position, :key_pattern, :value)"),  # noqa: S608
            [{"position": n, "key_pattern": pattern, "value": value} for n, pattern, value in wanted],
        )


def _not_loaded(connection: sa.Connection, detector: Detector, hour: datetime, config: Config) -> dict[str, str]:
    """The apps of a detector that have not loaded the hour, each with a message.

    An app that only adds to what others gather is needed only if the config has something for it.
    """
    apps = [app for app in detector.apps if not (APPS[app].only_adds and APPS[app].not_configured(config))]
    loads = connection.execute(
        sa.text("select app, status, error from detect.load where hour = :hour and app = any(:apps)"),
        {"hour": hour, "apps": apps},
    )
    known = {app: (status, error) for app, status, error in loads}
    return {
        app: f"app {app} failed: {known[app][1]}" if app in known else f"app {app} has not loaded this hour"
        for app in apps
        if app not in known or known[app][0] != "loaded"
    }


# A week of all topics has to fit into memory for sorts and joins. JIT compilation takes longer than it saves. The rows
# of an hour are stored together, so an index scan is cheaper than reading the partition of a month.
_FOR_LARGE_QUERIES = sa.text("""
    select
      set_config('work_mem', '64MB', true), set_config('jit', 'off', true),
      set_config('random_page_cost', '1.1', true)""")
# A join, because with `= any(:keys)` PostgreSQL compares each row with all keys one by one.
_RESOURCES = sa.text("""
    select key, name, owner, application
    from public.resources(:hour)
    join unnest(cast(:keys as text[])) as wanted (key) using (key)
    where kind = any(cast(:kinds as text[]))""")
