"""broker_history: the weeks of a broker before an hour."""

from __future__ import annotations

import sqlalchemy as sa

from tests.sql.given import rows_for


def test_written_bytes_of_a_broker_without_replication_in_the_hours_before(module_warehouse: sa.Engine) -> None:
    broker = {"cluster": "c", "endpoint": "e", "bytes_in_per_second": 100, "replication_bytes_in_per_second": None}
    found = rows_for(
        module_warehouse, {"metrics.broker_hourly": [broker | {"over": {"hours": 3}}]},
        "select cardinality(hours), written_bytes_per_second from public.broker_history(:hour, 0)",
    )  # fmt: skip
    assert found == [(2, [100, 100])]
