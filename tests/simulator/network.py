"""Instances by minute of network demand: at the bandwidth limit, bursting, and decoys.

Traffic is limited as EC2 does it: to the peak while there are burst credits, and to the baseline without. No metric
exposes the credits; a burst at the peak lasts 5 to 60 minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
from streamwarden.base.hours import HOUR

from tests.simulator import fleets
from tests.simulator.scenario import EVALUATED, Scenario

RULE = "instance_network_starving"
GIGABIT = 125e6
TYPES = {"m5.large": (0.75, 10), "m5.xlarge": (1.25, 10), "r5.2xlarge": (2.5, 10), "m6i.large": (0.781, 12.5)}
FLAT = {"m5.8xlarge": (10, 10), "r5.12xlarge": (12, 12)}
MINUTES = 240
"""Minutes up to the end of the evaluated hour."""


@dataclass
class Link:
    """The network of one instance."""

    name: str
    kind: str
    chance: np.random.Generator
    instance_type: str
    baseline: float
    peak: float
    wanted: dict[str, np.ndarray]
    """Demand in bytes per second, by direction and minute."""
    credits: float
    """Burst credits, in bytes beyond the baseline."""
    is_detailed: bool
    days_alike: int = 0
    known: np.ndarray = field(default_factory=lambda: np.ones(MINUTES, dtype=bool))
    reports_network_limits: bool = True

    def carried(self, direction: str) -> np.ndarray:
        """Bytes per second that EC2 carries in this direction, by minute."""
        left, found = self.credits, np.empty(MINUTES)
        for minute, wanted in enumerate(self.wanted[direction]):
            most = self.peak if left > 0 else self.baseline * (1 + self.chance.normal(0, 0.004))
            found[minute] = min(wanted, most)
            left = min(self.credits, left - 60 * (found[minute] - self.baseline))
        return found


Fleet = fleets.Fleet[Link]
Make = fleets.Make[Link]


def a_link(number: int, kind: str, chance: np.random.Generator) -> Link:
    """A link below its baseline."""
    types = FLAT if kind in WITHOUT_BURST else TYPES
    instance_type = str(chance.choice(list(types)))
    baseline, peak = (GIGABIT * metric for metric in types[instance_type])
    wanted = {}
    for direction in ("in", "out"):
        level = baseline * chance.uniform(0.1, 0.6)
        wanted[direction] = level * (1 + 0.1 * np.sin(np.arange(MINUTES) / 30) + chance.normal(0, 0.05, MINUTES))
    # Credits are full a day before: so many minutes at the peak.
    credits = (peak - baseline) * 60 * chance.uniform(8, 55)
    is_detailed = bool(chance.random() < 0.5)
    return Link(f"i-link{number:04d}", kind, chance, instance_type, baseline, peak, wanted, credits, is_detailed)


def _surge(link: Link, begins: int, ends: int, of_baseline: tuple[float, float]) -> None:
    """Sets the demand in one direction."""
    direction = str(link.chance.choice(["in", "out"]))
    level = link.baseline * link.chance.uniform(*of_baseline)
    link.wanted[direction][begins:ends] = level * (1 + link.chance.normal(0, 0.03, ends - begins))


# Faults


def held_back(fleet: Fleet, link: Link) -> None:
    """The link burst in this hour or the previous one; since then it is limited to the baseline."""
    spent_at = int(link.chance.integers(150, 218))
    burst = int(link.chance.integers(10, 50))
    _surge(link, spent_at - burst, MINUTES, (2.0, 4.0))
    link.credits = _beyond(link, spent_at - burst, spent_at)
    fleet.fault(link, "throttled")


def held_back_for_hours(fleet: Fleet, link: Link) -> None:
    _surge(link, 0, MINUTES, (2.0, 4.0))
    link.credits = _beyond(link, 0, 20)
    fleet.fault(link, "throttled")


def _beyond(link: Link, begins: int, ends: int) -> float:
    """Credits that end at the end of the hour."""
    surplus = {
        name: np.clip(wanted - link.baseline, 0, None)[begins:ends].sum() for name, wanted in link.wanted.items()
    }
    return 60 * max(surplus.values())


def bursts(fleet: Fleet, link: Link) -> None:
    begins = MINUTES - int(link.chance.integers(22, 58))
    _surge(link, begins, MINUTES, (1.3, 3.4))
    link.credits = 2 * _beyond(link, begins, MINUTES)
    fleet.fault(link, "bursting")


def bursts_longer_than_ever(fleet: Fleet, link: Link) -> None:
    """Bursts as on the two previous days only."""
    bursts(fleet, link)
    link.days_alike = 2


def at_its_peak(fleet: Fleet, link: Link) -> None:
    begins = MINUTES - int(link.chance.integers(25, 60))
    _surge(link, begins, MINUTES, (20, 40))
    link.credits = np.inf
    fleet.fault(link, "at_peak")


def at_its_limit_without_burst(fleet: Fleet, link: Link) -> None:
    begins = MINUTES - int(link.chance.integers(25, 60))
    _surge(link, begins, MINUTES, (1.05, 2))
    fleet.fault(link, "at_peak")


# Decoys


def peaks_shortly(fleet: Fleet, link: Link) -> None:
    for begins in link.chance.integers(180, 230, 2):
        _surge(link, int(begins), int(begins) + int(link.chance.integers(1, 5)), (1.5, 4))
    link.credits = np.inf


def burst_is_over(fleet: Fleet, link: Link) -> None:
    begins = int(link.chance.integers(150, 190))
    _surge(link, begins, begins + int(link.chance.integers(12, 25)), (1.5, 3))
    link.credits = np.inf


def bursts_each_day(fleet: Fleet, link: Link) -> None:
    begins = MINUTES - int(link.chance.integers(22, 58))
    _surge(link, begins, MINUTES, (1.3, 3.4))
    link.credits, link.days_alike = np.inf, int(link.chance.integers(3, 7))


def steady_at_the_baseline(fleet: Fleet, link: Link) -> None:
    """The demand equals the baseline."""
    direction = str(link.chance.choice(["in", "out"]))
    link.wanted[direction] = link.baseline * (0.98 + link.chance.normal(0, 0.008, MINUTES))


def sways_about_the_baseline(fleet: Fleet, link: Link) -> None:
    """Alternately above and below the baseline, some minutes each: credits earned equal credits spent."""
    direction = str(link.chance.choice(["in", "out"]))
    link.wanted[direction] = link.baseline * (0.9 + 0.4 * np.sin(np.arange(MINUTES) / 2.5))
    link.credits = np.inf


def high_without_burst(fleet: Fleet, link: Link) -> None:
    link.wanted["out"] *= 0.85 * link.baseline / link.wanted["out"].max()


def network_limits_unknown(fleet: Fleet, link: Link) -> None:
    bursts(Fleet(), link)
    link.reports_network_limits = False


def minutes_lost(fleet: Fleet, link: Link) -> None:
    bursts(Fleet(), link)
    link.known[MINUTES - 40 :] = False


def healthy(fleet: Fleet, link: Link) -> None:
    """A healthy link."""


FAULTS: tuple[Make, ...] = (
    held_back, held_back_for_hours, bursts, bursts_longer_than_ever, at_its_peak, at_its_limit_without_burst,
)  # fmt: skip
DECOYS: tuple[Make, ...] = (
    peaks_shortly, burst_is_over, bursts_each_day, steady_at_the_baseline, sways_about_the_baseline, high_without_burst,
    network_limits_unknown, minutes_lost, healthy,
)  # fmt: skip
WITHOUT_BURST = {fleets.kind_of(make) for make in (at_its_limit_without_burst, high_without_burst)}


def build(scenario: Scenario) -> Fleet:
    return fleets.build(scenario, 18, a_link, FAULTS, DECOYS)


def instances(fleet: Fleet, place: dict[str, str]) -> list[dict[str, Any]]:
    """Rows of EC2."""
    return [
        place | {
            "instance_id": link.name, "instance_type": link.instance_type, "state": "running", "is_spot": False,
            "launched_at": EVALUATED - 999 * HOUR, "tags": {}, "observed_at": EVALUATED + HOUR,
            "network_baseline_bytes_per_second": link.baseline if link.reports_network_limits else None,
            "network_peak_bytes_per_second": link.peak if link.reports_network_limits else None,
        }
        for link in fleet.resources
    ]  # fmt: skip


def points(fleet: Fleet, place: dict[str, str]) -> Iterator[dict[str, Any]]:
    """CloudWatch data points of the evaluated hour."""
    for link in fleet.resources:
        for direction in ("in", "out"):
            carried = 60 * link.carried(direction)
            step = 1 if link.is_detailed else 5
            for minute in range(MINUTES - 60, MINUTES, step):
                if link.known[minute]:
                    at = EVALUATED + (minute - MINUTES + 60) * timedelta(minutes=1)
                    value = float(carried[minute : minute + step].sum())
                    yield place | {"resource_id": link.name, "metric": f"{direction}_bytes", "at": at,
                                   "period_seconds": 60, "value": value}  # fmt: skip


def past(fleet: Fleet, place: dict[str, str]) -> pd.DataFrame:
    """Rows of the previous hours that the detector reads."""
    rows = []
    for link in fleet.resources:
        for direction in ("in", "out"):
            carried = link.carried(direction)
            head = place | {
                "instance_id": link.name, "direction": direction, "minutes_expected": 60, "minutes_present": 60,
                "baseline_bytes_per_second": link.baseline, "peak_bytes_per_second": link.peak,
            }  # fmt: skip
            for back in (1, 2, 3):
                hour = carried[MINUTES - 60 * (back + 1) : MINUTES - 60 * back]
                rows.append(head | {"hour": EVALUATED - back * HOUR} | _facts(link, hour))
            for day in range(1, link.days_alike + 1):
                rows.append(head | {"hour": EVALUATED - 24 * day * HOUR} | _facts(link, carried[-60:]))
    return pd.DataFrame(rows)


def _facts(link: Link, hour: np.ndarray) -> dict[str, Any]:
    lately, baseline = hour[-15:], link.baseline
    return {
        "bytes_per_second_p99": float(np.percentile(hour, 99)),
        "bytes_per_second_max": float(hour.max()),
        "minutes_above_baseline": int((hour > 1.05 * baseline).sum()),
        "minutes_at_peak": int((hour >= 0.95 * link.peak).sum()),
        "minutes_above_lately": int((lately > 1.05 * baseline).sum()),
        "minutes_at_baseline_lately": int(((lately >= 0.95 * baseline) & (lately <= 1.05 * baseline)).sum()),
    }
