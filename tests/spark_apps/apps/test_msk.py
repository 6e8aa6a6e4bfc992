"""App msk on emulated clusters, through Spark into the warehouse, and what the detectors say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.msk_world import MskCluster
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, load_config
from streamwarden.base.hours import HOUR
from streamwarden.detectors import evaluate, load_detectors

from spark_apps.apps import msk as app
from spark_apps.sources import msk as source
from spark_apps.submit import run_app
from tests.spark_apps.aws_world import ACCOUNT, REGION

pytestmark = pytest.mark.slow
# Twenty minutes after the hour: it is over, and what MSK says now still counts for it.
NOW = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
LAST = NOW.replace(minute=0) - HOUR
ENTRY = {"account": ACCOUNT, "regions": [REGION], "connect": False, "open_monitoring": False}
Run = Callable[..., dict[str, int]]


class Clock(datetime):
    """A clock that stands at NOW."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW


@pytest.fixture
def world() -> World:
    return World(seed=7, now=lambda: NOW)


@pytest.fixture
def run(world: World, spark: Any, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setattr(app, "datetime", Clock)
    file = tmp_path / "streamwarden.yaml"
    with AwsEndpoint(world) as running:
        wanted = {**running.environment(ACCOUNT, REGION), CONFIG_ENV: str(file), WAREHOUSE_ENV: warehouse_url}
        for name, value in wanted.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)

        def ran(hour: datetime = LAST, **entry: Any) -> dict[str, int]:
            # The path makes the entries different, so that no task remembers the clusters of another test.
            settings = {"msk": [ENTRY | {"client": {"client.id": str(tmp_path)}} | entry]}
            file.write_text(yaml.safe_dump(settings | {"gathering": {"settle_minutes": 0}}))
            source._discover.cache_clear()
            return run_app(spark, "msk", hour, load_config())

        ran.endpoint = running  # type: ignore[attr-defined]
        yield ran


def rows(warehouse: sa.Engine, query: str, **binds: Any) -> list[sa.RowMapping]:
    with warehouse.connect() as connection:
        return list(connection.execute(sa.text(query), {"hour": LAST, **binds}).mappings())


def gaps(warehouse: sa.Engine) -> dict[str, str]:
    found = rows(warehouse, "select resource_name, message from detect.coverage where status <> 'answered'")
    return {row["resource_name"]: row["message"] for row in found}


def verdicts(warehouse: sa.Engine, detector: str, hour: datetime = LAST) -> dict[str, sa.RowMapping]:
    """What a detector says, by the resource's id."""
    ran = evaluate(warehouse, load_detectors()[detector], hour, load_config())
    assert ran.status == "evaluated", ran.message
    query = "select * from detect.evaluation where hour = :hour and detector = :detector"
    found = rows(warehouse, query, hour=hour, detector=detector)
    return {list(row["identity"].values())[-1]: row for row in found}


def test_an_hour_of_a_cluster_with_enhanced_monitoring(world: World, run: Run, warehouse: sa.Engine) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "orders", level="PER_BROKER", tags={"owner": "shop"}))
    first = run()
    assert first["inventory.msk_broker_hourly"] == first["metrics.broker_hourly"] == first["metrics.volume_hourly"] == 3
    assert gaps(warehouse) == {}
    assert run() == first  # and again the same

    (cluster,) = rows(warehouse, "select * from inventory.msk_cluster_hourly")
    assert (cluster["kind"], cluster["monitoring_level"], cluster["volume_gib"]) == ("standard", "PER_BROKER", 100)
    (broker, *_) = rows(warehouse, "select * from metrics.broker_hourly order by broker_id")
    assert (broker["samples"], broker["covered_seconds"], broker["bytes_in_per_second"]) == (60, 3600, 2e6)
    assert broker["instance_id"] == "msk-orders-b-1" and broker["endpoint"].startswith("msk://b-1.orders.")
    assert broker["cpu_ratio"] == pytest.approx(0.19) and broker["active_controllers"] == 1
    assert broker["replication_bytes_in_per_second"] == 4e6 and broker["request_handler_idle_min_ratio"] == 0.9
    (instance, *_) = rows(warehouse, "select * from inventory.instance_hourly order by instance_id")
    assert (instance["instance_type"], instance["vcpus"], instance["owner"]) == ("kafka.m5.large", 2, "shop")
    (volume, *_) = rows(warehouse, "select * from metrics.volume_hourly order by volume_id")
    assert volume["volume_id"] == "msk-orders-b-1-data" and volume["minutes_present"] == 60
    assert volume["baseline_iops"] == 300 and volume["iops_mean"] > 0 and volume["read_baseline_hours"] > 300
    (disk, *_) = rows(warehouse, "select * from metrics.log_dir_hourly order by broker_id")
    assert (disk["log_dir"], disk["total_bytes"]) == ("KafkaDataLogs", 100 * 1024**3)
    assert disk["usable_bytes"] == pytest.approx(60 * 1024**3)
    (network, *_) = rows(warehouse, "select * from metrics.instance_network_hourly where direction = 'in'")
    assert network["bytes_per_second_mean"] == pytest.approx(6e6) and network["minutes_allowance_exceeded"] == 0
    (own, *_) = rows(warehouse, "select * from metrics.msk_broker_hourly order by broker_id")
    assert own["heap_after_gc_mean_percent"] == 35 and own["swap_used_max_bytes"] == 0
    (cost,) = rows(warehouse, "select * from metrics.cloudwatch_cost_hourly where app = 'msk'")
    asked = cost["metrics_asked"]
    # 24 + 10 of each broker, 8 of its storage, 1 of its reads in four weeks, 2 of the cluster
    assert asked == 3 * (24 + 10 + 8 - 1 + 1) + 2 - 0


def test_the_level_default_costs_less_and_says_what_is_missing(world: World, run: Run, warehouse: sa.Engine) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "orders"))
    run()
    (broker, *_) = rows(warehouse, "select * from metrics.broker_hourly order by broker_id")
    assert broker["bytes_in_per_second"] == 2e6 and broker["replication_bytes_in_per_second"] is None
    assert broker["produce_mean_ms"] is None and broker["request_handler_idle_min_ratio"] is None
    (volume, *_) = rows(warehouse, "select * from metrics.volume_hourly order by volume_id")
    assert volume["iops_mean"] is None and volume["minutes_balance"] == volume["minutes_present"] == 60
    (network, *_) = rows(warehouse, "select * from metrics.instance_network_hourly")
    assert network["bytes_per_second_mean"] is None and network["minutes_allowance_exceeded"] == 0
