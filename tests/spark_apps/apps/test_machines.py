"""App machines on the modelled AWS world, through Spark into the warehouse, and the findings of its detectors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from demo.aws_endpoint import AwsEndpoint
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, Config, load_config
from streamwarden.base.hours import HOUR, gap_of_present
from streamwarden.detectors import evaluate, load_detectors

from spark_apps.apps import ebs_volumes, machines
from spark_apps.apps.ebs_volumes import inventory
from spark_apps.submit import run_app
from tests.sql.rows import insert_row

pytestmark = pytest.mark.slow
NOW = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
LAST_HOUR = NOW.replace(minute=0) - HOUR
PLACE = ("123456789012", "eu-central-1")
GROUP = "aws:autoscaling:groupName"
OLD, HUNG, SPOTLESS, SINGLE = "i-0a1", "i-0a2", "i-0a3", "i-0a4"


class Clock(datetime):
    """A clock fixed at NOW."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW


@pytest.fixture
def world() -> World:
    world = World(seed=5, now=lambda: NOW)
    old = OLD.replace("i-", "i-00000000")
    world.add_instance(*PLACE, old, "m5.large", {GROUP: "orders"}, memory_used_percent=97)
    world.add_instance(*PLACE, HUNG, "m5.large", {"application": "search"})
    world.add_instance(*PLACE, SPOTLESS, "m5.large", {GROUP: "orders", "application": "shop"})
    world.add_instance(*PLACE, SINGLE, "m4.large")
    world.fail_checks(HUNG, "system", LAST_HOUR + timedelta(minutes=40), LAST_HOUR + 3 * HOUR)
    world.fail_checks(SINGLE, "instance", LAST_HOUR + timedelta(minutes=5), LAST_HOUR + timedelta(minutes=8))
    world.take_out(old, "orders", LAST_HOUR + timedelta(minutes=50), "an ELB system health check failure")
    return world


@pytest.fixture
def endpoint(
    world: World, spark: Any, tmp_path: Path, warehouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsEndpoint]:
    for module in (ebs_volumes, machines):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(inventory, "gap_of_present", partial(gap_of_present, now=NOW))  # the run may cross an hour
    file = tmp_path / "streamwarden.yaml"
    settings = {"aws": [{"account": PLACE[0], "regions": [PLACE[1]]}], "gathering": {"settle_minutes": 0}}
    file.write_text(yaml.safe_dump(settings))
    with AwsEndpoint(world) as running:
        wanted = {**running.environment(*PLACE), CONFIG_ENV: str(file), WAREHOUSE_ENV: warehouse_url}
        for name, value in wanted.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        yield running


def rows(warehouse: sa.Engine, table: str, key: str) -> dict[str, sa.RowMapping]:
    with warehouse.connect() as connection:
        return {row[key]: row for row in connection.execute(sa.text(f"select * from {table}")).mappings()}


def verdicts(warehouse: sa.Engine) -> dict[str, sa.RowMapping]:
    """Empty frames for the apps that are not run here."""
    with warehouse.begin() as connection:
        for app in ("ebs_volumes", "jvm_apps"):
            load = {"hour": LAST_HOUR, "app": app, "status": "loaded"}
            if not connection.execute(sa.text("select 1 from detect.load where app = :app"), {"app": app}).scalar():
                insert_row(connection, "detect.load", load)
    run = evaluate(warehouse, load_detectors()["instance_unhealthy"], LAST_HOUR, Config())
    assert run.status == "evaluated", run.message
    return {
        row["identity"]["instance_group"]: row for row in rows(warehouse, "detect.evaluation", "fingerprint").values()
    }


def test_a_replaced_instance_and_an_unresponsive_one(spark: Any, endpoint: AwsEndpoint, warehouse: sa.Engine) -> None:
    run_app(spark, "ebs_volumes", LAST_HOUR, load_config())
    run_app(spark, "machines", LAST_HOUR, load_config())
    health = rows(warehouse, "metrics.instance_health_hourly", "instance_id")
    assert {name: row["instance_group"] for name, row in health.items()} == {
        "i-000000000a1": "orders", HUNG: "search", SPOTLESS: "orders", SINGLE: SINGLE,
    }  # fmt: skip
    hung, single = health[HUNG], health[SINGLE]
    assert (hung["minutes_checked"], hung["minutes_system_failed"], hung["minutes_instance_failed"]) == (60, 20, 0)
    assert hung["failing_since"] == LAST_HOUR + timedelta(minutes=40) and hung["activities_known"]
    assert (single["minutes_instance_failed"], single["failing_since"]) == (3, None)
    assert single["minutes_volumes_failed"] is None, "before Nitro there is no such check"
    (activity,) = rows(warehouse, "metrics.scaling_activity_hourly", "instance_id").values()
    assert activity["scaling_group"] == "orders" and activity["is_termination"]

    said = verdicts(warehouse)
    assert {name: (row["status"], row["reason"]) for name, row in said.items()} == {
        "orders": ("firing", "out_of_memory"), "search": ("firing", "status_check_failed"), SINGLE: ("ok", "healthy"),
    }  # fmt: skip
    assert "(system check)" in said["search"]["message"]
    assert "Stop and start the instance" in said["search"]["actions"][0]


@pytest.mark.rare
def test_a_network_that_bursts_at_its_peak_or_whose_limits_are_unknown(
    spark: Any, endpoint: AwsEndpoint, world: World, warehouse: sa.Engine
) -> None:
    detailed, basic, old = "i-0b1", "i-0b2", "i-0b3"
    world.add_instance(*PLACE, detailed, "m5.large", detailed_monitoring=True)
    world.add_instance(*PLACE, basic, "m5.large")
    world.add_instance(*PLACE, old, "m4.large")
    end = LAST_HOUR + HOUR
    world.instances[detailed].network.append((end - timedelta(minutes=30), end, 3e6, 9e12))
    world.instances[basic].network.append((end - timedelta(minutes=20), end, 200e6, 3e6))
    run_app(spark, "machines", LAST_HOUR, load_config())
    with warehouse.connect() as connection:
        query = sa.text("select * from metrics.instance_network_hourly")
        hours = {(row.instance_id, row.direction): row for row in connection.execute(query)}
    peak, burst = hours[detailed, "out"], hours[basic, "in"]
    assert (peak.minutes_present, peak.minutes_at_peak, peak.minutes_above_lately) == (60, 30, 15)
    assert peak.bytes_per_second_max == peak.peak_bytes_per_second == 1.25e9
    assert peak.baseline_bytes_per_second == 93.75e6
    # Basic monitoring: one data point per five minutes, which is the sum of all five.
    assert (burst.minutes_present, burst.minutes_above_baseline, burst.minutes_at_peak) == (60, 20, 0)
    assert burst.bytes_per_second_now == pytest.approx(200e6)
    assert hours[basic, "out"].bytes_per_second_mean == pytest.approx((40 * 2e6 + 20 * 3e6) / 60)
    samples = rows(warehouse, "metrics.instance_network_sample", "at")
    assert len(samples) == 60 and {row["period_seconds"] for row in samples.values()} <= {60, 300}
    with warehouse.begin() as connection:
        insert_row(connection, "detect.load", {"hour": LAST_HOUR, "app": "brokers", "status": "loaded"})
    assert evaluate(warehouse, load_detectors()["instance_network_starving"], LAST_HOUR, Config()).status == "evaluated"
    found = rows(warehouse, "detect.evaluation", "fingerprint").values()
    said = {row["identity"]["instance_id"]: row for row in found}
    assert said[detailed]["reason"] == "at_peak" and said[basic]["reason"] == "bursting"
    assert said[old]["reason"] == "limits_unknown" and said[HUNG]["reason"] == "within_limits"
    assert ">= `20.00`]" in said[detailed]["commands"][0]


@pytest.mark.rare
def test_cpu_credits_of_burstable_instances(
    spark: Any, endpoint: AwsEndpoint, world: World, warehouse: sa.Engine
) -> None:
    spent, borrows = "i-0c1", "i-0c2"
    world.add_instance(*PLACE, spent, "t3.medium", detailed_monitoring=True)
    world.add_instance(*PLACE, borrows, "t3.medium")
    end = LAST_HOUR + HOUR
    world.instances[spent].cpu_credits += [(LAST_HOUR - HOUR, end - timedelta(minutes=30), 90.0, 0.0, 9.0),
                                           (end - timedelta(minutes=30), end, 40.0, 0.0, 0.0)]  # fmt: skip
    world.instances[borrows].cpu_credits.append((LAST_HOUR, end, 0.0, 70.0, 2.0))
    run_app(spark, "machines", LAST_HOUR, load_config())
    health = rows(warehouse, "metrics.instance_health_hourly", "instance_id")
    columns = ("is_burstable", "cpu_credits", "cpu_credits_most", "cpu_credits_borrowed", "cpu_credits_charged")
    assert {name: tuple(health[name][column] for column in columns) for name in (spent, borrows, HUNG)} == {
        spent: (True, 40, 90, 0, 6 * 9), borrows: (True, 0, 0, 70, 12 * 2), HUNG: (False, None, None, None, None),
    }  # fmt: skip


@pytest.mark.rare
def test_a_refused_request_is_not_ok(spark: Any, endpoint: AwsEndpoint, warehouse: sa.Engine) -> None:
    endpoint.faults.inject("deny", times=None, action="DescribeScalingActivities")
    endpoint.faults.inject("deny", times=None, action="GetMetricData")
    run_app(spark, "machines", LAST_HOUR, load_config())
    health = rows(warehouse, "metrics.instance_health_hourly", "instance_id")
    assert {(row["activities_known"], row["minutes_checked"]) for row in health.values()} == {(False, None)}
    assert {row["reason"] for row in verdicts(warehouse).values()} == {
        "scaling_activities_unknown",
        "status_checks_missing",
    }

    endpoint.faults.clear()
    run_app(spark, "machines", LAST_HOUR, load_config())  # the next run fills the gap
    assert rows(warehouse, "metrics.instance_health_hourly", "instance_id")[HUNG]["minutes_checked"] == 60
