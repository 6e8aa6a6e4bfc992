"""Rows of tables that the sample fleet leaves empty, so that each question has an answer."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tests.sample_fleet import CLUSTER, PLACE
from tests.sql.rows import insert_rows

GIB = 2**30
Rows = list[tuple[str, dict[str, Any]]]


def add_further_rows(warehouse: sa.Engine, hour: datetime) -> None:
    """Adds producers, a resized volume, and applications to the sample fleet whose newest hour is `hour`."""
    with warehouse.begin() as connection:
        for table, row in _rows(hour):
            insert_rows(connection, table, [{"hour": hour, **row}])


def _rows(hour: datetime) -> Rows:
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
        *_unhealthy(hour),
        *_wide_topic(hour),
        *_streams(hour),
    ]  # fmt: skip


def _wide_topic(hour: datetime) -> Rows:
    """A topic of 24 partitions with almost no traffic, known for more than the detector's 14 days."""
    topic = {"cluster": CLUSTER, "topic": "wide"}
    seen = {"cluster": CLUSTER, "topic": "wide", "kind": "plain", "partitions": 24, "replication_factor": 3}
    rate = {"bytes_in": 3600, "covered_seconds": 3600}
    return [
        ("inventory.topic_hourly", seen),
        ("inventory.topic_hourly", seen | {"hour": hour - timedelta(days=14, hours=12)}),
        *(("metrics.topic_hourly", topic | rate | {"hour": hour - timedelta(hours=back)}) for back in range(0, 336, 2)),
    ]


def _unhealthy(hour: datetime) -> Rows:
    """A group that reads nothing and rebalances, a full disk, a source that does not respond, and traffic."""
    topic, stuck = {"cluster": CLUSTER, "topic": "orders"}, {"cluster": CLUSTER, "group_id": "stuck"}
    end = {"log_end_offset": 900, "log_end_offset_first": 100, "log_end_offset_last": 900}
    return [
        ("metrics.consumer_partition_hourly", stuck | {"topic": "orders", "partition": 0, "lag_seconds": 8 * 86_400}),
        ("metrics.consumer_group_hourly", stuck | {"rebalances": 7, "members": 2}),
        ("inventory.topic_hourly", topic | {"topic": "events", "kind": "plain", "partitions": 1}),
        ("metrics.partition_hourly", topic | {"topic": "events", "partition": 0, "leader": 1, **end}),
        (
            "metrics.topic_hourly",
            topic | {"covered_seconds": 3600, "bytes_in": 36 * GIB, "bytes_out": 72 * GIB, "log_bytes": 900 * GIB},
        ),
        (
            "metrics.log_dir_hourly",
            {"cluster": CLUSTER, "broker_id": 3, "log_dir": "/data", "total_bytes": 100 * GIB, "usable_bytes": GIB},
        ),
        (
            "detect.coverage",
            {"app": "brokers", "source": "jmx", "resource_name": "b9", "status": "missing", "message": "refused"},
        ),
        (
            "metrics.cloudwatch_cost_hourly",
            {"account": "1", "region": "eu-central-1", "calls": 2, "metrics_requested": 90},
        ),
    ]


def _streams(hour: datetime) -> Rows:
    """A Kafka Streams application that started, restores its state, and changed the schema of a store."""
    process = {
        "cluster": CLUSTER, "app": "shop", "endpoint": "shop:8778", "application_id": "shop", "samples": 3,
        "process_started_at": hour, "records_to_restore": 5_000_000,
    }  # fmt: skip
    store = {"cluster": CLUSTER, "topic": "shop-carts-changelog", "path": "$.total", "change": "type_changed"}
    return [
        ("metrics.jvm_app_hourly", process),
        ("metrics.state_store_change_hourly", store | {"breaks_backward": True, "breaks_forward": False}),
    ]
