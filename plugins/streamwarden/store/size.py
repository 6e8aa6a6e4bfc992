"""Size of each table, and its projected size with full retention at the insert rate of its newest days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from streamwarden.base.config import Warehouse
from streamwarden.store.housekeeping import retention_days

# A row for each partition, or for each table without partitions. reltuples is -1 before the first analyze.
_PARTS = sa.text("""
    select
      coalesce(p.table_name, format('%s.%s', n.nspname, c.relname)) as table_name,
      substring(pg_get_partkeydef(to_regclass(p.table_name)) from '\\((\\w+)\\)') as time_column,
      c.oid::regclass::text as part, pg_total_relation_size(c.oid) as bytes, c.reltuples::bigint as rows
    from pg_class as c
    inner join pg_namespace as n on c.relnamespace = n.oid
    left join public.partitions as p on c.oid = p.partition::oid
    where n.nspname in ('inventory', 'metrics', 'detect', 'tickets') and c.relkind = 'r'
    order by 1""")
PACE = timedelta(days=2)
"""The insert rate is the mean of this period before the newest row; it includes days and nights."""


@dataclass(frozen=True)
class TableSize:
    """A table of the warehouse with its size and insert rate."""

    table: str
    held_bytes: int
    bytes_per_row: float | None
    """Including indexes; None: the table is empty."""
    rows_per_day: float | None
    """Insert rate of its newest days; None: the table is empty or has no time column."""
    days: int | None
    """Retention; None: unlimited."""

    @property
    def full_bytes(self) -> float | None:
        """Projected size with full retention; None: unknown."""
        if self.days is None or self.rows_per_day is None or self.bytes_per_row is None:
            return None
        return self.bytes_per_row * self.rows_per_day * self.days


def table_sizes(warehouse: sa.Engine, settings: Warehouse) -> list[TableSize]:
    """All tables, largest first."""
    with warehouse.connect() as connection:
        parts = connection.execute(_PARTS).all()
        tables = groupby(parts, key=lambda part: (part.table_name, part.time_column))
        sizes = [_size(connection, settings, *table, list(of_table)) for table, of_table in tables]
    return sorted(sizes, key=lambda size: -size.held_bytes)


def _size(
    connection: sa.Connection, settings: Warehouse, table: str, time_column: str | None, parts: list[sa.Row[Any]]
) -> TableSize:
    def rows_of(part: sa.Row[Any]) -> int:
        counted = f"select count(*) from {part.part}"  # noqa: S608 from the catalog
        return part.rows if part.rows >= 0 else connection.exec_driver_sql(counted).scalar_one()

    held_bytes, rows = sum(part.bytes for part in parts), sum(map(rows_of, parts))
    a_row = held_bytes / rows if rows else None
    if time_column is None:
        return TableSize(table, held_bytes, a_row, None, None)
    pace = sa.text(f"""
        select count(*) / greatest(1, extract(epoch from max(at) - min(at)) / 3600 + 1) * 24
        from (
          select date_trunc('hour', {time_column}) as at from {table}
          where {time_column} > (select max({time_column}) from {table}) - cast(:pace as interval)
        ) as newest""")  # noqa: S608 from the catalog
    a_day = connection.execute(pace, {"pace": PACE}).scalar() if rows else None
    return TableSize(table, held_bytes, a_row, float(a_day) if a_day else None, retention_days(settings, table))
