"""Keeps the warehouse as long as the config says: partitions made ahead, old ones dropped.

Age is counted from the newest row of each table, or from the clock where that is earlier: a clock that runs ahead makes
nothing old, and a fleet that is silent loses nothing. Where more than a quarter of a table's partitions would go at
once, it is left as it is until somebody agrees to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Warehouse
from streamwarden.base.errors import StreamwardenError

DAYS_AHEAD = 3
MOST_AT_ONCE = 0.25
"""Share of a table's partitions; one may always go."""
_TABLES = sa.text("""
    select
      table_name,
      substring(pg_get_partkeydef(to_regclass(table_name)) from '\\((\\w+)\\)') as time_column,
      array_agg(cast(partition as text) order by begins desc) as names,
      array_agg(ends order by begins desc) as ends
    from public.partitions
    where ends is not null
    group by table_name
    order by table_name""")


@dataclass(frozen=True)
class Expiry:
    """What is too old in a table."""

    table: str
    days: int
    """Its retention."""
    newest: datetime
    partitions: tuple[str, ...]
    """The partitions that are too old, the oldest first."""
    filled: int
    """How many of them have rows."""
    of: int
    """Partitions with rows that the table has."""

    @property
    def needs_a_yes(self) -> bool:
        """Whether that is more than goes without asking."""
        return self.filled > max(1, MOST_AT_ONCE * self.of)

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.filled} of {self.of} partitions with rows are older than {self.days} days before"
            f" {self.newest:%Y-%m-%d %H:%M} UTC ({self.partitions[0]} … {self.partitions[-1]})"
        )


def retention_days(settings: Warehouse, table: str) -> int:
    """How long a table is kept."""
    of_its_kind = settings.sample_retention_days if table.endswith("_sample") else settings.fact_retention_days
    return settings.retention_days.get(table, of_its_kind)


def expired(connection: sa.Connection, settings: Warehouse, now: datetime) -> list[Expiry]:
    """What is too old, by table. Tickets, registered schemas and prices never are."""
    tables = connection.execute(_TABLES).tuples().all()
    if unknown := set(settings.retention_days) - {table for table, *_ in tables}:
        raise StreamwardenError(
            f"warehouse.retention_days: {', '.join(sorted(unknown))}: the warehouse has no such table."
        )
    found = (
        _expiry(connection, settings, now, table, time_column, dict(zip(names, ends, strict=True)))
        for table, time_column, names, ends in tables
    )
    return [expiry for expiry in found if expiry]


def keep_house(
    engine: sa.Engine, settings: Warehouse, now: datetime | None = None, *, yes: bool = False
) -> tuple[dict[str, int], list[Expiry]]:
    """Makes the next days' partitions and drops what is too old.

    Returns: what was done, by table; and what was left because nobody said yes to so much.
    """
    now = now or datetime.now(UTC)
    with engine.begin() as connection:
        ensure = sa.text("select public.ensure_day(:day)")
        days = [now.date() + timedelta(days=ahead) for ahead in range(DAYS_AHEAD + 1)]
        done = {"partitions made": sum(connection.execute(ensure, {"day": day}).scalar_one() for day in days)}
        left = []
        for expiry in expired(connection, settings, now):
            if expiry.needs_a_yes and not yes:
                left.append(expiry)
                continue
            for partition in expiry.partitions:
                connection.exec_driver_sql(f"drop table {partition}")
            done[f"{expiry.table}: partitions dropped"] = len(expiry.partitions)
    return {what: count for what, count in done.items() if count}, left


def _expiry(
    connection: sa.Connection,
    settings: Warehouse,
    now: datetime,
    table: str,
    time_column: str,
    ends: dict[str, datetime],
) -> Expiry | None:
    def ask(query: str) -> Any:
        return connection.exec_driver_sql(query).scalar()

    filled = [p for p in ends if ask(f"select exists (select from {p})")]  # noqa: S608 names from the catalog
    if not filled:
        return None
    newest: datetime = ask(f"select max({time_column}) from {filled[0]}")  # noqa: S608 names from the catalog
    days = retention_days(settings, table)
    kept_from = min(now, newest) - timedelta(days=days)
    old = tuple(partition for partition, end in reversed(ends.items()) if end <= kept_from)
    return Expiry(table, days, newest, old, len({*old} & {*filled}), len(filled)) if old else None
