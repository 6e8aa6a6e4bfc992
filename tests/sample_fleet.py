"""Eight hours of a sample fleet that the product's own detectors evaluate, for pictures and tests of pages.

The volume of broker 3 runs out of burst credits, its log flushes become slow, and it drops out of the ISR. Groups
billing and search lag on the partitions that it leads. Group audit lags on all partitions, for another reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from streamwarden.base.catalog import APPS
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR
from streamwarden.causes import find_causes
from streamwarden.detectors import evaluate, load_detectors
from streamwarden.tickets import deliver, reconcile
from streamwarden.tickets.sinks.contract import Sink

from tests.sql.rows import insert_rows

HOURS, FIRST_THROTTLED_HOUR = 8, 5
"""Number of hours, and index of the first hour in which the volume is throttled."""
CLUSTER, BROKERS = "orders-prod", (1, 2, 3)
EVALUATED = ("ebs_volume_starving", "log_flush_slow", "partitions_under_replicated", "consumer_group_lagging")
PLACE = {"account": "123456789012", "region": "eu-central-1"}
TOPICS = {"orders": 12, "payments": 6, "shipments": 6}
GROUPS = {"billing": "orders", "search": "payments", "audit": "shipments"}
MIB = 2**20
Row = dict[str, Any]
Rows = Iterator[tuple[str, Row]]


def run_hours(warehouse: sa.Engine, newest: datetime, config: Config, sinks: Sequence[Sink]) -> None:
    """Stores, evaluates, and delivers each hour up to `newest`. Only EVALUATED run on the older hours."""
    detectors = load_detectors()
    for number in range(HOURS):
        hour = newest - (HOURS - 1 - number) * HOUR
        with warehouse.begin() as connection:
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": hour.date()})
            for table, row in _rows_of(number, hour):
                insert_rows(connection, table, [{"hour": hour, **row}])
        for detector in detectors.values():
            if detector.id in EVALUATED or hour == newest:
                evaluate(warehouse, detector, hour, config)
        find_causes(warehouse, detectors, hour)
        reconcile(warehouse, config, detectors)
        for sink in sinks:
            assert deliver(warehouse, sink, config).failed == []


def _rows_of(number: int, hour: datetime) -> Rows:
    is_throttled = number >= FIRST_THROTTLED_HOUR
    yield from _coverage(hour)
    for broker in BROKERS:
        under_replicated = sum(TOPICS.values()) // 3 if number > FIRST_THROTTLED_HOUR and broker != 3 else 0
        yield from _broker(hour, broker, number if is_throttled and broker == 3 else None, under_replicated)
    for topic, partitions in TOPICS.items():
        row = {"cluster": CLUSTER, "topic": topic, "partitions": partitions, "replication_factor": 3, "kind": "plain"}
        yield "inventory.topic_hourly", row | {"observed_at": hour, "configs": {"min.insync.replicas": {"value": "2"}}}
        for partition in range(partitions):
            leader = BROKERS[partition % 3]
            is_under_replicated = number > FIRST_THROTTLED_HOUR and leader != 3
            state = {
                "replicas": 3,
                "isr": 2 if is_under_replicated else 3,
                "missing_brokers": [3] if is_under_replicated else None,
            }
            spot = {"cluster": CLUSTER, "topic": topic, "partition": partition, "leader": leader}
            yield "metrics.partition_hourly", spot | state
    for group, topic in GROUPS.items():
        yield from _group(group, topic, number)


def _coverage(hour: datetime) -> Rows:
    done = hour + HOUR + timedelta(minutes=4)
    for app in APPS:
        yield "detect.load", {"app": app, "status": "loaded", "started_at": done, "finished_at": done}
    sources = (
        ("ebs_volumes", "cloudwatch", 3),
        ("brokers", "jmx", 3),
        ("topics", "kafka", 1),
        ("consumer_groups", "kafka", 3),
    )
    for app, source, resources in sources:
        for n in range(resources):
            row = {
                "app": app,
                "source": source,
                "resource_name": f"{source}-{n}",
                "status": "complete",
                "message": None,
            }
            yield "detect.coverage", row | {"queried_at": done}


def _broker(hour: datetime, broker: int, throttled_hour: int | None, under_replicated: int) -> Rows:
    """A broker with its instance and its volume.

    `throttled_hour`: index of the hour if the volume is throttled in it. `under_replicated`: partitions that it leads
    and that miss a replica.
    """
    instance, volume = f"i-0b{broker}00c4d2e7f1a{broker}", PLACE | {"volume_id": f"vol-0{broker}a1b2c3d4e5f607"}
    tags = {"owner": "streaming", "application": "kafka"}
    host = PLACE | {"instance_id": instance, "name": f"kafka-{broker}", "private_ip": f"10.0.0.{broker}", **tags}
    yield "inventory.instance_hourly", host | {"instance_type": "m5.xlarge", "state": "running"}
    size = {"volume_type": "gp2", "size_gib": 100, "state": "in-use"}
    yield "inventory.volume_hourly", volume | size | {"name": f"kafka-{broker}-data", "instance_id": instance, **tags}
    balance, rate = (0.0, 300.0) if throttled_hour else (100.0, 180.0)
    throttled = (
        hour - (throttled_hour - FIRST_THROTTLED_HOUR) * HOUR + timedelta(minutes=12) if throttled_hour else None
    )
    minutes = 0 if not throttled_hour else 48 if throttled_hour == FIRST_THROTTLED_HOUR else 60
    facts = {
        "known_until": hour + HOUR, "minutes_expected": 60, "minutes_present": 60, "minutes_balance": 60,
        "baseline_iops": 300, "burst_iops": 3000, "baseline_bytes_per_second": 75 * MIB,
        "burst_bytes_per_second": 128 * MIB, "bucket_credits": 5_400_000, "iops_mean": rate, "iops_now": rate,
        "iops_p99": rate, "bytes_per_second_mean": 9 * MIB, "bytes_per_second_now": 9 * MIB,
        "bytes_per_second_p99": 9 * MIB, "queue_length_mean": 14.0 if throttled_hour else 0.6,
        "burst_balance_min_percent": balance, "burst_balance_last_percent": balance,
        "hours_to_exhaustion": 0 if throttled_hour else None, "minutes_empty": minutes,
        "minutes_at_iops_limit": minutes,
        "minutes_at_throughput_limit": 0, "minutes_at_instance_limit": 0, "minutes_stalled": 0,
        "minutes_throttled": minutes, "throttled_since": throttled, "demand_iops_p95": 870 if throttled_hour else 200,
        "demand_iops_p99": 930 if throttled_hour else 220, "demand_bytes_per_second_p95": 16 * MIB,
        "demand_bytes_per_second_p99": 18 * MIB, "demand_hours": 24, "read_baseline_bytes_per_second": 2 * MIB,
    }  # fmt: skip
    yield "metrics.volume_hourly", volume | facts
    if broker == 3:
        for minute in range(0, 60, 5):
            yield "metrics.volume_sample", volume | _sample(hour, minute, since=throttled)
    jmx = {
        "cluster": CLUSTER, "endpoint": f"http://10.0.0.{broker}:8778/jolokia", "broker_id": broker, "samples": 3,
        "instance_id": instance, "covered_seconds": 3600, "log_flushes_per_second": 2,
        "log_flush_p95_ms": 140 if throttled_hour else 8, "leaders": 8, "partitions": 24,
        "under_replicated_partitions": under_replicated,
        "under_replicated_partitions_max": under_replicated,
        "under_min_isr_partitions": 0,
    }  # fmt: skip
    yield "metrics.broker_hourly", jmx


def _sample(hour: datetime, minute: int, *, since: datetime | None) -> Row:
    at = hour + timedelta(minutes=minute)
    is_throttled = since is not None and at >= since
    rate = 300.0 if is_throttled else 260 * (1 + 0.1 * math.sin(minute))
    counts = {"read_ops": rate * 100, "write_ops": rate * 200, "read_bytes": rate * 3e6, "write_bytes": rate * 6e6}
    return {"at": at, "period_seconds": 300, "burst_balance_percent": 0.0 if is_throttled else 60.0, **counts}


def _group(group: str, topic: str, number: int) -> Rows:
    lags: list[int] = []
    for partition in range(TOPICS[topic]):
        leader = BROKERS[partition % 3]
        first_late_hour = {
            "billing": FIRST_THROTTLED_HOUR,
            "search": FIRST_THROTTLED_HOUR + 1,
            "audit": FIRST_THROTTLED_HOUR + 1,
        }[group]
        is_late = number >= first_late_hour and (leader == 3 or group == "audit")
        rhythm = {"arriving_per_second": 40, "reading_per_second_low": 31 if is_late else 40,
                  "reading_per_second_high": 31 if is_late else 40, "reading_seconds": 3600}  # fmt: skip
        lag_seconds = (number - FIRST_THROTTLED_HOUR + 1) * (900 if group == "billing" else 700) if is_late else 0
        lags.append(lag_seconds)
        yield "metrics.consumer_partition_hourly", {
            "cluster": CLUSTER, "group_id": group, "topic": topic, "partition": partition, "lag_seconds": lag_seconds,
            "lag_records": lag_seconds * 40, "status": "warn" if is_late else "ok", "client_id": f"{group}-1",
            "host": f"/10.0.1.{partition % 2}", **rhythm,
        }  # fmt: skip
    yield "metrics.consumer_group_hourly", {
        "cluster": CLUSTER, "group_id": group, "state": "STABLE", "members": 2, "lag_seconds_max": max(lags),
        "lag_records": sum(lags) * 40, "lag_records_max": max(lags) * 40, "lag_unknown_partitions": 0,
    }  # fmt: skip
    hosts = [0, 1] if number < FIRST_THROTTLED_HOUR or group != "search" else [0, 1, 2]
    for host in hosts:
        yield "inventory.consumer_member_hourly", {
            "cluster": CLUSTER, "group_id": group, "member_id": f"{group}-{host}", "client_id": f"{group}-{host}",
            "host": f"/10.0.1.{host}", "assignment": "{}",
        }  # fmt: skip
