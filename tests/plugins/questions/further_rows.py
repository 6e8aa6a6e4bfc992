"""Rows of tables that the sample fleet leaves empty, so that each question has an answer."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tests.sample_fleet import CLUSTER, PLACE
from tests.sql.rows import insert_rows

GIB = 2**30


def add_further_rows(warehouse: sa.Engine, hour: datetime) -> None:
    """Adds producers, a resized volume, and applications to the sample fleet whose newest hour is `hour`."""
    with warehouse.begin() as connection:
        for table, row in _rows(hour):
            insert_rows(connection, table, [{"hour": hour, **row}])


def _rows(hour: datetime) -> list[tuple[str, dict[str, Any]]]:
    before = hour - timedelta(hours=1)
    volume = PLACE | {"volume_id": "vol-0resized", "state": "in-use", "application": "kafka"}
    client = {"cluster": CLUSTER, "app": "shop", "endpoint": "shop:8778", "kind": "producer", "client_id": "shop-1"}
    trial = {"cluster": CLUSTER, "group_id": "fraud"}
    return [
        ("metrics.client_hourly", client | {"covered_seconds": 3600, "records": 3600, "bytes": 360_000}),
        (
            "metrics.client_topic_hourly",
            client | {"topic": "orders", "covered_seconds": 3600, "records": 3600, "bytes": 360_000},
        ),
        ("inventory.volume_hourly", volume | {"hour": before, "volume_type": "gp2", "size_gib": 100}),
        ("inventory.volume_hourly", volume | {"volume_type": "gp3", "size_gib": 100, "provisioned_iops": 3000}),
        (
            "detect.evaluation",
            {
                "detector": "consumer_trial_failed", "fingerprint": "f" * 64, "resource_name": "fraud",
                "identity": trial, "status": "ok", "reason": "on_trial",
                "metrics": json.dumps({"trial_since": before.isoformat(), "tried_hours": 1, "kept_up_hours": 1}),
            },
        ),
    ]  # fmt: skip
