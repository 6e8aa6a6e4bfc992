"""Instances with at most one fault or decoy each, in Auto Scaling groups or single: status checks, CPU, and memory.

Responses of EC2, Auto Scaling, and CloudWatch pass through the app machines, from its sources on. Minutes of CPU and
memory, which another app gathers, are written as that app writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR

from spark_apps.apps import machines as app
from spark_apps.sources.autoscaling import ScalingActivities
from spark_apps.sources.ec2 import Ec2Instances
from tests.simulator import credits, fleets, network
from tests.simulator.bench import Bench
from tests.simulator.cluster_sources import copy
from tests.simulator.frames import null_filled, rows_frame
from tests.simulator.scenario import EVALUATED, Scenario, Truth, Verdict
from tests.simulator.score import Score, at_once, score

RULE = "instance_unhealthy"
ACCOUNT, REGION = "123456789013", "eu-west-1"
PLACE = {"account": ACCOUNT, "region": REGION}
MINUTES = 240
"""Minutes of CPU and memory, up to the end of the evaluated hour."""
END = EVALUATED + HOUR
_MINUTE = timedelta(minutes=1)
BY_CHECK = (
    "an ELB system health check failure", "a user health-check", "an EC2 instance status checks failure",
    "a system health-check", "an EC2 instance status check failure",
)  # fmt: skip
BY_OTHERS = (
    "a user request", "an instance refresh",
    "a difference between desired and actual capacity, shrinking the capacity from 4 to 3",
    "a scheduled action", "an EC2 Spot interruption notice", "an availability zone rebalance",
)  # fmt: skip
ENDED = "an EC2 health check indicating it has been terminated or stopped"


@dataclass
class Machine:
    """One instance, by minute."""

    name: str
    cpu: np.ndarray
    memory: np.ndarray
    has_agent: bool = True
    is_detailed: bool = True
    iowait: float | None = None
    """I/O wait of the evaluated hour as a ratio; None: no node exporter."""
    node_memory: tuple[float, float] | None = None
    """Means of the previous hour and of the evaluated one."""
    state: str = "running"
    failed: list[tuple[str, int, int]] = field(default_factory=list)
    """(status check, first minute, last minute) of the evaluated hour."""
    gone_at: datetime | None = None
    cause: str = ""
    is_spot: bool = False
    borne_hours: int = 0
    is_checked: bool = True


@dataclass
class Group:
    """Interchangeable instances of an Auto Scaling group."""

    name: str
    kind: str
    chance: np.random.Generator
    machines: list[Machine]
    is_scaling: bool

    @property
    def one(self) -> Machine:
        return self.machines[0]


Fleet = fleets.Fleet[Group]
Make = fleets.Make[Group]


def a_group(number: int, kind: str, chance: np.random.Generator) -> Group:
    """Healthy instances: CPU and memory vary."""
    name = f"group{number:04d}"
    is_scaling = chance.random() < 0.7
    machines = []
    for n in range(int(chance.integers(1, 5))):
        noise = chance.normal(0, 1, MINUTES)
        cpu = (chance.uniform(10, 60) + 8 * np.sin(np.arange(MINUTES) / 40 + chance.uniform(0, 6)) + 4 * noise).clip(
            1, 80
        )
        memory = (chance.uniform(40, 72) + 2 * np.sin(np.arange(MINUTES) / 60) + 0.5 * noise).clip(20, 80)
        machines.append(Machine(f"i-{name}-{n}", cpu, memory, is_detailed=bool(chance.random() < 0.5)))
    return Group(name, kind, chance, machines, is_scaling)


def runs_out(machine: Machine, chance: np.random.Generator, until: int = MINUTES, *, memory_first: bool = True) -> None:
    """Memory rises, then CPU, or the reverse; both stay high until a minute."""
    lead = int(chance.integers(8, 60))
    full = until - int(chance.integers(22, 50))
    memory_at, cpu_at = (full - lead, full) if memory_first else (full, full - lead)
    _rise(machine.memory, memory_at, until, chance.uniform(88, 98))
    _rise(machine.cpu, cpu_at, until, chance.uniform(93, 100))


def _rise(minutes: np.ndarray, at: int, until: int, to: float) -> None:
    climb = max(0, at - 30)
    minutes[climb:at] = np.linspace(minutes[climb], min(to, 84), at - climb)
    minutes[at:until] = to
    minutes[until:] = np.minimum(minutes[until:], 70)


def take_out(group: Group, message: str, *, hours_ago: float | None = None) -> Machine:
    """Auto Scaling terminates the first instance, by default within the evaluated hour, whose minutes are known."""
    group.is_scaling = True
    machine = group.one
    back = timedelta(hours=hours_ago) if hours_ago else int(group.chance.integers(3, 50)) * _MINUTE
    machine.gone_at, machine.state = END - back, "terminated"
    machine.cause = (
        f"At {machine.gone_at:%Y-%m-%dT%H:%M:%SZ} an instance was taken out of service in response to {message}."
    )
    group.machines.append(Machine(f"{machine.name}-new", machine.cpu.clip(0, 70), machine.memory.clip(0, 60)))
    return machine


def _until(machine: Machine) -> int:
    assert machine.gone_at is not None
    return MINUTES - int((END - machine.gone_at) / _MINUTE)


# Faults


def out_of_memory_and_replaced(fleet: Fleet, group: Group) -> None:
    machine = take_out(group, str(group.chance.choice(BY_CHECK)))
    runs_out(machine, group.chance, _until(machine))
    fleet.fault(group, "out_of_memory")


def killed_itself_for_memory(fleet: Fleet, group: Group) -> None:
    """A kernel panic; Auto Scaling only sees a stopped instance."""
    machine = take_out(group, ENDED)
    runs_out(machine, group.chance, _until(machine))
    fleet.fault(group, "out_of_memory")


def busy_and_replaced(fleet: Fleet, group: Group) -> None:
    machine = take_out(group, str(group.chance.choice(BY_CHECK)))
    runs_out(machine, group.chance, _until(machine), memory_first=False)
    fleet.fault(group, "health_check_failed")


def replaced_without_a_sign(fleet: Fleet, group: Group) -> None:
    take_out(group, str(group.chance.choice(BY_CHECK)))
    fleet.fault(group, "health_check_failed")


def replaced_in_the_night(fleet: Fleet, group: Group) -> None:
    """Failed hours ago and not fixed yet."""
    take_out(group, str(group.chance.choice(BY_CHECK)), hours_ago=float(group.chance.uniform(4.1, 23.5)))
    fleet.fault(group, "health_check_failed")


def runs_out_now(fleet: Fleet, group: Group) -> None:
    runs_out(group.one, group.chance)
    fleet.fault(group, "memory_pressure")


def runs_out_and_waits(fleet: Fleet, group: Group) -> None:
    """Memory is full as on some previous days, but now with I/O wait for pages."""
    runs_out(group.one, group.chance)
    group.one.iowait, group.one.borne_hours = float(group.chance.uniform(0.03, 0.5)), 6
    group.one.node_memory = (90, 95)
    fleet.fault(group, "memory_pressure")


def runs_out_by_its_exporter(fleet: Fleet, group: Group) -> None:
    runs_out(group.one, group.chance)
    group.one.has_agent = False
    group.one.iowait, group.one.node_memory = float(group.chance.uniform(0.03, 0.5)), (88, 96)
    fleet.fault(group, "memory_pressure")


def hangs(fleet: Fleet, group: Group) -> None:
    check = str(group.chance.choice(["instance", "system", "volumes"]))
    group.one.failed = [(check, int(group.chance.integers(0, 52)), 60)]
    fleet.fault(group, "status_check_failed")


# Decoys


def deployed(fleet: Fleet, group: Group) -> None:
    take_out(group, str(group.chance.choice(BY_OTHERS)))


def deployed_while_busy(fleet: Fleet, group: Group) -> None:
    machine = take_out(group, str(group.chance.choice(BY_OTHERS)))
    runs_out(machine, group.chance, _until(machine))


def spot_taken_back(fleet: Fleet, group: Group) -> None:
    machine = take_out(group, ENDED)
    machine.is_spot = True
    if group.chance.random() < 0.5:
        runs_out(machine, group.chance, _until(machine))


def ended_by_somebody(fleet: Fleet, group: Group) -> None:
    take_out(group, ENDED)


def replaced_two_days_ago(fleet: Fleet, group: Group) -> None:
    take_out(group, str(group.chance.choice(BY_CHECK)), hours_ago=float(group.chance.uniform(25, 48)))
    group.machines.pop(0)


def rebooted(fleet: Fleet, group: Group) -> None:
    start = int(group.chance.integers(2, 50))
    group.one.failed = [("instance", start, start + int(group.chance.integers(1, 5)))]


def rebooted_at_the_end(fleet: Fleet, group: Group) -> None:
    group.one.failed = [("instance", 60 - int(group.chance.integers(1, 5)), 60)]


def hung_and_came_back(fleet: Fleet, group: Group) -> None:
    start = int(group.chance.integers(2, 20))
    group.one.failed = [("instance", start, start + 25)]


def computes(fleet: Fleet, group: Group) -> None:
    """CPU at 100 %, with free memory."""
    _rise(group.one.cpu, int(group.chance.integers(30, 200)), MINUTES, 99)


def computes_with_full_memory(fleet: Fleet, group: Group) -> None:
    """Memory is always full, without waits for the disk."""
    group.one.memory[:] = group.chance.uniform(86, 95)
    group.one.iowait, group.one.node_memory = float(group.chance.uniform(0, 0.015)), (90, 90)
    _rise(group.one.cpu, int(group.chance.integers(30, 200)), MINUTES, 97)


def bears_it_every_day(fleet: Fleet, group: Group) -> None:
    runs_out(group.one, group.chance)
    group.one.borne_hours = int(group.chance.integers(3, 12))


def a_short_peak(fleet: Fleet, group: Group) -> None:
    group.one.memory[:] = group.chance.uniform(86, 95)
    start = MINUTES - int(group.chance.integers(13, 60))
    group.one.cpu[start : start + 8] = 100


def memory_full_and_calm(fleet: Fleet, group: Group) -> None:
    group.one.memory[:] = group.chance.uniform(86, 97)


def cpu_first(fleet: Fleet, group: Group) -> None:
    runs_out(group.one, group.chance, memory_first=False)


def stopped_for_the_night(fleet: Fleet, group: Group) -> None:
    group.one.state = "stopped"


def without_agent(fleet: Fleet, group: Group) -> None:
    for machine in group.machines:
        machine.has_agent = False


def unchecked(fleet: Fleet, group: Group) -> None:
    for machine in group.machines:
        machine.is_checked = False


def healthy(fleet: Fleet, group: Group) -> None:
    """A healthy instance."""


FAULTS: tuple[Make, ...] = (
    out_of_memory_and_replaced,
    killed_itself_for_memory,
    busy_and_replaced,
    replaced_without_a_sign,
    replaced_in_the_night,
    runs_out_now,
    runs_out_and_waits,
    runs_out_by_its_exporter,
    hangs,
)
DECOYS: tuple[Make, ...] = (
    deployed,
    deployed_while_busy,
    spot_taken_back,
    ended_by_somebody,
    replaced_two_days_ago,
    rebooted,
    rebooted_at_the_end,
    hung_and_came_back,
    computes,
    computes_with_full_memory,
    bears_it_every_day,
    a_short_peak,
    memory_full_and_calm,
    cpu_first,
    stopped_for_the_night,
    without_agent,
    unchecked,
    healthy,
)


def build(scenario: Scenario) -> Fleet:
    return fleets.build(scenario, 17, a_group, FAULTS, DECOYS)


def evaluate(bench: Bench, scenario: Scenario) -> list[Score]:
    """Simulates, evaluates, and scores failing instances, networks, and CPU credits in one run of the app."""
    fleet, links, burstable = build(scenario), network.build(scenario), credits.build(scenario)
    with TemporaryDirectory() as folder:
        bench.load(
            "machines", app.transform(_sources(bench, fleet, links, burstable, Path(folder)), EVALUATED, Config())
        )
    _remember(bench, fleet, links, burstable)
    return [
        _score(bench, RULE, "instance_group", fleet.truth),
        _score(bench, network.RULE, "instance_id", links.truth),
        _score(bench, credits.RULE, "instance_id", burstable.truth),
    ]


def _score(bench: Bench, rule: str, key: str, truth: Truth) -> Score:
    """Verdicts on instances of this fleet only."""
    verdicts = [
        Verdict(name, EVALUATED, row.status, row.message, row.reason, row.metrics, row.severity)
        for row in bench.findings(rule)
        if row.resource.columns["account"] == ACCOUNT and (name := str(row.resource.columns[key])) in truth.decoys
    ]
    return score(rule, at_once(bench.detector(rule)), verdicts, truth)


def _sources(
    bench: Bench, fleet: Fleet, links: network.Fleet, burstable: credits.Fleet, folder: Path
) -> dict[str, Any]:
    """Frames of the evaluated hour, as returned by `extract`."""
    every = [(group, machine) for group in fleet.resources for machine in group.machines]
    ec2 = rows_frame(
        bench.spark,
        [
            PLACE | {"instance_id": m.name, "state": m.state, "is_spot": m.is_spot,
                     "launched_at": EVALUATED - 99 * HOUR,
                     "tags": {"aws:autoscaling:groupName": g.name} if g.is_scaling else {"application": g.name},
                     "observed_at": END}
            for g, m in every if m.gone_at is None or m.gone_at > EVALUATED
        ] + network.instances(links, PLACE) + credits.instances(burstable, PLACE),
        Ec2Instances({}).schema(),
    )  # fmt: skip
    in_hour = [_activity(g, m) for g, m in every if m.gone_at is not None and m.gone_at >= EVALUATED]
    points = null_filled(
        bench.spark, folder / "points",
        chain((row for _, m in every if m.is_checked for row in _checks(m)), network.points(links, PLACE),
              credits.points(burstable, PLACE)),
        calls="int", metrics_requested="int", resource="string",
    )  # fmt: skip
    return {
        "machines": app.machines_of(ec2, END).withColumn("known_until", f.lit(END)),
        "network_limits": app.network_limits(ec2),
        "scaling_activities": rows_frame(bench.spark, in_hour or [dict(PLACE)], ScalingActivities({}).schema()),
        "cloudwatch": points.withColumn("period_seconds", f.col("period_seconds").cast("int")),
    }


def _activity(group: Group, machine: Machine) -> dict[str, Any]:
    return PLACE | {
        "activity_id": f"of {machine.name}", "scaling_group": group.name, "instance_id": machine.name,
        "is_termination": True, "description": f"Terminating EC2 instance: {machine.name}", "cause": machine.cause,
        "status": "Successful", "started_at": machine.gone_at, "ended_at": machine.gone_at + 2 * _MINUTE,
    }  # fmt: skip


def _checks(machine: Machine) -> Iterator[dict[str, Any]]:
    if machine.state == "stopped":
        return
    for check in app.CHECKS:
        name = check.column.removesuffix("_failed")
        for minute in range(60):
            at = EVALUATED + minute * _MINUTE
            if machine.gone_at is None or at < machine.gone_at:
                fails = any(kind == name and start <= minute < end for kind, start, end in machine.failed)
                yield PLACE | {"resource_id": machine.name, "metric": check.column, "at": at, "period_seconds": 60,
                               "value": float(fails)}  # fmt: skip


def _remember(bench: Bench, fleet: Fleet, links: network.Fleet, burstable: credits.Fleet) -> None:
    """Rows of other apps and of earlier hours."""
    every = [(group, machine) for group in fleet.resources for machine in group.machines]
    with bench.warehouse.begin() as connection:
        for day in range(-1, 12):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (EVALUATED - timedelta(day)).date()})
        copy(connection, "metrics.instance_network_hourly", network.past(links, PLACE))
        copy(connection, "metrics.instance_health_hourly", credits.past(burstable, PLACE))
        copy(connection, "metrics.instance_sample", *[_minutes(m) for _, m in every])
        past = [_activity(g, m) | {"hour": m.gone_at.replace(minute=0, second=0, microsecond=0)}
                for g, m in every if m.gone_at is not None and m.gone_at < EVALUATED]  # fmt: skip
        copy(connection, "metrics.scaling_activity_hourly", pd.DataFrame(past))
        borne = [PLACE | {"hour": EVALUATED - (24 + 9 * n) * HOUR, "instance_id": m.name, "minutes_expected": 60,
                          "memory_used_max_percent": 92.0, "cpu_max_percent": 99.0}
                 for _, m in every for n in range(m.borne_hours)]  # fmt: skip
        copy(connection, "metrics.instance_hourly", pd.DataFrame(borne))
        nodes = [{"hour": EVALUATED - (1 - n) * HOUR, "cluster": "machines", "endpoint": f"http://{m.name}:9100/metrics",
                  "instance_id": m.name, "memory_used_mean_percent": m.node_memory[n], "iowait_ratio": m.iowait}
                 for _, m in every if m.node_memory for n in (0, 1)]  # fmt: skip
        copy(connection, "metrics.node_hourly", pd.DataFrame(nodes))


def _minutes(machine: Machine) -> pd.DataFrame:
    """CPU per five minutes without detailed monitoring; memory by an agent, per minute."""
    at = pd.date_range(END - MINUTES * _MINUTE, periods=MINUTES, freq="min")
    five = np.arange(MINUTES) // 5
    means = np.bincount(five, machine.cpu) / 5
    cpu = machine.cpu if machine.is_detailed else np.where(np.arange(MINUTES) % 5 == 0, means[five], np.nan)
    rows = pd.DataFrame({
        "at": at, "instance_id": machine.name, "period_seconds": 60, "cpu_percent": cpu,
        "memory_used_percent": machine.memory if machine.has_agent else np.nan, **PLACE,
    })  # fmt: skip
    alive = at < pd.Timestamp(machine.gone_at) if machine.gone_at else np.full(MINUTES, machine.state == "running")
    return rows[alive & rows[["cpu_percent", "memory_used_percent"]].notna().any(axis=1)]
