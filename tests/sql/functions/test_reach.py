"""The order of incidents: severity, then how many findings they hold, then how much depends on their resource."""

from __future__ import annotations

import sqlalchemy as sa

from tests.sql.rows import insert_row

AT = "2026-01-05T10:00:00+00:00"


def test_open_tickets_are_in_the_order_of_severity_and_blast_radius(warehouse: sa.Engine) -> None:
    rows = [
        (1, "group late first", "group:c/g", "critical", None, "2026-01-05T01:00:00+00:00"),
        (2, "broker down", "broker:c/3", "critical", None, AT),
        (3, "volume with effects", "volume:1/r/v", "critical", None, AT),
        (4, "effect", "group:c/h", "warning", 3, AT),
        (5, "cluster warning", "cluster:c", "warning", None, AT),
        (6, "application warning", "application:c/a", "warning", None, "2026-01-05T01:00:00+00:00"),
    ]
    with warehouse.begin() as connection:
        for _, title, resource, severity, summary, opened in rows:  # a new warehouse counts from 1
            insert_row(
                connection,
                "tickets.ticket",
                {"hour": AT, "fingerprint": title, "title": title, "resource": resource, "state": "open",
                 "severity": severity, "summary_ticket_id": summary, "opened_hour": opened, "role": "alone"},
            )  # fmt: skip
        found = list(connection.execute(sa.text("select title from public.tickets_open")).scalars())
    assert found == [
        "volume with effects", "broker down", "group late first", "cluster warning", "application warning", "effect",
    ]  # fmt: skip


def test_a_kind_that_is_not_known_comes_last(warehouse: sa.Engine) -> None:
    query = sa.text("select public.reach_rank(:resource)")
    with warehouse.connect() as connection:
        keys = ("cluster:c", "client:c/x", "what", None)
        ranks = [connection.execute(query, {"resource": key}).scalar() for key in keys]
    assert ranks == [1, 14, 100, 100]
