"""Housekeeping on a real warehouse: partitions ahead, retention by day and by row, nothing younger touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from streamwarden.base.config import Warehouse
from streamwarden.store.housekeeping import DAYS_AHEAD, keep_house

NOW = datetime(2026, 11, 21, 2, 20, tzinfo=UTC)
SETTINGS = Warehouse(sample_retention_days=35, fact_retention_days=455)


def _group_hour(connection: sa.Connection, hour: datetime) -> None:
    connection.execute(
        sa.text(
            "insert into metrics.consumer_group_hourly"
            " (hour, cluster, group_id, topics, partitions, lag_unknown_partitions) values (:hour, 'c', 'g', 1, 1, 0)"
        ),
        {"hour": hour},
    )


def _evaluation(connection: sa.Connection, hour: datetime) -> None:
    connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour.date()})
    connection.execute(
        sa.text(
            "insert into detect.evaluation"
            " (hour, detector, fingerprint, resource, identity, status, severity, reason, evidence, judged_at)"
            " values (:hour, 'd', 'f', 'r', '{}', 'ok', 'info', 'fine', '{}', :hour)"
        ),
        {"hour": hour},
    )


def _hours(warehouse: sa.Engine, table: str) -> list[datetime]:
    with warehouse.connect() as connection:
        return list(connection.execute(sa.text(f"select hour from {table} order by 1")).scalars())


def _has_partition(warehouse: sa.Engine, name: str) -> bool:
    with warehouse.connect() as connection:
        return connection.execute(sa.text("select to_regclass(:name)"), {"name": name}).scalar() is not None


def test_partitions_are_made_for_today_and_the_days_ahead(warehouse: sa.Engine) -> None:
    keep_house(warehouse, SETTINGS, NOW)
    for days in range(DAYS_AHEAD + 1):
        assert _has_partition(warehouse, f"metrics.volume_sample_{NOW + timedelta(days=days):%Y%m%d}")


def test_facts_and_evaluations_older_than_their_retention_go_and_the_rest_stays(warehouse: sa.Engine) -> None:
    kept, gone = NOW - timedelta(days=455), NOW - timedelta(days=456)
    kept, gone = (moment.replace(hour=0, minute=0) for moment in (kept, gone))
    with warehouse.begin() as connection:
        for hour in (kept, gone):
            _group_hour(connection, hour)
            _evaluation(connection, hour)
    done = keep_house(warehouse, SETTINGS, NOW)
    assert _hours(warehouse, "metrics.consumer_group_hourly") == [kept]
    assert _hours(warehouse, "detect.evaluation") == [kept]
    assert done["metrics.consumer_group_hourly: rows deleted"] == 1


def test_samples_go_earlier_than_facts(warehouse: sa.Engine) -> None:
    old = NOW - timedelta(days=36)
    with warehouse.begin() as connection:
        _evaluation(connection, old)  # makes that day's partitions of all tables
    assert _has_partition(warehouse, f"metrics.volume_sample_{old:%Y%m%d}")
    keep_house(warehouse, SETTINGS, NOW)
    assert not _has_partition(warehouse, f"metrics.volume_sample_{old:%Y%m%d}")
    assert len(_hours(warehouse, "detect.evaluation")) == 1


def test_a_second_run_has_nothing_left_to_do(warehouse: sa.Engine) -> None:
    keep_house(warehouse, SETTINGS, NOW)
    assert keep_house(warehouse, SETTINGS, NOW) == {}
