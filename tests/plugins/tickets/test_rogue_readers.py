"""Two rogue consumers of one cluster have two tickets: detector consumer_rogue over four hours, and reconcile."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config
from streamwarden.detectors import findings
from streamwarden.detectors.results import store_findings
from streamwarden.tickets.reconcile import reconcile

from tests.sql.cases import CASES_OF, DETECTORS, insert_given
from tests.sql.rows import HOUR, insert_row

ROGUE = DETECTORS["consumer_rogue"]
CASE = CASES_OF["consumer_rogue"][0]
MANY = 7_200_000_000
READ: list[dict[str, int]] = [
    {"clickstream": MANY},
    {"clickstream": MANY, "archive": MANY // 2},
    {"archive": MANY},
    {"archive": MANY, "audit": MANY // 2},
    {},
]
"""Bytes out by topic that no group accounts for, hour by hour."""


def _later(value: Any, by: timedelta) -> Any:
    return value + by if isinstance(value, datetime) else value


def _evaluate(connection: sa.Connection, hour: datetime, read: dict[str, int]) -> None:
    clicks, *others = CASE["given"]["metrics.topic_hourly"]
    topic, *_ = CASE["given"]["inventory.topic_hourly"]
    given = CASE["given"] | {
        "metrics.topic_hourly": [
            *others,
            *(clicks | {"topic": name, "bytes_out": size} for name, size in read.items()),
        ],
        "inventory.topic_hourly": [topic | {"topic": name} for name in ("clickstream", "archive", "audit", "orders")],
    }
    if not read:
        given["metrics.volume_sample"] = [row | {"read_bytes": 0} for row in given["metrics.volume_sample"]]
    rows = {
        table: [{column: _later(value, hour - HOUR) for column, value in row.items()} for row in given_rows]
        for table, given_rows in given.items()
    }
    insert_given(connection, {"given": rows, "hour": hour})
    found = findings(connection, ROGUE, hour, Config(), ROGUE.params_in_force(Config()) | {"sustained_minutes": 2})
    store_findings(connection, found, hour, hour + timedelta(minutes=70))
    insert_row(connection, "detect.detector_run", {"hour": hour, "detector": ROGUE.id, "status": "evaluated"})


@pytest.fixture
def tickets(warehouse: sa.Engine) -> list[tuple[str, int, str, int | None]]:
    """Resource, hour of opening, state, and hour of closing of each ticket, once all hours are reconciled."""
    for number, read in enumerate(READ):
        with warehouse.begin() as connection:
            _evaluate(connection, HOUR + timedelta(hours=number), read)
        reconcile(warehouse, Config(), {ROGUE.id: ROGUE})
    with warehouse.connect() as connection:
        rows = connection.exec_driver_sql("select resource, opened_hour, state, closed_hour from tickets.ticket").all()

    def number_of(hour: datetime | None) -> int | None:
        return None if hour is None else round((hour - HOUR) / timedelta(hours=1))

    return sorted((row[0], number_of(row[1]) or 0, row[2], number_of(row[3])) for row in rows)


def test_each_reader_has_a_ticket_that_closes_when_it_has_stopped(tickets: list[tuple[Any, ...]]) -> None:
    assert tickets == [
        ("topic:c/archive", 1, "open", None),  # one healthy hour is not enough
        ("topic:c/audit", 3, "open", None),
        ("topic:c/clickstream", 0, "closed", 3),
    ]
