"""Keeps the warehouse as long as the config says: partitions made ahead, old samples and facts dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from streamwarden.base.config import Warehouse

DAYS_AHEAD = 3
_DATED_TABLES = sa.text("""
    select format('%I.%I', c.table_schema, c.table_name)
    from information_schema.columns as c
    inner join pg_class as r on r.oid = to_regclass(format('%I.%I', c.table_schema, c.table_name))
    where
      c.column_name = 'hour' and c.table_schema in ('inventory', 'metrics', 'detect')
      and r.relkind = 'r' and not r.relispartition
    order by 1""")
_PARTITIONED_TABLES = sa.text("""
    select partrelid::regclass::text from pg_partitioned_table
    where partrelid::regclass::text ~ '^(metrics|detect)[.]' order by 1""")


def keep_house(engine: sa.Engine, settings: Warehouse, now: datetime | None = None) -> dict[str, int]:
    """Makes the next days' partitions and drops what is older than its retention; returns what was done, by table.

    Samples go by whole days (a dropped partition), facts row by row. Tickets are kept for good.
    """
    today = (now or datetime.now(UTC)).date()
    first_sample_day = today - timedelta(days=settings.sample_retention_days)
    first_fact_day = today - timedelta(days=settings.fact_retention_days)
    done: dict[str, int] = {}
    with engine.begin() as connection:
        done["partitions made"] = sum(
            connection.execute(
                sa.text("select public.ensure_day(:day)"), {"day": today + timedelta(days=n)}
            ).scalar_one()
            for n in range(DAYS_AHEAD + 1)
        )
        for table in connection.execute(_PARTITIONED_TABLES).scalars().all():
            first_kept = first_sample_day if table.endswith("_sample") else first_fact_day
            dropped = connection.execute(
                sa.text("select public.drop_days_before(cast(:table as regclass), :first_kept)"),
                {"table": table, "first_kept": first_kept},
            ).scalar_one()
            done[f"{table}: days dropped"] = dropped
        for table in connection.execute(_DATED_TABLES).scalars().all():
            old = sa.text(f"delete from {table} where hour < cast(:first_kept as date)")  # noqa: S608 a name from the catalog
            done[f"{table}: rows deleted"] = connection.execute(old, {"first_kept": first_fact_day}).rowcount
    return {what: count for what, count in done.items() if count}
