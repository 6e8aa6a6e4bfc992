"""Views that list findings of a topic detector, with the parameters of its last evaluation."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row


def _insert_run(connection: sa.Connection, detector: str, params: dict[str, Any]) -> None:
    insert_row(
        connection, "detect.detector_run",
        {"hour": HOUR, "detector": detector, "status": "evaluated", "params": json.dumps(params)},
    )  # fmt: skip


def test_topics_low_rate_uses_the_parameters_of_the_newest_evaluation(warehouse: sa.Engine) -> None:
    params = {"days": 1, "partitions_at_least": 12, "bytes_per_partition": 1024, "set_topics": 20}
    with warehouse.begin() as connection:
        topic = {"cluster": "c", "topic": "t", "kind": "plain", "partitions": 24, "replication_factor": 2}
        for ago in (0, 24):
            insert_row(connection, "inventory.topic_hourly", {"hour": HOUR - timedelta(hours=ago), **topic})
        for ago in range(13):
            rate = {"cluster": "c", "topic": "t", "covered_seconds": 3600, "bytes_in": 3600 * 2048}
            insert_row(connection, "metrics.topic_hourly", {"hour": HOUR - timedelta(hours=ago), **rate})
        _insert_run(connection, "topic_overpartitioned", params)
        low = sa.text("select topic, needed_partitions, freed_partitions, freed_replicas from topics_low_rate")
        assert connection.execute(low).all() == [("t", 2, 22, 44)]
        connection.execute(
            sa.text("update detect.detector_run set params = jsonb_set(params, '{partitions_at_least}', '25')")
        )
        assert connection.execute(low).all() == []
