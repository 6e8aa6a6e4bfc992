"""Burstable instances by hour: CPU credits run out, are spent every day, are surplus credits, or suffice.

The balance is the credits earned minus the credits used, between 0 and the earnings of a day, as EC2 computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
from streamwarden.base.hours import HOUR

from tests.simulator import fleets
from tests.simulator.scenario import EVALUATED, Scenario

RULE = "instance_cpu_starving"
EARNED = {"t3.medium": 24.0, "t3.large": 36.0, "t3.xlarge": 96.0, "t2.large": 36.0}
"""Credits earned per hour, by instance type."""
NOW = 10 * 24
"""Index of the evaluated hour in each array of hours."""
AGE = np.arange(NOW + 1) - NOW


@dataclass
class Burstable:
    """One instance."""

    name: str
    kind: str
    chance: np.random.Generator
    instance_type: str
    wanted: np.ndarray
    """Credits used per hour."""
    is_unlimited: bool = False
    answers: bool = True
    since: int = 0
    """The first hour in the warehouse."""

    @property
    def earned(self) -> float:
        return EARNED[self.instance_type]

    def balances(self) -> tuple[np.ndarray, np.ndarray]:
        """Credit balance and surplus credit balance at the end of each hour; surplus credits are paid back first."""
        left, found = self.earned * 24, np.empty(NOW + 1)
        for hour, wanted in enumerate(self.wanted):
            left = min(left + self.earned - wanted, self.earned * 24)
            left = left if self.is_unlimited else max(left, 0)
            found[hour] = left
        return found.clip(0), (-found).clip(0, 24 * self.earned)

    def charged(self) -> np.ndarray:
        """Surplus credits charged per hour: those beyond the earnings of a day."""
        _, borrowed = self.balances()
        return np.where(borrowed >= 24 * self.earned, (self.wanted - self.earned).clip(0), 0.0)


Fleet = fleets.Fleet[Burstable]
Make = fleets.Make[Burstable]


def an_instance(number: int, kind: str, chance: np.random.Generator) -> Burstable:
    """An instance that uses less than it earns, day and night."""
    instance_type = str(chance.choice(list(EARNED)))
    level = EARNED[instance_type] * chance.uniform(0.2, 0.7)
    day = 1 + 0.2 * np.sin(2 * np.pi * (AGE + chance.integers(0, 24)) / 24)
    return Burstable(
        f"credits{number:04d}", kind, chance, instance_type, level * day * (1 + chance.normal(0, 0.05, NOW + 1))
    )


def wants(one: Burstable, hours: int, times: float) -> None:
    """Uses this multiple of the earned credits in the last hours."""
    one.wanted[-hours:] = one.earned * times * (1 + one.chance.normal(0, 0.02, hours))


# Faults


def held(fleet: Fleet, one: Burstable) -> None:
    """The balance has been 0 for hours: CPU is throttled to the baseline."""
    wants(one, int(one.chance.integers(60, 120)), one.chance.uniform(1.6, 3))
    fleet.fault(one, "throttled")


def spends(fleet: Fleet, one: Burstable) -> None:
    """A new lasting load: the balance lasts for some hours."""
    times, left = one.chance.uniform(1.6, 4), one.chance.uniform(2, 10)
    wants(one, max(4, round(24 / (times - 1) - left)), times)
    fleet.fault(one, "credits_draining")


def lives_on_loans(fleet: Fleet, one: Burstable) -> None:
    one.is_unlimited = True
    wants(one, NOW, one.chance.uniform(1.5, 3))
    fleet.fault(one, "surplus_charged")


# Decoys


def spends_each_day(fleet: Fleet, one: Burstable) -> None:
    """Credits are spent in the same hours of each day, and earned back in the others."""
    length = int(one.chance.integers(5, 9))
    busy = (AGE + length - 1) % 24 < length
    times = 1 + one.chance.uniform(0.6, 0.9) * 0.95 * (24 - length) / length
    one.wanted = one.earned * np.where(busy, times, 0.05) * (1 + one.chance.normal(0, 0.01, NOW + 1))


def a_batch(fleet: Fleet, one: Burstable) -> None:
    wants(one, int(one.chance.integers(1, 3)), one.chance.uniform(2, 6))


def spends_slowly(fleet: Fleet, one: Burstable) -> None:
    """The balance lasts for a day and more."""
    wants(one, int(one.chance.integers(4, 20)), one.chance.uniform(1.1, 1.4))


def borrows_a_little(fleet: Fleet, one: Burstable) -> None:
    one.is_unlimited = True
    wants(one, int(one.chance.integers(14, 16)), 3.0)


def is_new(fleet: Fleet, one: Burstable) -> None:
    one.since = NOW - int(one.chance.integers(0, 3))


def metrics_missing(fleet: Fleet, one: Burstable) -> None:
    one.answers = False


def healthy(fleet: Fleet, one: Burstable) -> None:
    """The instance uses less than it earns."""


FAULTS: tuple[Make, ...] = (held, spends, lives_on_loans)
DECOYS: tuple[Make, ...] = (
    spends_each_day, a_batch, spends_slowly, borrows_a_little, is_new, metrics_missing, healthy,
)  # fmt: skip


def build(scenario: Scenario) -> Fleet:
    return fleets.build(scenario, 64, an_instance, FAULTS, DECOYS)


def instances(fleet: Fleet, place: dict[str, str]) -> list[dict[str, Any]]:
    """Rows of EC2."""
    return [
        place | {"instance_id": one.name, "instance_type": one.instance_type, "state": "running", "tags": {},
                 "launched_at": EVALUATED - 900 * HOUR, "observed_at": EVALUATED + HOUR}
        for one in fleet.resources
    ]  # fmt: skip


def points(fleet: Fleet, place: dict[str, str]) -> Iterator[dict[str, Any]]:
    """CloudWatch data points of the evaluated hour, every five minutes."""
    for one in (each for each in fleet.resources if each.answers):
        left, borrowed = one.balances()
        for n in range(12):
            share = (n + 1) / 12
            output = {
                "cpu_credits": left[NOW - 1] + share * (left[NOW] - left[NOW - 1]),
                "cpu_credits_borrowed": borrowed[NOW - 1] + share * (borrowed[NOW] - borrowed[NOW - 1]),
                "cpu_credits_charged": one.charged()[NOW] / 12,
            }
            for metric, value in output.items():
                yield place | {"resource_id": one.name, "metric": metric, "at": EVALUATED + n * timedelta(minutes=5),
                               "period_seconds": 60, "value": float(value)}  # fmt: skip


def past(fleet: Fleet, place: dict[str, str]) -> pd.DataFrame:
    """Rows of the previous hours, as the app writes them."""
    frames = []
    for one in (each for each in fleet.resources if each.since < NOW):
        left, borrowed = one.balances()
        hours = np.arange(one.since, NOW)
        frames.append(
            pd.DataFrame({
                "hour": [EVALUATED - int(NOW - hour) * HOUR for hour in hours], "instance_id": one.name, **place,
                "instance_group": one.name, "is_burstable": True, "activities_known": True, "observed_at": EVALUATED,
                "cpu_credits": left[hours], "cpu_credits_borrowed": borrowed[hours],
                "cpu_credits_most": np.maximum(left[hours], left[hours - 1]),
                "cpu_credits_charged": one.charged()[hours],
            })
        )  # fmt: skip
    return pd.concat(frames)
