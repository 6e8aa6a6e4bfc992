"""Hosts whose file systems fill up, and decoys: periodic usage, compaction, restore, or full from the first day.

The evaluated hour passes through the app jvm_apps, from node exporter's readings on; the previous hours are rows with
the same metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from streamwarden.base.config import JmxEndpoint
from streamwarden.base.hours import HOUR

from tests.simulator import fleets, jvm_fleet
from tests.simulator.bench import Bench
from tests.simulator.cluster_sources import copy
from tests.simulator.clusters import GIB, READ_AFTER, drift
from tests.simulator.scenario import EVALUATED, Scenario
from tests.simulator.score import Score

RULE = "host_disk_filling"
DAYS = 28
NOW = DAYS * 24
"""Index of the evaluated hour in each array of hours."""
SAMPLES = 3
AGE = np.arange(NOW + 1) - NOW
"""Hours relative to the evaluated hour, up to 0."""
SOON = (4, 50)
"""Hours until a disk is full, within which the detector must fire."""


@dataclass
class FileSystem:
    mountpoint: str
    size: float
    used: np.ndarray
    """Used share by hour; NaN before the host existed."""
    fstype: str = "xfs"
    read_only: bool = False


@dataclass
class Machine:
    """A host with a data file system (the first) and a root file system."""

    name: str
    kind: str
    chance: np.random.Generator
    file_systems: list[FileSystem]
    answers: bool = True
    restored_hours: float = 0
    """Hours for which its process has been restoring; 0: not restoring."""
    is_broker: bool = False
    """The first file system is the log directory of its broker, as the broker reports."""

    @property
    def data(self) -> FileSystem:
        return self.file_systems[0]

    @property
    def node(self) -> str:
        return f"http://{self.name}:9100/metrics"


Fleet = fleets.Fleet[Machine]
Make = fleets.Make[Machine]


def a_machine(number: int, kind: str, chance: np.random.Generator) -> Machine:
    """A host with free space, weeks old."""

    def steady(share: tuple[float, float]) -> np.ndarray:
        day = 0.01 * np.sin(2 * np.pi * (AGE + chance.integers(0, 24)) / 24)
        return chance.uniform(*share) + day + drift(chance, NOW + 1, 0.01)

    data = FileSystem("/data", float(chance.choice([100, 500, 2000])) * GIB, steady((0.2, 0.6)))
    return Machine(
        f"disk{number:04d}",
        kind,
        chance,
        [data, FileSystem("/", float(chance.choice([8, 30])) * GIB, steady((0.3, 0.7)))],
    )


def ramp(machine: Machine, of: FileSystem, left: float) -> None:
    """Full in so many hours, after days of growth."""
    begun = machine.chance.uniform(100, 400)
    slope = (1 - of.used[NOW]) / (begun + left)
    of.used = of.used + slope * np.clip(AGE + begun, 0, None)


# Faults


def stores_grow(fleet: Fleet, machine: Machine) -> None:
    ramp(machine, machine.data, machine.chance.uniform(*SOON))
    fleet.fault(machine)


def logs_fill_the_system(fleet: Fleet, machine: Machine) -> None:
    ramp(machine, machine.file_systems[1], machine.chance.uniform(*SOON))
    fleet.fault(machine)


def nearly_full(fleet: Fleet, machine: Machine) -> None:
    machine.data.used = np.full(NOW + 1, machine.chance.uniform(0.955, 0.99))
    fleet.fault(machine)


def beside_the_log_directory(fleet: Fleet, machine: Machine) -> None:
    """A broker's host: the file system that fills up is not the broker's."""
    machine.is_broker = True
    logs_fill_the_system(fleet, machine)


def grows_while_it_restores(fleet: Fleet, machine: Machine) -> None:
    machine.restored_hours = machine.chance.uniform(1, 5)
    stores_grow(fleet, machine)


# Decoys


def saw_teeth(fleet: Fleet, machine: Machine) -> None:
    """Log files that are deleted each night, or each week."""
    period = int(machine.chance.choice([12, 24, 24, 168]))
    phase = machine.chance.integers(0, period)
    machine.data.used = 0.3 + machine.chance.uniform(0.1, 0.5) * ((AGE + phase) % period) / period


def compacts(fleet: Fleet, machine: Machine) -> None:
    """A large store is rewritten next to the old one, for one or two hours (full compaction)."""
    machine.data.used[NOW - int(machine.chance.integers(0, 2)) :] = machine.chance.uniform(0.9, 0.98)


def restores(fleet: Fleet, machine: Machine) -> None:
    """Its process took over the tasks of a dead instance, and usage ends below the limit."""
    machine.restored_hours = machine.chance.uniform(3, 20)
    end = machine.chance.uniform(0.75, 0.9)
    share = np.clip((AGE + machine.restored_hours) / (machine.restored_hours + machine.chance.uniform(0.5, 5)), 0, 1)
    machine.data.used = machine.data.used * (1 - share) + end * share


def came_at_once(fleet: Fleet, machine: Machine) -> None:
    """A dump was written days or hours ago."""
    machine.data.used[NOW - int(machine.chance.integers(3, 100)) :] += machine.chance.uniform(0.1, 0.25)


def grows_slowly(fleet: Fleet, machine: Machine) -> None:
    """Full in weeks at this rate, and far from full."""
    machine.data.used *= 0.5
    ramp(machine, machine.data, 0)
    machine.data.used *= machine.chance.uniform(0.3, 0.5)


def boots_from_it(fleet: Fleet, machine: Machine) -> None:
    machine.file_systems.append(FileSystem("/boot", 0.5 * GIB, np.full(NOW + 1, 0.97), "ext4"))
    machine.file_systems.append(FileSystem("/boot/efi", 0.1 * GIB, np.full(NOW + 1, 0.98), "vfat"))


def cannot_be_written(fleet: Fleet, machine: Machine) -> None:
    machine.file_systems.append(FileSystem("/image", 3 * GIB, np.full(NOW + 1, 1.0), "ext4", read_only=True))


def young_and_small(fleet: Fleet, machine: Machine) -> None:
    """A new host: set-up fills its disk, then usage is constant."""
    hours = int(machine.chance.integers(3, 60))
    root = machine.file_systems[1]
    root.size = 8 * GIB
    root.used = 0.96 - 0.5 * np.exp(-(AGE + hours) / machine.chance.uniform(1, 4))
    for each in machine.file_systems:
        each.used[: NOW - hours] = np.nan


def is_the_brokers(fleet: Fleet, machine: Machine) -> None:
    """Another detector covers this disk."""
    machine.is_broker = True
    ramp(machine, machine.data, machine.chance.uniform(*SOON))


def is_silent(fleet: Fleet, machine: Machine) -> None:
    ramp(machine, machine.data, machine.chance.uniform(*SOON))
    machine.answers = False


def healthy(fleet: Fleet, machine: Machine) -> None:
    """Free space is sufficient."""


FAULTS: tuple[Make, ...] = (
    stores_grow,
    logs_fill_the_system,
    nearly_full,
    beside_the_log_directory,
    grows_while_it_restores,
)
DECOYS: tuple[Make, ...] = (
    saw_teeth,
    compacts,
    restores,
    came_at_once,
    grows_slowly,
    boots_from_it,
    cannot_be_written,
    young_and_small,
    is_the_brokers,
    is_silent,
    healthy,
)


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    fleet = fleets.build(scenario, 58, a_machine, FAULTS, DECOYS)
    remember(bench, fleet)
    return jvm_fleet.evaluate(bench, fleet, RULE, _endpoints(fleet), _readings)


def _endpoints(fleet: Fleet) -> Iterator[JmxEndpoint]:
    for machine in fleet.resources:
        of = {"cluster": machine.name, "instance_id": f"i-{machine.name}"}
        yield JmxEndpoint(role="node", url=machine.node, protocol="prometheus", **of)
        yield JmxEndpoint(role="app", app="app", url=_app(machine), **of)


def _app(machine: Machine) -> str:
    return f"http://{machine.name}:8778/jolokia"


def _readings(machine: Machine) -> Iterator[dict[str, Any]]:
    """Node exporter readings of the evaluated hour."""
    for n in range(SAMPLES):
        head = {
            "cluster": machine.name,
            "at": EVALUATED + HOUR + READ_AFTER + timedelta(seconds=5 * n),
            "process_started_at": EVALUATED - timedelta(days=40),
        }
        of_app = head | {"endpoint": _app(machine), "role": "app", "app": "app"}
        yield of_app | {"metric": "streams_info", "labels": '{"application_id": "app"}', "value": 1.0}
        left = 1e6 - n if machine.restored_hours else 0.0
        yield of_app | {"metric": "records_to_restore", "labels": "{}", "value": left}
        of_node = head | {"endpoint": machine.node, "role": "node", "app": None}
        for each in machine.file_systems if machine.answers else ():
            output = {"device": f"/dev/{each.mountpoint}", "fstype": each.fstype, "mountpoint": each.mountpoint}
            for metric, value in {
                "file_system_bytes": each.size,
                "file_system_available_bytes": each.size * (1 - each.used[NOW].clip(0, 1)),
                "file_system_read_only": float(each.read_only),
            }.items():
                yield of_node | {"metric": metric, "labels": json.dumps(output, sort_keys=True), "value": float(value)}


def remember(bench: Bench, fleet: Fleet) -> None:
    """Writes the previous hours, and the disk sizes that the brokers reported."""
    with bench.warehouse.begin() as connection:
        for day in range(-1, DAYS + 2):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (EVALUATED - timedelta(day)).date()})
        copy(connection, "metrics.file_system_hourly", *[_past(m) for m in fleet.resources])
        copy(connection, "metrics.jvm_app_hourly", *[_restored(m) for m in fleet.resources])
        brokers = [m for m in fleet.resources if m.is_broker]
        output = pd.DataFrame({"hour": EVALUATED, "cluster": [m.name for m in brokers], "broker_id": 1})
        machines = [f"i-{m.name}" for m in brokers]
        copy(connection, "metrics.broker_hourly", output.assign(endpoint="http://b:8778", instance_id=machines))
        sizes = [int(m.data.size) for m in brokers]
        copy(
            connection,
            "metrics.log_dir_hourly",
            output.assign(log_dir="/data", total_bytes=sizes, usable_bytes=sizes, observed_at=EVALUATED),
        )


def _past(machine: Machine) -> pd.DataFrame:
    rows = pd.concat(
        pd.DataFrame({
            "hour": pd.date_range(EVALUATED - NOW * HOUR, EVALUATED - HOUR, freq="h"), "cluster": machine.name,
            "endpoint": machine.node, "mountpoint": each.mountpoint, "device": f"/dev/{each.mountpoint}",
            "fstype": each.fstype, "instance_id": f"i-{machine.name}", "size_bytes": each.size,
            "available_bytes": each.size * (1 - each.used[:NOW].clip(0, 1)), "read_only": each.read_only,
        })
        for each in machine.file_systems
    )  # fmt: skip
    return rows[rows.available_bytes.notna()]


def _restored(machine: Machine) -> pd.DataFrame:
    hours = pd.date_range(EVALUATED - 24 * HOUR, EVALUATED - HOUR, freq="h")
    ago = np.arange(24, 0, -1)
    return pd.DataFrame({
        "hour": hours, "cluster": machine.name, "app": "app", "endpoint": _app(machine), "application_id": "app",
        "instance_id": f"i-{machine.name}",
        "records_to_restore": np.where(ago < machine.restored_hours, 1e6 * (1 + ago), 0.0),
    })  # fmt: skip
