"""Housekeeping on a real warehouse: future partitions, retention from the newest row, a limit per run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Warehouse
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import engine
from streamwarden.cli.main import app
from streamwarden.cli.mistakes import partitioned_tables
from streamwarden.store.housekeeping import keep_house
from streamwarden.store.migrate import migrate
from streamwarden.store.size import table_sizes
from typer.testing import CliRunner

from tests.conftest import a_database

NOW = datetime(2026, 11, 21, 2, 20, tzinfo=UTC)
LATER = NOW + timedelta(days=40)
SETTINGS = Warehouse(sample_retention_days=35, fact_retention_days=455)
SAMPLES = "metrics.broker_sample"
FACTS = "metrics.consumer_group_hourly"
_INSERT = {
    SAMPLES: "(hour, cluster, endpoint, metric, labels, at, kind) values (:hour, 'c', 'e', 'm', '{}', :hour, 'gauge')",
    FACTS: "(hour, cluster, group_id, topics, partitions, lag_unknown_partitions) values (:hour, 'c', 'g', 1, 1, 0)",
}


@pytest.fixture(scope="module")
def house_template() -> Iterator[str]:
    """URL of a warehouse as users have it, without the default partitions of other tests."""
    with a_database() as url:
        migrate(engine(url))
        engine(url).dispose()
        yield url


@pytest.fixture
def house(house_template: str) -> Iterator[sa.Engine]:
    """Engine on a copy of `house_template`."""
    with a_database(like=house_template) as url:
        yield engine(url)


def _fill(house: sa.Engine, table: str, newest: datetime, days: int, step: int = 1) -> None:
    with house.begin() as connection:
        for day in range(0, days, step):
            hour = (newest - timedelta(days=day)).replace(minute=0)
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour.date()})
            connection.execute(sa.text(f"insert into {table} {_INSERT[table]}"), {"hour": hour})


def _hours(house: sa.Engine, table: str) -> list[datetime]:
    with house.connect() as connection:
        return list(connection.execute(sa.text(f"select hour from {table} order by 1")).scalars())


def _has_partition(house: sa.Engine, name: str) -> bool:
    with house.connect() as connection:
        return connection.execute(sa.text("select to_regclass(:name)"), {"name": name}).scalar() is not None


def test_partitions_are_created_for_today_and_future_days(house: sa.Engine) -> None:
    keep_house(house, SETTINGS, datetime(2026, 11, 29, tzinfo=UTC))
    for day in ("20261129", "20261202"):
        assert _has_partition(house, f"metrics.volume_sample_{day}")
    assert _has_partition(house, "metrics.volume_hourly_202611") and _has_partition(
        house, "metrics.volume_hourly_202612"
    )
    assert keep_house(house, SETTINGS, datetime(2026, 11, 29, tzinfo=UTC)) == ({}, [])


def test_every_table_of_hours_is_partitioned(house: sa.Engine) -> None:
    unpartitioned = sa.text("""
        select format('%s.%s', c.relnamespace::regnamespace, c.relname)
        from pg_class as c inner join pg_attribute as a on c.oid = a.attrelid and a.attname in ('hour', 'at')
        where c.relkind = 'r' and not c.relispartition
        and c.relnamespace::regnamespace::text in ('inventory', 'metrics', 'detect')""")
    with house.connect() as connection:
        assert connection.execute(unpartitioned).scalars().all() == [], (
            "add `partition by range (hour)`: retention drops partitions"
        )


def test_samples_are_dropped_by_day_and_facts_by_month(house: sa.Engine) -> None:
    _fill(house, FACTS, NOW, 501, step=25)  # empty partitions of samples are dropped without confirmation
    _fill(house, SAMPLES, NOW, 40)
    done, left = keep_house(house, SETTINGS, NOW)
    assert left == []
    assert _hours(house, SAMPLES)[0] == (NOW - timedelta(days=35)).replace(minute=0)
    assert done[f"{FACTS}: partitions dropped"] == 1  # July 2025; the last day of August is still within the retention
    assert _hours(house, FACTS)[0] >= datetime(2025, 8, 1, tzinfo=UTC)
    assert keep_house(house, SETTINGS, NOW) == ({}, [])


def test_a_clock_that_is_ahead_drops_nothing(house: sa.Engine) -> None:
    _fill(house, SAMPLES, NOW, 30)
    done, left = keep_house(house, SETTINGS, LATER)
    assert (set(done), left) == ({"partitions created"}, [])
    assert len(_hours(house, SAMPLES)) == 30


def test_dropping_many_partitions_needs_confirmation(house: sa.Engine) -> None:
    _fill(house, SAMPLES, NOW, 30)
    _fill(house, SAMPLES, LATER, 1)  # gathered with a wrong clock
    done, left = keep_house(house, SETTINGS, LATER)
    assert [expiry.table for expiry in left] == [SAMPLES]
    assert f"{SAMPLES}: 30 of 31 partitions with rows are older than 35 days before 2026-12-31 02:00 UTC" in str(
        left[0]
    )
    assert len(_hours(house, SAMPLES)) == 31
    done, left = keep_house(house, SETTINGS, LATER, yes=True)
    assert (done[f"{SAMPLES}: partitions dropped"], left) == (30, [])
    assert len(_hours(house, SAMPLES)) == 1


def test_a_table_may_have_its_own_retention(house: sa.Engine) -> None:
    _fill(house, FACTS, NOW, 130, step=5)
    settings = SETTINGS.model_copy(update={"retention_days": {FACTS: 90}})
    assert keep_house(house, settings, NOW)[0][f"{FACTS}: partitions dropped"] == 1
    with pytest.raises(StreamwardenError, match=r"warehouse\.retention_days: metrics\.gone: the warehouse has no such"):
        keep_house(house, SETTINGS.model_copy(update={"retention_days": {"metrics.gone": 90}}), NOW)


def test_the_command_prints_what_it_would_do(house: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.yaml").write_text("tickets: {trackers: {}}\n")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    monkeypatch.setenv(WAREHOUSE_ENV, house.url.set(drivername="postgresql").render_as_string(hide_password=False))
    newest = datetime.now(UTC)
    _fill(house, SAMPLES, newest, 38)
    said = CliRunner().invoke(app, ["warehouse", "housekeeping"], catch_exceptions=False).output
    assert f"{SAMPLES}: 2 of 38 partitions with rows are older than 35 days" in said and "would go" in said
    assert len(_hours(house, SAMPLES)) == 38
    said = CliRunner().invoke(app, ["warehouse", "housekeeping", "--do"], catch_exceptions=False).output
    assert f"{SAMPLES}: partitions dropped: 2" in said
    assert len(_hours(house, SAMPLES)) == 36


def test_sizes_include_the_expected_size_at_full_retention(house: sa.Engine) -> None:
    with house.begin() as connection:
        for day in ("2026-11-20", "2026-11-21"):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day})
        connection.exec_driver_sql(
            "insert into metrics.consumer_group_hourly (hour, cluster, group_id, topics, partitions,"
            " lag_unknown_partitions) select h, 'c', format('g%%s', n), 1, 1, 0 from generate_series(1, 100) as n"
            " cross join generate_series('2026-11-20 00:00Z'::timestamptz, '2026-11-21 23:00Z', '1 hour') as h"
        )
    sizes = {size.table: size for size in table_sizes(house, SETTINGS)}
    facts = sizes[FACTS]
    assert (facts.days, facts.rows_per_day) == (455, 2400)
    assert 60 < facts.bytes_per_row < 400
    assert facts.full_bytes == pytest.approx(facts.held_bytes / 2 * 455)
    assert (sizes["tickets.ticket"].days, sizes["tickets.ticket"].full_bytes) == (None, None)
    assert sizes[SAMPLES].full_bytes is None


def test_the_migrations_define_which_tables_have_a_retention(house: sa.Engine) -> None:
    with house.connect() as connection:
        found = connection.exec_driver_sql("select cast(partrelid as regclass)::text from pg_partitioned_table")
        assert set(found.scalars()) == partitioned_tables()
