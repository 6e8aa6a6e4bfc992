"""Loads that the rules of volumes did not grow up with: on and off, ramps, fading, heavy tails, paid-for limits.

Their labels come from the simulated disk, as those of the others do (see `volumes._label`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from demo.ebs_load import LoadModel, Surge
from demo.ebs_physics import volume_limits
from streamwarden.base.hours import HOUR

if TYPE_CHECKING:
    from tests.simulator.volume_kinds import Builder

MINUTE = timedelta(minutes=1)
ON_OFF = ("on-off load", "on-off load that refills")
"""Kinds with pauses of up to `LONGEST_PAUSE` within one episode."""
LONGEST_PAUSE = 30


def cycles(start: datetime, end: datetime, on: int, off: int, read_iops: float, write_iops: float) -> tuple[Surge, ...]:
    """A load that is on for some minutes and off for some, until the end."""
    surges, at = [], start
    while at < end:
        surges.append(Surge(at, min(at + on * MINUTE, end), read_iops, write_iops))
        at += (on + off) * MINUTE
    return tuple(surges)


def on_off(builder: Builder) -> None:
    """On and off within each half hour, above what the bucket earns: it drains in 2 to 12 hours, and then throttles."""
    size = builder.chance.choice([50, 100, 200])
    limits = volume_limits("gp2", size, None, None)
    on = builder.chance.choice([10, 12, 15])
    off = builder.chance.choice([10, 20])
    hours = 2 * 6 ** builder.chance.random()
    mean = limits.base_iops + limits.credits / (hours * 3600)
    wanted = min(mean * (on + off) / on, 2950.0) - 20
    start = builder.at(1, timedelta(hours=20))
    surges = cycles(start, start + 18 * HOUR, on, off, wanted * 0.6, wanted * 0.4)
    builder.add(0, "gp2", size, LoadModel(10, 10, noise=0.05, weekend_factor=1.0, surges=surges))
    builder.fleet.causes[builder.volume_id(0)] = [start]


def ramps_up(builder: Builder) -> None:
    """A load that grows by steps of ten minutes over hours until it exceeds what a gp3 volume provides."""
    start = builder.at(1, timedelta(hours=16))
    steps = builder.chance.randint(12, 40)
    wanted = 3000 * builder.chance.uniform(1.15, 1.6)
    end = start + steps * 10 * MINUTE + MINUTE * builder.chance.randint(120, 300)
    each = wanted / steps / 2
    surges = tuple(Surge(start + n * 10 * MINUTE, end, each, each) for n in range(steps))
    builder.add(0, "gp3", 300, LoadModel(20, 20, noise=0.05, weekend_factor=1.0, surges=surges))
    # It throttles from the step on that reaches the limit, which is the begin of the fault.
    builder.fleet.causes[builder.volume_id(0)] = [start + int(steps * 3000 / wanted) * 10 * MINUTE]


def above_paid_limits(builder: Builder) -> None:
    """A load above the IOPS or the throughput that were bought for a gp3 volume beyond its defaults."""
    iops, mib = builder.chance.choice([(6000, 250), (4000, 500), (10000, 400)])
    kib = builder.chance.choice([16, 64, 128])
    limits = volume_limits("gp3", 500, iops, mib)
    most = min(limits.base_iops, limits.base_bytes / (kib * 1024))
    wanted = most * builder.chance.uniform(1.15, 1.5)
    start = builder.at(1, timedelta(hours=12))
    surge = Surge(start, start + MINUTE * builder.chance.randint(120, 400), wanted * 0.5, wanted * 0.5)
    load = LoadModel(20, 20, kib, kib, noise=0.1, surges=(surge,))
    builder.add(0, "gp3", 500, load, iops=iops, throughput_mib_s=mib)
    builder.fleet.causes[builder.volume_id(0)] = [start]


def on_off_refills(builder: Builder) -> None:
    """On and off, but what is spent comes back in each pause."""
    limits = volume_limits("gp2", 100, None, None)
    on, off = 10, builder.chance.choice([20, 30])
    wanted = limits.base_iops + (limits.base_iops - 20) * off / on * builder.chance.uniform(0.5, 0.85)
    start = builder.at(1, timedelta(hours=20))
    surges = cycles(start, start + 16 * HOUR, on, off, wanted * 0.5, wanted * 0.5)
    builder.add(0, "gp2", 100, LoadModel(8, 8, noise=0.05, weekend_factor=1.0, surges=surges))
    builder.scare(start, start + 6 * HOUR)


def fades(builder: Builder) -> None:
    """A load that would empty the bucket in 12 to 18 hours at first, and fades within 5."""
    limits = volume_limits("gp2", 100, None, None)
    excess = limits.credits / (builder.chance.uniform(12, 18) * 3600)
    start = builder.at(1, timedelta(hours=10))
    each = (limits.base_iops + excess - 40) / 10
    surges = tuple(Surge(start, start + n * 30 * MINUTE, each * 0.5, each * 0.5) for n in range(1, 11))
    builder.add(0, "gp2", 100, LoadModel(20, 20, noise=0.05, weekend_factor=1.0, surges=surges))
    builder.scare(start, start + 6 * HOUR)


def heavy_tails(builder: Builder) -> None:
    """Single minutes of many times the median, all within the limits of a gp3 volume."""
    load = LoadModel(
        120, 120, builder.chance.choice([4, 16, 64]), builder.chance.choice([4, 16, 32]), noise=0.45,
        daily_swing=0.3, weekend_factor=1.0,
    )  # fmt: skip
    builder.add(0, "gp3", 500, load)
    first = builder.at(1, timedelta(hours=6))
    builder.scare(first, first + 3 * HOUR)


FAULTS = {"on-off load": on_off, "ramp to the limit": ramps_up, "above paid limits": above_paid_limits}
DECOYS = {"on-off load that refills": on_off_refills, "fading load": fades, "heavy tails": heavy_tails}
