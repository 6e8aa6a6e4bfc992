"""Creates partitions ahead of time, and drops those past the configured retention.

Age is counted from the newest row of each table, or from the current time if that is earlier. So a clock that runs fast
expires no data, nor does an outage of all sources. If more than a quarter of a table's partitions would be dropped at
once, the table is not changed until the user confirms it.
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
"""Share of a table's partitions that is dropped without confirmation; one partition may always be dropped."""
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
    """The expired partitions of a table."""

    table: str
    days: int
    """Retention of the table."""
    newest: datetime
    """Time of the newest row."""
    partitions: tuple[str, ...]
    """The expired partitions, oldest first."""
    filled: int
    """Number of expired partitions with rows."""
    of: int
    """Number of all partitions with rows."""

    @property
    def needs_a_yes(self) -> bool:
        """Whether more partitions have expired than are dropped without confirmation."""
        return self.filled > max(1, MOST_AT_ONCE * self.of)

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.filled} of {self.of} partitions with rows are older than {self.days} days before"
            f" {self.newest:%Y-%m-%d %H:%M} UTC ({self.partitions[0]} … {self.partitions[-1]})"
        )


def retention_days(settings: Warehouse, table: str) -> int:
    """Retention of a table in days."""
    of_its_kind = settings.sample_retention_days if table.endswith("_sample") else settings.fact_retention_days
    return settings.retention_days.get(table, of_its_kind)


def expired(connection: sa.Connection, settings: Warehouse, now: datetime) -> list[Expiry]:
    """Expired partitions by table. Tickets, registered schemas, and prices do not expire.

    Raises:
        StreamwardenError: the config sets a retention for a table that does not exist.
    """
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
    """Creates the partitions of the next days and drops expired ones.

    Args:
        yes: whether partitions are dropped even if they are more than a quarter of a table.

    Returns:
        The number of changes by description, and the tables that were not changed without confirmation.
    """
    now = now or datetime.now(UTC)
    with engine.begin() as connection:
        ensure = sa.text("select public.ensure_day(:day)")
        days = [now.date() + timedelta(days=ahead) for ahead in range(DAYS_AHEAD + 1)]
        done = {"partitions created": sum(connection.execute(ensure, {"day": day}).scalar_one() for day in days)}
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
