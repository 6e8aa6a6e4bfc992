"""App ebs_volumes on the modelled AWS world, through Spark into the warehouse, and the finding of its detector."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.demo_world import (
    BATCH_INSTANCE_ID,
    BROKER_INSTANCE_ID,
    BROKER_VOLUME_ID,
    DEMO_ACCOUNT,
    DEMO_REGION,
    DETACHED_VOLUME_ID,
    ORDERS_VOLUME_ID,
    QUIET_VOLUME_ID,
    RECOVERING_VOLUME_ID,
    SPIKY_VOLUME_ID,
    demo_world,
)
from demo.ebs_load import LoadModel, Surge
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.hours import HOUR, gap_of_present
from streamwarden.detectors import evaluate, load_detectors

from spark_apps.apps import ebs_volumes
from spark_apps.apps.ebs_volumes import inventory, known_until
from spark_apps.submit import run_app

pytestmark = pytest.mark.slow
# Twenty minutes into the hour: `run` takes the hour before as complete, and this one as present.
NOW = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
THIS_HOUR = NOW.replace(minute=0)
LAST_HOUR = THIS_HOUR - HOUR
PLACE = (DEMO_ACCOUNT, DEMO_REGION)


class Clock(datetime):
    """A clock fixed at NOW."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ebs_volumes, "datetime", Clock)
    monkeypatch.setattr(inventory, "gap_of_present", partial(gap_of_present, now=NOW))  # the run may cross an hour


@pytest.fixture
def world() -> World:
    return demo_world({"ebs"}, lambda: NOW)


@pytest.fixture
def endpoint(
    world: World, spark: Any, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsEndpoint]:
    file = tmp_path / "streamwarden.yaml"
    broker = {"role": "broker", "cluster": "demo", "url": "http://127.0.0.1:1", "instance_id": BROKER_INSTANCE_ID}
    settings = {
        "aws": [{"account": DEMO_ACCOUNT, "regions": [DEMO_REGION]}],
        "kafka": [{"name": "demo", "bootstrap_servers": "127.0.0.1:1"}],
        "jmx": [broker],
        "gathering": {"settle_minutes": 0},
    }
    file.write_text(yaml.safe_dump(settings))
    with AwsEndpoint(world) as running:
        wanted = {**running.environment(*PLACE), CONFIG_ENV: str(file), WAREHOUSE_ENV: warehouse_url}
        for name, value in wanted.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        yield running


def run(spark: Any, hour: datetime) -> dict[str, int]:
    return run_app(spark, "ebs_volumes", hour, load_config())


def rows(warehouse: sa.Engine, query: str, **binds: Any) -> list[sa.RowMapping]:
    with warehouse.connect() as connection:
        return list(connection.execute(sa.text(query), binds).mappings())


def volumes(warehouse: sa.Engine, hour: datetime) -> dict[str, sa.RowMapping]:
    found = rows(warehouse, "select * from metrics.volume_hourly where hour = :hour", hour=hour)
    return {row["volume_id"]: row for row in found}


def verdicts(warehouse: sa.Engine, hour: datetime) -> dict[str, sa.RowMapping]:
    run = evaluate(warehouse, load_detectors()["ebs_volume_starving"], hour, Config())
    assert run.status == "evaluated", run.message
    found = rows(warehouse, "select * from detect.evaluation where hour = :hour", hour=hour)
    return {row["identity"]["volume_id"]: row for row in found}


def test_the_hour_of_the_demo(spark: Any, endpoint: AwsEndpoint, world: World, warehouse: sa.Engine) -> None:
    first, count = run(spark, THIS_HOUR), "select count(*) as n, sum(read_ops) as ops from metrics.volume_sample"
    samples = rows(warehouse, count)
    run(spark, THIS_HOUR)
    assert rows(warehouse, count) == samples
    assert first["inventory.volume_hourly"] == first["metrics.volume_hourly"] == len(world.volumes) == 6
    # The hour's metrics, the four weeks of the broker's reads, the last day of the two volumes that ran low.
    assert endpoint.calls["GetMetricData"] == 2 * 3
    (cost,) = rows(warehouse, "select * from metrics.cloudwatch_cost_hourly")
    assert cost["calls"] == 3 and cost["metrics_requested"] > 60
    assert rows(warehouse, "select * from detect.coverage where status <> 'complete'") == []

    by_id = volumes(warehouse, THIS_HOUR)
    starving = by_id[ORDERS_VOLUME_ID]
    assert starving["minutes_expected"] == starving["minutes_present"] == starving["minutes_empty"] == 20
    assert starving["minutes_at_iops_limit"] == starving["minutes_throttled"] == 20
    assert starving["iops_mean"] == pytest.approx(100, rel=0.02) and starving["demand_iops_p95"] > 900
    assert starving["hours_to_exhaustion"] == 0
    # Its 5.4 million I/O credits lasted 5,400,000 / (985 - 100) s, from three hours before this hour.
    emptied = THIS_HOUR - 3 * HOUR + timedelta(seconds=5_400_000 / 885)
    assert abs(starving["throttled_since"] - emptied) < timedelta(minutes=10)

    low = by_id[RECOVERING_VOLUME_ID]
    assert low["burst_balance_last_percent"] < 40 and low["credits_per_hour"] > 0
    assert low["modelled_balance_last_percent"] == pytest.approx(low["burst_balance_last_percent"], abs=0.5)
    assert by_id[SPIKY_VOLUME_ID]["iops_max"] > 2000 and by_id[SPIKY_VOLUME_ID]["minutes_throttled"] == 0
    assert by_id[QUIET_VOLUME_ID]["minutes_balance"] == 0 and by_id[QUIET_VOLUME_ID]["bucket_credits"] is None
    detached = by_id[DETACHED_VOLUME_ID]
    assert detached["minutes_present"] == 0 and detached["iops_mean"] is None and detached["minutes_throttled"] is None
    read = by_id[BROKER_VOLUME_ID]
    assert read["read_baseline_kind"] == "hour_of_week" and 3 <= read["read_baseline_hours"] <= 4
    assert 0 < read["read_baseline_mad_bytes_per_second"] < read["read_baseline_bytes_per_second"]
    assert all(by_id[v]["read_baseline_hours"] is None for v in by_id if v != BROKER_VOLUME_ID)

    said = verdicts(warehouse, THIS_HOUR)
    assert {v: row["status"] for v, row in said.items()} == {
        ORDERS_VOLUME_ID: "firing",
        RECOVERING_VOLUME_ID: "ok",
        SPIKY_VOLUME_ID: "ok",
        QUIET_VOLUME_ID: "ok",
        BROKER_VOLUME_ID: "ok",
        DETACHED_VOLUME_ID: "unknown",
    }
    alarm = said[ORDERS_VOLUME_ID]
    assert alarm["severity"] == "critical" and alarm["reason"] == "bucket_empty"
    assert "gp3" in alarm["actions"][1] and "--iops 3000" in alarm["commands"][1]

    instances = {row["instance_id"]: row for row in rows(warehouse, "select * from metrics.instance_hourly")}
    assert instances[BATCH_INSTANCE_ID]["minutes_present"] == instances[BATCH_INSTANCE_ID]["minutes_expected"] == 20
    assert instances[BATCH_INSTANCE_ID]["memory_used_mean_percent"] == pytest.approx(55, rel=0.1)
    assert 40 < instances[BATCH_INSTANCE_ID]["disk_used_max_percent"] < 70
    (sample,) = rows(
        warehouse,
        "select count(*) as n, min(at) as first from metrics.volume_sample where volume_id = :id",
        id=QUIET_VOLUME_ID,
    )
    assert sample["n"] == 35 and sample["first"] == THIS_HOUR - timedelta(minutes=15)
    # Throttling of the previous day is kept too, per five minutes.
    (day,) = rows(
        warehouse,
        "select count(*) as n, max(read_ops + write_ops) / 300 as iops, max(burst_balance_percent) as balance"
        " from metrics.volume_sample where volume_id = :id and period_seconds = 300",
        id=ORDERS_VOLUME_ID,
    )
    assert day["n"] > 260 and day["iops"] > 900 and day["balance"] == 100


@pytest.mark.rare
def test_a_source_that_is_down_deletes_nothing(spark: Any, endpoint: AwsEndpoint, warehouse: sa.Engine) -> None:
    endpoint.faults.inject("deny", times=None, action="GetMetricData")
    run(spark, THIS_HOUR)
    unread = volumes(warehouse, THIS_HOUR)
    assert len(unread) == 6 and all(row["minutes_present"] is None for row in unread.values())
    gaps = rows(warehouse, "select * from detect.coverage where status = 'failed'")
    assert len(gaps) >= 9 and all("cloudwatch:GetMetricData" in gap["message"] for gap in gaps)
    assert {row["status"] for row in verdicts(warehouse, THIS_HOUR).values()} == {"unknown"}

    endpoint.faults.clear()
    run(spark, THIS_HOUR)  # the next run fills the gap
    known = volumes(warehouse, THIS_HOUR)
    assert known[QUIET_VOLUME_ID]["minutes_present"] == 20
    for action in ("GetMetricData", "DescribeVolumes"):
        endpoint.faults.inject("deny", times=None, action=action)
        run(spark, THIS_HOUR)
        assert volumes(warehouse, THIS_HOUR) == known
        endpoint.faults.clear()


@pytest.mark.rare
def test_a_backfill_uses_the_period_that_cloudwatch_still_has_and_the_inventory_of_that_hour(
    spark: Any, endpoint: AwsEndpoint, world: World, warehouse: sa.Engine
) -> None:
    old = THIS_HOUR - timedelta(days=20)
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "insert into inventory.volume_hourly (hour, account, region, volume_id, volume_type, size_gib, state,"
                " instance_id, tags, observed_at)"
                " values (:hour, :account, :region, :id, 'gp2', 33, 'in-use', :on, '{}',"
                " :hour), (:hour, :account, :region, 'vol-gone', 'gp2', 8, 'in-use', :on, '{}', :hour)"
            ),
            {"hour": old, "account": PLACE[0], "region": PLACE[1], "id": SPIKY_VOLUME_ID, "on": BATCH_INSTANCE_ID},
        )
    run(spark, old)
    known = rows(warehouse, "select volume_id, size_gib from inventory.volume_hourly where hour = :hour", hour=old)
    sizes = {row["volume_id"]: row["size_gib"] for row in known}
    assert sizes == {SPIKY_VOLUME_ID: 33, "vol-gone": 8}, "how large the others were then isn't known"
    by_id = volumes(warehouse, old)
    assert by_id[QUIET_VOLUME_ID]["minutes_present"] == by_id[QUIET_VOLUME_ID]["minutes_expected"] == 60
    assert by_id[QUIET_VOLUME_ID]["baseline_iops"] is None  # CloudWatch has its history, EC2 no longer has its size
    assert by_id[SPIKY_VOLUME_ID]["baseline_iops"] == 100 and by_id["vol-gone"]["minutes_present"] == 0
    assert {row["period_seconds"] for row in rows(warehouse, "select period_seconds from metrics.volume_sample")} == {
        300
    }
    gaps = rows(
        warehouse, "select resource_name, status, message from detect.coverage where status <> 'complete' order by 1"
    )
    assert [(gap["resource_name"], gap["status"]) for gap in gaps] == [
        (f"{DEMO_ACCOUNT}/{DEMO_REGION} {what}", "missing") for what in ("instance types", "instances", "volumes")
    ]
    assert {gap["message"].partition(";")[0] for gap in gaps} == {"EC2's inventory only knows the present"}
    assert not rows(warehouse, "select 1 from inventory.instance_hourly where hour = :hour", hour=old)


@pytest.mark.rare
def test_volume_and_instance_limits_are_distinguished(
    spark: Any, endpoint: AwsEndpoint, world: World, warehouse: sa.Engine
) -> None:
    surge = (Surge(LAST_HOUR - HOUR, THIS_HOUR, read_iops=1500, write_iops=1500),)
    big = LoadModel(read_iops=10, write_iops=10, read_kib=128, write_kib=128, surges=surge)
    world.add_instance(*PLACE, "i-0c1", "m5.large", detailed_monitoring=True)
    world.add_instance(*PLACE, "i-0c2", "m5.4xlarge")
    world.add_instance(*PLACE, "i-0c3", "m4.xlarge")  # not Nitro: CloudWatch has no status checks of its volumes
    world.add_volume(*PLACE, "vol-0c1", "gp3", 100, 16000, 1000, "i-0c1", load=big)
    world.add_volume(*PLACE, "vol-0c2", "gp3", 100, 16000, 125, "i-0c2", load=big)
    world.add_volume(*PLACE, "vol-0c3", "io1", 100, 500, None, "i-0c3", load=LoadModel(surges=surge))
    slow = Surge(LAST_HOUR, THIS_HOUR, read_iops=250, write_iops=200)
    world.add_volume(*PLACE, "vol-0c4", "gp2", 100, None, None, "i-0c2", load=LoadModel(surges=(slow,)))
    over = Surge(LAST_HOUR, THIS_HOUR - timedelta(minutes=8), read_iops=700, write_iops=600)
    world.add_volume(*PLACE, "vol-0c5", "gp2", 100, None, None, "i-0c2", load=LoadModel(surges=(over,)))
    # Burst balance reached 0 hours ago. The load is now slightly below the baseline, so the bucket refills.
    emptied = Surge(LAST_HOUR - 3 * HOUR, LAST_HOUR, read_iops=1500, write_iops=1500)
    below = Surge(LAST_HOUR, THIS_HOUR, read_iops=140, write_iops=142)
    world.add_volume(*PLACE, "vol-0c6", "gp2", 100, None, None, "i-0c2",
                     load=LoadModel(1, 1, noise=0, surges=(emptied, below)))  # fmt: skip
    # Before Nitro there is a BurstBalance every five minutes, and the bucket is empty in between.
    empty = Surge(LAST_HOUR - 3 * HOUR, THIS_HOUR, read_iops=1500, write_iops=1500)
    world.add_volume(*PLACE, "vol-0c7", "gp2", 100, None, None, "i-0c3", load=LoadModel(surges=(empty,)))
    run(spark, LAST_HOUR)
    by_id, said = volumes(warehouse, LAST_HOUR), verdicts(warehouse, LAST_HOUR)
    assert by_id["vol-0c6"]["burst_balance_last_percent"] <= 2 and by_id["vol-0c6"]["minutes_throttled"] == 0
    assert by_id["vol-0c7"]["minutes_balance"] == 12 and by_id["vol-0c7"]["minutes_throttled"] == 60
    binds = {v: said[v]["reason"] for v in ("vol-0c1", "vol-0c2", "vol-0c3", "vol-0c4", "vol-0c7")}
    assert binds == {
        "vol-0c1": "instance_limit", "vol-0c2": "at_throughput_limit", "vol-0c3": "at_iops_limit",
        "vol-0c4": "bucket_lasts", "vol-0c7": "bucket_empty",
    }  # fmt: skip
    assert by_id["vol-0c2"]["minutes_at_throughput_limit"] == 60 and by_id["vol-0c3"]["minutes_at_iops_limit"] == 60
    assert by_id["vol-0c1"]["minutes_at_instance_limit"] >= 25
    assert (
        by_id["vol-0c3"]["throttled_since"] == LAST_HOUR - HOUR
    )  # its last day is read although no status check reports a problem
    draining = by_id["vol-0c4"]
    # 490 IOPS at a baseline of 300: credits decrease by 190 per second.
    left = draining["burst_balance_last_percent"] / 100 * 5_400_000 / (draining["iops_now"] - 300) / 3600
    assert math.isclose(draining["hours_to_exhaustion"], left, rel_tol=0.01) and 6 < left < 12
    assert draining["hours_to_exhaustion_low"] <= left <= draining["hours_to_exhaustion_high"]
    assert said["vol-0c4"]["status"] == "ok" and "lasts" in said["vol-0c4"]["message"]
    # At the mean of its last 15 minutes the balance would reach 0, but the load has ended.
    refills = by_id["vol-0c5"]
    assert refills["credits_per_hour"] < 0 and 0 < refills["burst_balance_last_percent"] < 50
    assert refills["hours_to_exhaustion"] is None and said["vol-0c5"]["status"] == "ok"


def test_an_hour_without_any_settled_data_is_an_error_in_one_line() -> None:
    config = Config.model_validate({"gathering": {"settle_minutes": 30}})
    with pytest.raises(StreamwardenError, match=r"data is not complete yet .* run it after .*:30 UTC"):
        known_until(THIS_HOUR, config, NOW)
    assert known_until(LAST_HOUR, config, NOW) == NOW - timedelta(minutes=30)
