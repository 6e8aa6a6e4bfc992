"""App msk on emulated clusters, through Spark into the warehouse, and what the detectors say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.ebs_load import LoadModel, Surge
from demo.msk_world import MskCluster
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, load_config
from streamwarden.base.hours import HOUR, gap_of_present
from streamwarden.detectors import evaluate, load_detectors

from spark_apps.apps import msk as app
from spark_apps.apps.ebs_volumes import inventory
from spark_apps.sources import msk_discovery as source
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
    monkeypatch.setattr(inventory, "gap_of_present", partial(gap_of_present, now=NOW))
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
    found = rows(warehouse, "select resource_name, message from detect.coverage where status <> 'complete'")
    return {row["resource_name"]: row["message"] for row in found}


def verdicts(warehouse: sa.Engine, detector: str, hour: datetime = LAST) -> dict[str, sa.RowMapping]:
    """What a detector says, by the resource's name."""
    ran = evaluate(warehouse, load_detectors()[detector], hour, load_config())
    assert ran.status == "evaluated", ran.message
    query = "select * from detect.evaluation where hour = :hour and detector = :detector"
    found = rows(warehouse, query, hour=hour, detector=detector)
    return {row["resource_name"]: row for row in found}


@pytest.mark.rare
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
    assert run.endpoint.calls["GetMetricData"] == 2 * cost["calls"]  # type: ignore[attr-defined]
    asked = cost["metrics_requested"]
    # 24 + 10 of each broker, 8 of its storage, 1 of its reads in four weeks, 2 of the cluster
    assert asked == 3 * (24 + 10 + 8 - 1 + 1) + 2 - 0


@pytest.mark.rare
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


def starving() -> LoadModel:
    """More than 100 GiB of gp2 sustain (300 IOPS), until the credits are spent, some hours ago."""
    surge = Surge(LAST - timedelta(hours=12), NOW + HOUR, read_iops=200, write_iops=400)
    return LoadModel(read_iops=20, write_iops=20, daily_swing=0.1, weekend_factor=1, surges=(surge,))


def replayed() -> LoadModel:
    """Cold reads for 23 minutes of the hour."""
    surge = Surge(LAST + timedelta(minutes=35), LAST + timedelta(minutes=58), read_iops=300)
    return LoadModel(read_iops=1, write_iops=20, read_kib=128, weekend_factor=1, surges=(surge,))


def quiet() -> LoadModel:
    return LoadModel(read_iops=1, write_iops=20, read_kib=128, weekend_factor=1)


@pytest.fixture
def judge(warehouse: sa.Engine) -> Callable[[str], dict[str, str]]:
    """Reasons of a detector by resource name; the other apps had nothing to gather."""

    def judged(detector: str) -> dict[str, str]:
        with warehouse.begin() as connection:
            for other in set(load_detectors()[detector].apps) - {"msk"}:
                connection.execute(
                    sa.text(
                        "insert into detect.load (hour, app, status, rows, started_at, finished_at)"
                        " values (:hour, :app, 'loaded', '{}', :hour, :hour) on conflict do nothing"
                    ),
                    {"hour": LAST, "app": other},
                )
        return {row["resource_name"]: row["reason"] for row in verdicts(warehouse, detector).values()}

    return judged


def remember_bytes_out(warehouse: sa.Engine, cluster: str, bytes_per_second: float) -> None:
    """A day and more in which each broker sent as much."""
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into metrics.broker_hourly (hour, cluster, broker_id, endpoint, samples, bytes_out_per_second)"
                " select :hour - make_interval(hours => h), :cluster, b, 'msk://' || b, 60, :bytes"
                " from generate_series(1, 30) as h cross join generate_series(1, 3) as b"
            ),
            {"hour": LAST, "cluster": cluster, "bytes": bytes_per_second},
        )


@pytest.mark.rare
def test_the_flagships_at_the_level_per_broker(
    world: World, run: Run, warehouse: sa.Engine, judge: Callable[[str], dict[str, str]]
) -> None:
    quiet_loads = dict.fromkeys((1, 2, 3), quiet())
    sick = MskCluster(ACCOUNT, REGION, "sick", level="PER_BROKER")
    world.msk.add(sick, {**quiet_loads, 1: starving()})
    sick.set("KafkaDataLogsDiskUsed", 2, LAST - 9 * HOUR, NOW + HOUR, 97)
    sick.set("HeapMemoryAfterGC", 3, LAST - HOUR, NOW + HOUR, 90)
    sick.set("UnderReplicatedPartitions", 3, LAST - HOUR, NOW + HOUR, 12)
    sick.set("BwOutAllowanceExceeded", 2, LAST, NOW, 500)
    sick.set("OfflinePartitionsCount", None, LAST, NOW, 1)
    replay = MskCluster(ACCOUNT, REGION, "replay", level="PER_BROKER", volume_gib=1000)
    world.msk.add(replay, dict.fromkeys((1, 2, 3), replayed()))
    tiered = MskCluster(ACCOUNT, REGION, "tiered", level="PER_BROKER", volume_gib=1000, storage_mode="TIERED")
    world.msk.add(tiered, dict.fromkeys((1, 2, 3), replayed()))
    for broker in (1, 2, 3):
        for cluster in (replay, tiered):
            cluster.set("BytesOutPerSec", broker, LAST + timedelta(minutes=35), LAST + timedelta(minutes=58), 4.4e7)
        tiered.set("RemoteFetchBytesPerSec", broker, LAST + timedelta(minutes=35), LAST + timedelta(minutes=58), 4e7)
    for cluster in (replay, tiered):
        cluster.set("EstimatedMaxTimeLag", ("billing", "orders"), LAST - HOUR, NOW, 3)
        cluster.set("MaxOffsetLag", ("billing", "orders"), LAST - HOUR, NOW, 40)
    fine = MskCluster(ACCOUNT, REGION, "fine", level="PER_BROKER", volume_gib=1000)
    world.msk.add(fine, quiet_loads)
    for name in ("sick", "replay", "fine", "tiered"):
        remember_bytes_out(warehouse, name, 4e6)
    run()
    assert gaps(warehouse) == {}

    volumes = judge("ebs_volume_starving")
    assert volumes.pop("msk-sick-b-1-data (sick broker 1 storage)") == "bucket_empty"
    assert len(volumes) == 11 and {*volumes.values()} <= {
        "bucket_full",
        "bucket_refills",
        "bucket_lasts",
        "within_limits",
    }
    assert judge("consumer_rogue") == {
        "sick": "normal",
        "replay": "rogue_by_bandwidth",
        "fine": "normal",
        "tiered": "broker_internal_reads",
    }
    disks = judge("disk_filling")
    assert disks.pop("sick broker 2") == "nearly_full" and {*disks.values()} == {"short_history"}
    heaps = judge("broker_memory_high")
    assert heaps.pop("sick broker 3") == "heap_exhausted" and {*heaps.values()} == {"within_limits"}
    networks = judge("instance_network_starving")
    assert networks.pop("msk-sick-b-2 (sick broker 2)") == "allowance_exceeded"
    assert {*networks.values()} == {"within_limits"}
    (lag, _) = rows(warehouse, "select * from metrics.msk_consumer_lag_hourly order by cluster")
    assert (lag["cluster"], lag["group_id"], lag["topic"]) == ("replay", "billing", "orders")
    assert (lag["max_offset_lag_last"], lag["time_lag_seconds_max"], lag["minutes_present"]) == (40, 3, 60)
    assert judge("consumer_group_lag_estimated") == dict.fromkeys(("replay/billing", "tiered/billing"), "keeps_up")
    assert judge("controllers_missing") == dict.fromkeys(("sick", "replay", "fine", "tiered"), "one_active")
    (broker,) = rows(
        warehouse, "select * from metrics.broker_hourly where hour = :hour and under_replicated_partitions > 0"
    )
    assert (broker["cluster"], broker["broker_id"], broker["under_replicated_partitions_max"]) == ("sick", 3, 12)
    actions = verdicts(warehouse, "ebs_volume_starving")["msk-sick-b-1-data (sick broker 1 storage)"]["commands"]
    assert all("aws ec2" not in command for command in actions) and "update-broker-storage" in actions[0]


@pytest.mark.rare
def test_the_flagships_at_the_level_default(
    world: World, run: Run, warehouse: sa.Engine, judge: Callable[[str], dict[str, str]]
) -> None:
    sick = MskCluster(ACCOUNT, REGION, "sick", instance_type="kafka.t3.small")
    world.msk.add(sick, {1: starving(), 2: quiet(), 3: quiet()})
    sick.set("CPUCreditBalance", 2, LAST - HOUR, NOW + HOUR, 0)
    sick.set("SwapUsed", 3, LAST + timedelta(minutes=30), NOW + HOUR, 3e8)
    sick.set("TrafficShaping", 2, LAST, LAST + timedelta(minutes=20), 40)
    world.msk.add(MskCluster(ACCOUNT, REGION, "large", volume_gib=1000, instance_type="kafka.m5.large"))
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into metrics.msk_broker_hourly"
                " (hour, cluster, broker_id, account, region, instance_id, swap_used_last_bytes)"
                " values (:hour - interval '1 hour', 'sick', 3, '1', 'r', 'i', 0)"
            ),
            {"hour": LAST},
        )
    run()
    volumes = judge("ebs_volume_starving")
    assert volumes.pop("msk-sick-b-1-data (sick broker 1 storage)") == "bucket_empty"
    assert {name: reason for name, reason in volumes.items() if "large" in name} == {
        f"msk-large-b-{n}-data (large broker {n} storage)": "monitoring_level_too_low" for n in (1, 2, 3)
    }
    (starved,) = rows(
        warehouse, "select * from metrics.volume_hourly where volume_id = 'msk-sick-b-1-data' and hour = :hour"
    )
    assert starved["minutes_throttled"] > 50 and starved["iops_mean"] is None
    assert judge("consumer_rogue")["large"] == "monitoring_level_too_low"
    credits = judge("instance_cpu_starving")
    assert credits.pop("msk-sick-b-2 (sick broker 2)") == "throttled" and {*credits.values()} == {"short_history"}
    networks = judge("instance_network_starving")
    assert networks.pop("msk-sick-b-2 (sick broker 2)") == "allowance_exceeded"
    assert {*networks.values()} == {"within_allowances"}
    memory = judge("broker_memory_high")
    assert memory.pop("sick broker 3") == "swapping" and {*memory.values()} == {"within_limits"}


@pytest.mark.rare
def test_an_hour_that_is_over_is_not_filled_with_the_clusters_of_now(
    world: World, run: Run, warehouse: sa.Engine
) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "orders"))
    written = run(LAST - 5 * HOUR)
    assert written["inventory.msk_broker_hourly"] == written["metrics.broker_hourly"] == 0
    assert any("MSK's inventory only knows the present" in message for message in gaps(warehouse).values())


@pytest.mark.rare
def test_gaps_of_one_cluster_leave_the_others_and_ec2_alone(world: World, run: Run, warehouse: sa.Engine) -> None:
    world.msk.add(MskCluster(ACCOUNT, REGION, "orders"))
    world.msk.add(MskCluster(ACCOUNT, REGION, "young", state="CREATING"))
    world.msk.add(MskCluster(ACCOUNT, REGION, "less", is_serverless=True))
    world.msk.add(MskCluster(ACCOUNT, REGION, "fast", instance_type="express.m7g.large"))
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into inventory.volume_hourly (hour, account, region, volume_id, tags, observed_at)"
                " values (:hour, :account, :region, 'vol-1', '{}', :hour)"
            ),
            {"hour": LAST, "account": ACCOUNT, "region": REGION},
        )
    run()
    missing = gaps(warehouse)
    place = f"{ACCOUNT}/{REGION} MSK cluster"
    assert set(missing) == {f"{place} young", f"{place} less brokers", f"{place} fast storage"}
    clusters = rows(warehouse, "select cluster, kind, state from inventory.msk_cluster_hourly order by cluster")
    assert [tuple(row.values()) for row in clusters] == [
        ("fast", "express", "ACTIVE"),
        ("less", "serverless", "ACTIVE"),
        ("orders", "standard", "ACTIVE"),
        ("young", "standard", "CREATING"),
    ]
    kept = rows(warehouse, "select volume_id from inventory.volume_hourly order by volume_id")
    assert [row["volume_id"] for row in kept] == [*(f"msk-orders-b-{n}-data" for n in (1, 2, 3)), "vol-1"]
    (express,) = rows(warehouse, "select * from metrics.broker_hourly where cluster = 'fast' and broker_id = 1")
    assert express["bytes_in_per_second"] == 2e6 and express["under_replicated_partitions"] is None


def test_without_msk_in_the_config_nothing_is_asked_or_written(
    world: World, run: Run, spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "streamwarden.yaml").write_text("{}")
    assert run_app(spark, "msk", LAST, load_config()) == {}
    assert not run.endpoint.calls  # type: ignore[attr-defined]
