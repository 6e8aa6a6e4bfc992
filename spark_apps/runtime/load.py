"""Load: writes the frames of an app to the warehouse, all tables of the hour in one transaction.

Tasks fill staging tables in parallel; then one transaction on the driver replaces the hour by delete and insert.
Where a source has gaps, known data is kept: rows are upserted, a null never replaces a value, and rows that are not
in the frame stay. Tables without an `hour` column (CloudWatch samples, which may arrive late) are always upserted by
their key.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.catalog import APPS, SparkApp, rows_of
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import ONLY_PRESENT, PRESENT_FOR
from streamwarden.base.warehouse import address_of_engine, ensure_day

from spark_apps.runtime.kept import tables_at_once
from spark_apps.runtime.warehouse_io import fill_staging

_SPARK_TYPE = {
    "integer": "int",
    "bigint": "bigint",
    "double precision": "double",
    "text": "string",
    "jsonb": "string",
    "boolean": "boolean",
    "timestamp with time zone": "timestamp",
}
READ_PER_ROW = 24
"""Apps read about so many rows for one that they write: those that read many more count as if they had written more."""
ANALYZED_FROM_ROWS = 100
"""Smaller tables are not analyzed: joining them row by row is fast. The planner's estimate of 1 row for 300 groups made
a join with their partitions take a minute."""


def replace_hour(
    engine: sa.Engine,
    app: SparkApp,
    hour: datetime,
    frames: dict[str, DataFrame],
    coverage: DataFrame | None,
    started_at: datetime,
) -> dict[str, int]:
    """Replaces the data of `app` for `hour` in one transaction; returns the number of rows by table.

    Args:
        frames: by table name, with the table's columns; `hour` is left out where the table has it.
        coverage: columns source, resource_name, status, message; None: no source was queried.

    Raises:
        StreamwardenError: the frames are not the tables that the app writes, or a table or column does not exist.
    """
    if set(frames) not in (set(app.writes), set()):  # an app without configured sources returns no frame
        raise StreamwardenError(f"app {app.name} returned {sorted(frames)}, the catalog has {sorted(app.writes)}.")
    with _alone(engine, f"{app.name} {hour}") as lock:
        mark = f"{app.name}_{hour:%Y%m%d%H}"
        _drop_stages(engine, mark)  # staging tables left by a killed run
        try:
            stages = {table: Stage(engine, table, hour, mark) for table in (*frames, "detect.coverage")}
            if coverage is not None:
                by_app = {"app": f.lit(app.name), "queried_at": f.lit(started_at)}
                stages["detect.coverage"].fill(coverage.withColumns(by_app))
            with ThreadPoolExecutor(tables_at_once(frames)) as pool:
                list(pool.map(lambda table: stages[table].fill(frames[table]), frames))
            return _publish(engine, lock, app, hour, stages, started_at)
        finally:
            with suppress(sa.exc.SQLAlchemyError):  # the next run drops it
                _check(lock)  # if the lock is lost, the staged rows may belong to a second run
                _drop_stages(engine, mark)


@contextmanager
def _alone(engine: sa.Engine, run: str) -> Iterator[sa.Connection]:
    """Holds this run's lock: a second run waits until the first one has committed.

    The lock is of a transaction, as a pooler may run each transaction in another session. It reads and writes nothing,
    so it does not hold up vacuum. It is the only connection that a run keeps: many runs share the engine's pool.
    """
    with engine.connect() as lock:
        try:
            lock.execute(sa.text("select set_config('idle_in_transaction_session_timeout', '0', true)"))
            lock.execute(sa.text("select pg_advisory_xact_lock(hashtext(:run))"), {"run": run})
            yield lock
        finally:
            lock.invalidate()  # the lock ends with the session, whatever its state


def _check(lock: sa.Connection) -> None:
    """Raises if the lock is lost: a crash of the server, which empties the staging tables, ends its transaction."""
    lock.execute(sa.text("select 1"))


def _drop_stages(engine: sa.Engine, mark: str) -> None:
    of_mark = "select quote_ident(tablename) from pg_tables where schemaname = 'staging' and tablename like :mark"
    with engine.begin() as connection:
        left = connection.execute(sa.text(of_mark), {"mark": mark.replace("_", r"\_") + r"\_%"})
        for relation in left.scalars().all():
            connection.exec_driver_sql(f"drop table staging.{relation}")


def record_failure(engine: sa.Engine, app: str, hour: datetime, error: str, started_at: datetime) -> None:
    """Records that an app failed; an hour that was loaded before stays loaded."""
    ensure_day(engine, hour.date())
    _record(engine, app, hour, "failed", {}, started_at, error)


def last_rows(engine: sa.Engine, app: str) -> int:
    """Rows that the app loaded in its newest loaded hour, or as many as it read values for, if that is more; 0 if it
    never did, or the warehouse cannot be queried (a hint)."""
    table, column = (APPS[app].read_rows if app in APPS else None) or ("detect.load", "null::bigint")
    query = f"""
        select greatest(
          (select sum(cast(value as bigint)) from jsonb_each_text(l.rows)),
          (select sum({column}) / {READ_PER_ROW} from {table} as t where t.hour = l.hour))
        from detect.load as l where app = :app and status = 'loaded' order by hour desc limit 1"""
    with suppress(sa.exc.SQLAlchemyError), engine.connect() as connection:
        return int(connection.execute(sa.text(query), {"app": app}).scalar() or 0)
    return 0


def _publish(
    engine: sa.Engine,
    lock: sa.Connection,
    app: SparkApp,
    hour: datetime,
    stages: dict[str, Stage],
    started_at: datetime,
) -> dict[str, int]:
    for day in {(hour - timedelta(hours=24)).date(), hour.date(), (hour + timedelta(hours=2)).date()}:
        ensure_day(engine, day)
    with engine.begin() as connection:
        coverage = stages["detect.coverage"]
        gaps = connection.exec_driver_sql(f"select 1 from {coverage.name} where status <> 'complete' limit 1").scalar()
        _check(lock)  # a later crash ends this transaction, too
        _make_room(connection, coverage.name, app.name, hour)
        coverage.publish(connection, keep_known=True)
        rows = {
            table: stages[table].publish(connection, keep_known=bool(gaps), mine=rows_of(app, table))
            for table in stages
            if table != "detect.coverage"
        }
        _record(connection, app.name, hour, "loaded", rows, started_at)
    return rows


def _make_room(connection: sa.Connection, staged: str, app: str, hour: datetime) -> None:
    """Deletes the hour's coverage that the staged rows replace, and staged rows that add nothing to what is known.

    A source that knows only the current state may have responded in time in an earlier run: then that coverage
    stays, as its rows do.
    """
    values = {"hour": hour, "app": app, "too_late": f"%{ONLY_PRESENT}%", "until": hour + PRESENT_FOR}
    in_time = (
        "c.hour = :hour and c.app = :app and c.queried_at < :until and (c.message not like :too_late) is not false"
    )
    connection.execute(
        sa.text(f"""
            delete from detect.coverage as c where c.hour = :hour and c.app = :app and not (
              {in_time} and exists (select 1 from {staged} as s where s.source = c.source and s.message like :too_late)
              and not exists (
                select 1 from {staged} as s
                where s.source = c.source and s.resource_name = c.resource_name
                and (s.message not like :too_late) is not false
              )
            )"""),
        values,
    )
    connection.execute(
        sa.text(f"""
            delete from {staged} as s
            where s.message like :too_late
            and exists (select 1 from detect.coverage as c where {in_time} and c.source = s.source)"""),
        values,
    )


def _record(
    where: sa.Engine | sa.Connection,
    app: str,
    hour: datetime,
    status: str,
    rows: dict[str, int],
    started_at: datetime,
    error: str | None = None,
) -> None:
    statement = sa.text("""
        insert into detect.load as l (hour, app, status, rows, error, started_at, finished_at)
        values (:hour, :app, :status, :rows, :error, :started_at, :finished_at)
        on conflict (hour, app) do update set
          status = excluded.status, rows = excluded.rows, error = excluded.error,
          started_at = excluded.started_at, finished_at = excluded.finished_at
        where l.status = 'failed' or excluded.status = 'loaded'""")
    values = {"hour": hour, "app": app, "status": status, "rows": json.dumps(rows), "error": error}
    values |= {"started_at": started_at, "finished_at": datetime.now(UTC)}
    if isinstance(where, sa.Connection):
        where.execute(statement, values)
    else:
        with where.begin() as connection:
            connection.execute(statement, values)


class Stage:
    """The staging table of one warehouse table."""

    def __init__(self, engine: sa.Engine, table: str, hour: datetime, mark: str) -> None:
        self.url = address_of_engine(engine)
        self.table = table
        self.hour = hour
        # PostgreSQL truncates names at 63 characters; the random part separates us from a task of a killed run that
        # still runs.
        self.relation = f"{mark}_{uuid.uuid4().hex[:8]}_{table.split('.')[1]}"[:63]
        self.name = f"staging.{self.relation}"
        inspector = sa.inspect(engine)
        schema, relation = table.split(".")
        with engine.begin() as connection:
            self.columns: dict[str, str] = dict(
                connection.execute(
                    sa.text(
                        "select column_name, data_type from information_schema.columns"
                        " where table_schema = :schema and table_name = :relation order by ordinal_position"
                    ),
                    {"schema": schema, "relation": relation},
                )
                .tuples()
                .all()
            )
            if not self.columns:
                raise StreamwardenError(f"the warehouse has no table {table}: run `streamwarden migrate`.")
            kinds = ", ".join(f'"{c}" {"text" if t == "jsonb" else t}' for c, t in self.columns.items())
            connection.exec_driver_sql(f"create unlogged table {self.name} ({kinds})")
        self.key: list[str] = inspector.get_pk_constraint(relation, schema=schema)["constrained_columns"]

    def fill(self, frame: DataFrame) -> None:
        """Writes the frame from its tasks, with the table's columns cast to its types.

        Raises:
            StreamwardenError: the frame's columns are not the table's.
        """
        if "hour" in self.columns and "hour" not in frame.columns:
            frame = frame.withColumn("hour", f.lit(self.hour))
        if missing := set(self.columns) ^ set(frame.columns):
            raise StreamwardenError(f"{self.table}: frame and table differ in columns {', '.join(sorted(missing))}.")
        frame = frame.select([f.col(c).cast(_SPARK_TYPE[t]).alias(c) for c, t in self.columns.items()])
        fill_staging(frame, self.url, self.relation)

    def publish(self, connection: sa.Connection, *, keep_known: bool, mine: str = "true") -> int:
        """Moves the staged rows to the table, inside the caller's transaction; returns their number.

        Args:
            keep_known: rows of the hour stay, and no null replaces a value.
            mine: SQL condition of the rows that are replaced; the others belong to other apps.

        `distinct`: a task that was retried has staged its rows twice. Two different rows with the same key fail.
        Inserting in the key's order makes indexes a fifth smaller.
        """
        target = ", ".join(f'"{c}"' for c in self.columns)
        source = ", ".join(f's."{c}"::{t}' for c, t in self.columns.items())
        if "hour" in self.columns and not keep_known:
            connection.execute(sa.text(f"delete from {self.table} where hour = :hour and {mine}"), {"hour": self.hour})
        changes = ", ".join(f'"{c}" = {self._merged(c)}' for c in self.columns if c not in self.key)
        if "period_seconds" in self.columns:
            changes += " where excluded.period_seconds <= t.period_seconds"
        rows = connection.exec_driver_sql(
            f"insert into {self.table} as t ({target}) select distinct {source} from {self.name} as s"
            f" order by {', '.join(str(list(self.columns).index(c) + 1) for c in self.key)}"
            f" on conflict ({', '.join(self.key)}) do update set {changes}"
        ).rowcount
        if rows >= ANALYZED_FROM_ROWS:
            self._analyze(connection)
        return rows

    def _merged(self, column: str) -> str:
        """Value of a row that is loaded again: null does not replace a value of the same period.

        A value of five minutes is none of their first minute. CloudWatch returns minutes for 15 days, and five minutes
        after that; the finer period counts, whichever is loaded first.
        """
        merged = f'coalesce(excluded."{column}", t."{column}")'
        if "period_seconds" not in self.columns:
            return merged
        return f'case when excluded.period_seconds = t.period_seconds then {merged} else excluded."{column}" end'

    def _analyze(self, connection: sa.Connection) -> None:
        """Updates the planner's statistics: without them it joins the new rows with nested loops, for minutes.

        Autovacuum would analyze a minute or more later; detectors evaluate the hour before.
        """
        at = next((column for column in ("hour", "at") if column in self.columns), None)
        when = f"where {at} >= :hour and {at} < :hour + interval '1 hour'" if at else ""
        partition = sa.text(f"select cast(cast(tableoid as regclass) as text) from {self.table} {when} limit 1")
        if name := connection.execute(partition, {"hour": self.hour} if at else {}).scalar():
            connection.exec_driver_sql(f"analyze {name}")
