"""View cluster_composition: jobs with and without state, by cluster and owner."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row


def test_jobs_are_told_apart_by_their_stores(warehouse: sa.Engine) -> None:
    process = {"endpoint": "o:1", "app": "orders", "application_id": "orders"}
    seen = [
        ("detect.load", {"app": "jvm_apps", "status": "loaded"}),
        ("metrics.jvm_app_hourly", {"cluster": "a", **process}),
        ("metrics.jvm_app_hourly", {"cluster": "a", **process, "endpoint": "o:2"}),
        ("metrics.jvm_app_hourly", {"cluster": "a", "endpoint": "m:1", "app": "mails", "application_id": "mails"}),
        # Of the same name, on another cluster: it has no store there.
        ("metrics.jvm_app_hourly", {"cluster": "b", **process}),
        ("metrics.state_store_hourly", {"cluster": "a", "topic": "s", "application_id": "orders"}),
        ("inventory.topic_hourly", {"cluster": "a", "topic": "t"}),
        ("metrics.consumer_group_hourly", {"cluster": "a", "group_id": "g"}),
    ]
    with warehouse.begin() as connection:
        for day in (HOUR - timedelta(days=1), HOUR):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day.date()})
        for table, row in seen:
            insert_row(connection, table, {"hour": HOUR, **row})
        rows = connection.execute(sa.text("select * from cluster_composition")).mappings().all()
    assert [tuple(row.values()) for row in rows] == [("a", None, 2, 1, 1, 3, 1, 1, 1), ("b", None, 1, 0, 1, 1, 0, 0, 0)]
