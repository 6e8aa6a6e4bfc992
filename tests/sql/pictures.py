"""Pictures of the catalogue's pages: the plots of the flagship detectors, drawn from hours that are made up here.

`python -m tests.sql.pictures` draws docs/pictures/<detector id>.svg anew; a test says when one is stale.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.detectors import load_detectors
from streamwarden.plots.draw import draw_finding

from tests.sql.rows import insert_row

FOLDER = PROJECT_ROOT / "docs" / "pictures"
HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
GIB, MIB = 2**30, 2**20
Rows = dict[str, list[dict[str, Any]]]
PLACE = {"account": "123456789012", "region": "eu-central-1"}


def _starving() -> Rows:
    """A gp2 volume of 100 GiB whose load grows beyond its baseline: the bucket will be empty in half an hour."""
    volume = PLACE | {"volume_id": "vol-0a1b2c3d4e5f60718"}
    samples, balance = [], 100.0
    for minute in range(-420, 60, 5):
        iops = (900 if minute >= -65 else 240) * (1 + 0.12 * math.sin(minute / 7))
        balance = min(balance + (300 - iops) * 300 / 54_000, 100.0)
        samples.append(
            volume | {"at": HOUR + timedelta(minutes=minute), "period_seconds": 300, "read_ops": iops * 100,
                      "write_ops": iops * 200, "read_bytes": iops * 100 * 16384, "write_bytes": iops * 200 * 16384,
                      "burst_balance_percent": balance}
        )  # fmt: skip
    facts = {"known_until": HOUR + timedelta(hours=1), "burst_iops": 3000, "baseline_iops": 300,
             "baseline_bytes_per_second": 75 * MIB, "burst_bytes_per_second": 128 * MIB,
             "demand_iops_p95": 1000, "demand_bytes_per_second_p95": 16 * MIB, "burst_balance_last_percent": balance,
             "hours_to_exhaustion": balance * 54_000 / 600 / 3600}  # fmt: skip
    return {"metrics.volume_sample": samples, "metrics.volume_hourly": [volume | facts]}


def _heavy() -> Rows:
    """A heap of 3.5 GiB and thirty RocksDB stores on 4 GiB."""
    process = {"cluster": "shop", "app": "orders", "application_id": "orders",
               "endpoint": "http://10.0.0.7:8778/jolokia", "samples": 3,
               "memory_limit_bytes": 4 * GIB, "heap_max_bytes": 3.4 * GIB, "heap_used_bytes": 0.9 * GIB,
               "non_heap_used_bytes": 150 * MIB, "thread_stack_bytes": 60 * MIB, "direct_bytes": 32 * MIB,
               "store_instances": 30, "rocksdb_measured_bytes": 1.1 * GIB,
               "rocksdb_expected_bytes": 30 * 98 * MIB}  # fmt: skip
    return {"metrics.jvm_app_hourly": [process]}


def _drifting() -> Rows:
    """An order's quantity became text, its postcode went away and a coupon came."""
    topic = {"cluster": "shop", "topic": "orders-customer-latest-changelog", "old_last_offset": "3:48211",
             "new_first_offset": "3:48212", "new_first_at": HOUR + timedelta(minutes=12), "old_version": 1,
             "new_version": 2}  # fmt: skip
    changes: list[dict[str, Any]] = [
        {"path": "$.quantity", "change": "type_changed", "old_type": "integer", "new_type": "string",
         "old_count": 41_200, "new_count": 8_800, "breaks_backward": True, "breaks_forward": True},
        {"path": "$.address.postcode", "change": "field_removed", "old_type": "string", "new_type": None,
         "old_count": 41_200, "new_count": 8_800, "breaks_backward": False, "breaks_forward": True},
        {"path": "$.coupon", "change": "optional_field_added", "old_type": None, "new_type": "string",
         "old_count": 41_200, "new_count": 2_640, "breaks_backward": False, "breaks_forward": False},
    ]  # fmt: skip
    return {"metrics.state_store_change_hourly": [{**topic, **change} for change in changes]}


def _rogue() -> Rows:
    """Three brokers' disks, of which a consumer begins to read at 10:17, while every group keeps up."""
    hours = [HOUR + timedelta(hours=n) for n in range(-5, 1)]
    rows: Rows = {table: [] for table in ("metrics.broker_hourly", "inventory.volume_hourly", "metrics.volume_hourly",
                                          "metrics.volume_sample", "metrics.consumer_partition_hourly",
                                          "detect.evaluation")}  # fmt: skip
    for broker in range(3):
        instance, volume = f"i-broker{broker}", PLACE | {"volume_id": f"vol-broker{broker}"}
        rows["metrics.broker_hourly"].append({"cluster": "shop", "endpoint": instance, "instance_id": instance})
        rows["inventory.volume_hourly"].append(volume | {"instance_id": instance})
        usual = (broker + 2) * MIB
        rows["metrics.volume_hourly"] += [
            volume | {"hour": hour, "read_baseline_bytes_per_second": usual} for hour in hours
        ]
        for minute in range(-300, 60):
            rate = usual * (1 + 0.2 * math.sin(minute + broker))
            if 17 <= minute < 52:
                rate += (38 + 5 * broker) * MIB * (1 + 0.08 * math.sin(minute * 2 + broker))
            sample = {"at": HOUR + timedelta(minutes=minute), "period_seconds": 60, "read_bytes": rate * 60}
            rows["metrics.volume_sample"].append(volume | sample)
    for n, hour in enumerate(hours):
        rows["metrics.consumer_partition_hourly"] += [
            {"hour": hour, "cluster": "shop", "group_id": group, "topic": topic, "partition": 0, "lag_seconds": lag}
            for group, topic, lag in (("billing", "orders", 4 + n % 3), ("search", "clicks", (30, 210, 90)[n % 3]))
        ]
        figures = json.dumps({"page_cache_holds_seconds": 2400 + 60 * n})
        rows["detect.evaluation"].append(
            {"hour": hour, "detector": "consumer_rogue", "fingerprint": "-", "status": "ok",
             "identity": {"cluster": "shop"}, "figures": figures}
        )  # fmt: skip
    return rows


PICTURES: dict[str, Callable[[], Rows]] = {
    "ebs_volume_starving": _starving,
    "app_memory_heavy": _heavy,
    "state_store_schema_drift": _drifting,
    "consumer_rogue": _rogue,
}


def draw(warehouse: sa.Engine, detector: str) -> bytes:
    """The picture; the warehouse keeps its hour."""
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        rows = PICTURES[detector]()
        for table, of_table in rows.items():
            for row in of_table:
                insert_row(connection, table, {"hour": HOUR, **row})
    known = {column: value for of_table in rows.values() for row in of_table for column, value in row.items()}
    identity = {column: known[column] for column in load_detectors()[detector].identity}
    drawing = draw_finding(warehouse, detector, HOUR, identity, "svg")
    assert drawing is not None, detector
    return drawing.content


def main() -> None:
    """Draws all."""
    from streamwarden.base.warehouse import engine
    from streamwarden.store.migrate import migrate

    from tests.conftest import a_database

    for detector in PICTURES:
        with a_database() as url:
            migrate(engine(url))
            (FOLDER / f"{detector}.svg").write_bytes(draw(engine(url), detector))


if __name__ == "__main__":
    main()
