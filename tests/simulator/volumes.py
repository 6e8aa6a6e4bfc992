"""EBS volumes: days of minutes after AWS's rules (the demo's world: bucket, caps, instance), faults and decoys in them.

The truth isn't what was meant but what the simulated disk did: a fault is a span in which it was held back for long,
and begins with the load that led to it. Only hours that can decide something are judged: those around each fault, the
scariest of each decoy, and some of each instance by chance. All volumes of an instance are judged together.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from demo.ebs_days import Volume
from demo.ebs_load import LoadModel, Surge
from demo.ebs_physics import GIB, INSTANCE_TYPES, KIB, volume_limits
from demo.world import Metric, World
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR, start_of_hour

from spark_apps.apps import ebs_volumes as app
from spark_apps.apps.ebs_volumes.series import LOW_PERCENT
from spark_apps.sources.ec2 import Ec2Instances, Ec2Volumes
from tests.simulator.bench import Bench
from tests.simulator.scenario import JUDGED, START, Case, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, score

ACCOUNT, REGION = "123456789012", "eu-central-1"
MINUTE = timedelta(minutes=1)
FIRST = START + timedelta(days=1)
"""The first hour that is judged: the app looks back a day."""
HURTS, HARMLESS = 25, 10
"""Minutes: held back for longer is a fault, for less nothing; what lies between counts neither way."""
PAUSE = 10
JUST_NOW = 5 * MINUTE
"""What ended less than so long before the hour's end can't be told from a pause."""
LATE_BALANCE = 5
"""Minutes by which BurstBalance comes later than the rest."""
HOURS_PER_FAULT, CONTROL_HOURS = 16, 4
NIGHTS, NEW_NIGHTS = 5, 3


@dataclass
class Fleet:
    """A simulated world, what was done to it, and the hours to judge."""

    scenario: Scenario
    world: World
    truth: Truth = field(default_factory=Truth)
    scary: dict[str, list[datetime]] = field(default_factory=dict)
    """Hours of decoys that must be judged."""
    causes: dict[str, list[datetime]] = field(default_factory=dict)
    """When loads began that are meant to hold a volume back."""
    kinds: dict[str, str] = field(default_factory=dict)
    turn: int = 0


def build(scenario: Scenario) -> Fleet:
    """The fleet of a scenario, with its truth."""
    fleet = Fleet(scenario, World(scenario.seed, lambda: scenario.end))
    chance = random.Random(f"{scenario.seed} volumes")  # noqa: S311 a simulation
    number = 0
    while number < scenario.volumes:
        number += _Builder(fleet, chance, number).add_instance()
    _label(fleet)
    return fleet


class _Builder:
    """Adds one instance with its volumes: most healthy, some to fail, some only to look so."""

    def __init__(self, fleet: Fleet, chance: random.Random, number: int) -> None:
        self.fleet, self.chance, self.number = fleet, chance, number
        self.instance_id = f"i-{number:05d}"

    def add_instance(self) -> int:
        room = self.fleet.scenario.volumes - self.number
        kinds = [*FAULTS, *DECOYS]
        if self.chance.random() < 0.45 and room >= 3:
            # Every kind in turn, so that no seed leaves one out.
            kind = kinds[self.fleet.turn % len(kinds)]
            self.fleet.turn += 1
        else:
            kind = "healthy"
        nitro_type = self.chance.choice(["m5.xlarge", "m5.2xlarge", "r5.xlarge", "c5.2xlarge"])
        instance_type = {"instance's limit": "m5.large"}.get(kind, nitro_type)
        if kind in ("healthy", "bucket empties") and self.chance.random() < 0.15:
            instance_type = "m4.xlarge"  # sends no checks
        self.fleet.world.add_instance(
            ACCOUNT, REGION, self.instance_id, instance_type, {"Name": self.instance_id}, START,
            detailed_monitoring=self.chance.random() < 0.5,
        )  # fmt: skip
        volumes = min(room, self.chance.choice([1, 2, 3]))
        if kind != "healthy":
            self.fleet.kinds[self.volume_id(0)] = kind
            (FAULTS | DECOYS)[kind](self)
        made = [
            self.volume_id(position) for position in range(3) if self.volume_id(position) in self.fleet.world.volumes
        ]
        for position in range(len(made), volumes):
            self.healthy(position)
        return max(volumes, len(made))

    def volume_id(self, position: int) -> str:
        return f"vol-{self.number + position:05d}"

    def at(self, earliest_day: float, before_end: timedelta) -> datetime:
        """A minute by chance, such that something that lasts that long still ends within the scenario."""
        span = self.fleet.scenario.end - before_end - (START + timedelta(days=earliest_day))
        return START + timedelta(days=earliest_day) + MINUTE * int(self.chance.random() * max(span / MINUTE, 1))

    def add(self, position: int, volume_type: str, size_gib: int, load: LoadModel, **more: Any) -> Volume:
        return self.fleet.world.add_volume(
            ACCOUNT, REGION, self.volume_id(position), volume_type, size_gib, instance_id=self.instance_id,
            device=f"/dev/sd{'fghij'[position]}", load=load, created_at=START, **more,
        )  # fmt: skip

    def calm(self, baseline_iops: float, **more: Any) -> LoadModel:
        """Well below the baseline, with the day's and the week's rhythm, and deploys of some minutes."""
        iops = min(baseline_iops, 900) * self.chance.uniform(0.08, 0.5)
        reads = self.chance.uniform(0.1, 0.9)
        deploys = tuple(
            Surge(at, at + MINUTE * self.chance.randint(2, 6), iops * 0.5, iops * 0.5)
            for at in (self.at(0, HOUR) for _ in range(self.chance.randint(0, 4)))
        )
        settings = {
            "read_iops": iops * reads,
            "write_iops": iops * (1 - reads),
            "read_kib": self.chance.choice([8, 16, 32]),
            "write_kib": self.chance.choice([4, 16, 32]),
            "daily_swing": self.chance.uniform(0.1, 0.4),
            "noise": self.chance.uniform(0.05, 0.2),
            "surges": deploys,
        }
        return LoadModel(**(settings | more))

    def healthy(self, position: int) -> None:
        kind = self.chance.choice(["gp2", "gp2", "gp2", "gp3", "gp3", "io1", "io2", "st1", "sc1"])
        match kind:
            case "gp2":
                size = self.chance.choice([20, 100, 200, 334, 500, 1000, 2000])
                self.add(position, kind, size, self.calm(min(max(100, 3 * size), 3000)))
            case "gp3":
                self.add(position, kind, self.chance.choice([50, 200, 1000]), self.calm(3000))
            case "io1" | "io2":
                iops = self.chance.choice([1000, 2000])
                self.add(position, kind, 200, self.calm(iops), iops=iops)
            case _:
                size = self.chance.choice([500, 1024, 4096])
                rate = volume_limits(kind, size, None, None).base_bytes
                share = self.chance.uniform(0.1, 0.5) / 2 / 2**20
                load = LoadModel(rate * share, rate * share, 1024, 1024, noise=0.1)
                self.add(position, kind, size, load)

    # Faults

    def bucket_empties(self) -> None:
        """RocksDB on a small gp2 disk: a load above the baseline that stays."""
        size = self.chance.choice([10, 20, 33, 50, 100, 150, 250, 400])
        limits = volume_limits("gp2", size, None, None)
        hours = 1.2 * 30 ** self.chance.random()  # 1.2 h to 36 h
        excess = min(limits.credits / (hours * 3600), 3000 - limits.base_iops)
        calm = self.calm(limits.base_iops, noise=0.1, surges=())
        start = self.at(1, timedelta(hours=40))
        # What comes on top of a calm load that follows the time of day.
        wanted = limits.base_iops + excess - (calm.read_iops + calm.write_iops)
        reads = self.chance.uniform(0.2, 0.8)
        surge = Surge(start, self.fleet.scenario.end, wanted * reads, wanted * (1 - reads))
        calm = replace(calm, daily_swing=0.1, weekend_factor=1.0, surges=(surge,))
        # Requests of 512 KiB count as two: half as many do the same, as far as throughput allows.
        if (limits.base_iops + excess) * 256 * KIB < 0.8 * limits.burst_bytes and self.chance.random() < 0.4:
            halved = replace(surge, read_iops=surge.read_iops / 2, write_iops=surge.write_iops / 2)
            calm = replace(calm, read_iops=calm.read_iops / 2, write_iops=calm.write_iops / 2, read_kib=512,
                           write_kib=512, surges=(halved,))  # fmt: skip
        self.add(0, "gp2", size, calm)
        self.fleet.causes[self.volume_id(0)] = [start]

    def bytes_run_out(self) -> None:
        """A scan on st1 or sc1 whose credits are bytes, or small random I/O, which costs as much."""
        kind, size = self.chance.choice(["st1", "sc1"]), self.chance.choice([500, 1024, 2048])
        limits = volume_limits(kind, size, None, None)
        mib = limits.base_bytes / 2**20
        rate = min(mib * self.chance.uniform(1.5, 4), limits.burst_bytes / 2**20 * 0.95) - mib * 0.4
        start = self.at(1, timedelta(hours=48))
        surge = Surge(start, self.fleet.scenario.end, rate * 0.7, rate * 0.3)
        kib, random_share = self.chance.choice([(1024, 0.0), (1024, 0.0), (64, 1.0)])
        load = LoadModel(mib * 0.2, mib * 0.2, kib, kib, 0.1, 1.0, 0.05, random_share, surges=(surge,))
        self.add(0, kind, size, load)
        self.fleet.causes[self.volume_id(0)] = [start]

    def batch_overruns(self) -> None:
        """A nightly batch that one night doesn't end."""
        limits = volume_limits("gp2", 100, None, None)
        wanted = limits.base_iops + limits.credits * self.chance.uniform(0.3, 0.45) / 7200
        begins = timedelta(hours=self.chance.randint(0, 4), minutes=self.chance.randint(0, 50))
        nights = [START + timedelta(days=day) + begins for day in range(self.fleet.scenario.days)]
        ends = [*(at + 2 * HOUR for at in nights[:-1]), self.fleet.scenario.end]
        surges = tuple(Surge(at, end, wanted * 0.7, wanted * 0.3) for at, end in zip(nights, ends, strict=True))
        self.add(0, "gp2", 100, LoadModel(30, 30, noise=0.1, surges=surges))
        self._know(nights)
        # What nobody expects begins when it should have ended.
        self.fleet.causes[self.volume_id(0)] = [nights[-1] + 2 * HOUR]

    def at_provisioned_limit(self) -> None:
        """A load beyond what gp3, io1 or io2 have: there is no bucket and no warning."""
        kind, by_bytes = self.chance.choice(["gp3", "io1", "io2"]), self.chance.random() < 0.5
        iops = {"gp3": None, "io1": 800, "io2": 1000}[kind]
        limits = volume_limits(kind, 300, iops, None)
        start = self.at(1, timedelta(hours=12))
        kib = 256 if by_bytes else 16
        per_second = limits.burst_bytes / 2**18 if by_bytes else limits.base_iops
        wanted = min(per_second, limits.base_iops) * self.chance.uniform(1.15, 1.5)
        surge = Surge(start, start + MINUTE * self.chance.randint(120, 400), wanted * 0.5, wanted * 0.5)
        load = LoadModel(20, 20, kib, kib, noise=0.1, surges=(surge,))
        self.add(0, kind, 300, load, iops=iops)
        self.fleet.causes[self.volume_id(0)] = [start]

    def micro_bursts(self) -> None:
        """A third of its IOPS on average, all of them in twelve seconds of each minute."""
        start = self.at(1, timedelta(hours=12))
        surge = Surge(start, start + MINUTE * self.chance.randint(90, 300), 500, 500)
        self.add(0, "gp3", 300, LoadModel(20, 20, noise=0.05, duty=0.2, surges=(surge,)))
        self.fleet.causes[self.volume_id(0)] = [start]

    def wears_down(self) -> None:
        """Above its baseline by day and below it by night: every day ends lower than the one before."""
        size = self.chance.choice([50, 100, 200])
        limits = volume_limits("gp2", size, None, None)
        mean = limits.base_iops * self.chance.uniform(1.1, 1.25)
        start = START + timedelta(days=self.chance.randint(1, 2))
        surge = Surge(start, self.fleet.scenario.end, mean * 0.25, mean * 0.25)
        load = LoadModel(mean * 0.25, mean * 0.25, noise=0.05, daily_swing=0.5, weekend_factor=1.0, surges=(surge,))
        self.add(0, "gp2", size, load)
        self.fleet.causes[self.volume_id(0)] = [start]

    def instance_binds(self) -> None:
        """Volumes that are fine each, on an instance that isn't: m5.large keeps 3,600 IOPS for ever."""
        start = self.at(1, timedelta(hours=12))
        surge = Surge(start, start + MINUTE * self.chance.randint(150, 400), 1250, 1250)
        self.add(0, "gp3", 500, LoadModel(50, 50, noise=0.1, surges=(surge,)))
        for position in (1, 2):
            self.add(position, "gp3", 500, LoadModel(800, 800, noise=0.1, daily_swing=0.1, weekend_factor=1))
        self.fleet.causes |= {self.volume_id(p): [start] for p in range(3)}
        self.fleet.kinds |= {self.volume_id(p): "instance's limit" for p in range(3)}

    def stalls(self) -> None:
        """I/O that makes no progress."""
        volume = self.add(0, "gp3", 200, self.calm(3000))
        start = self.at(1, timedelta(hours=5))
        self.fleet.world.stall(volume.volume_id, start, start + MINUTE * self.chance.randint(30, 90))
        self.fleet.causes[volume.volume_id] = [start]

    # Decoys

    def scare(self, first: datetime, last: datetime) -> None:
        hours = int((start_of_hour(last) - start_of_hour(first)) / HOUR) + 2
        scary = self.fleet.scary.setdefault(self.volume_id(0), [])
        scary += [start_of_hour(first) + n * HOUR for n in range(hours)]

    def recovers(self) -> None:
        """A bucket that a load of under an hour brings low, and that refills."""
        size = self.chance.choice([50, 100, 200])
        limits = volume_limits("gp2", size, None, None)
        start = self.at(1, timedelta(hours=12))
        minutes = self.chance.randint(25, 55)
        wanted = min(3000, limits.base_iops + limits.credits * self.chance.uniform(0.5, 0.85) / (minutes * 60))
        calm = self.calm(limits.base_iops)
        surge = Surge(start, start + MINUTE * minutes, wanted / 2, wanted / 2)
        self.add(0, "gp2", size, replace(calm, read_kib=16, write_kib=16, surges=(surge,)))
        # Nobody can know that it ends; once it has ended for some minutes, everybody can.
        self.fleet.truth.unclear.append((self.volume_id(0), start, start + MINUTE * minutes - HOUR + JUST_NOW))
        self.scare(start, start + 2 * HOUR)

    def nightly(self) -> None:
        """A batch of two hours every night, begun by hand or after another, that takes half of the bucket."""
        limits = volume_limits("gp2", 100, None, None)
        wanted = limits.base_iops + limits.credits * self.chance.uniform(0.35, 0.6) / 7200
        begins = timedelta(hours=self.chance.randint(0, 4), minutes=self.chance.randint(0, 50))
        nights = [
            START + timedelta(days=day) + begins + MINUTE * self.chance.randint(0, 20)
            for day in range(self.fleet.scenario.days)
        ]
        surges = tuple(Surge(at, at + 2 * HOUR, wanted * 0.7, wanted * 0.3) for at in nights)
        self.add(0, "gp2", 100, LoadModel(30, 30, noise=0.1, surges=surges))
        self._know(nights)

    def _know(self, nights: Sequence[datetime]) -> None:
        """Judges the last nights. The first of them are as new to the detector as a new batch is."""
        judged = nights[1:][-NIGHTS:]
        for night in judged:
            self.scare(night, night + 4 * HOUR)
        # Before that, the past that the detector would have isn't judged either.
        for night in nights[: nights.index(judged[0]) + NEW_NIGHTS]:
            self.fleet.truth.unclear.append((self.volume_id(0), night, night + 2 * HOUR))

    def spikes(self) -> None:
        """One minute in thirty far beyond what it may do."""
        self.add(0, "gp2", 100, LoadModel(20, 20, spike_every_minutes=30, spike_iops=4000))
        first = self.at(1, timedelta(hours=6))
        self.scare(first, first + 2 * HOUR)

    def short_limit(self) -> None:
        """At its limit for some minutes."""
        start = self.at(1, timedelta(hours=6))
        surge = Surge(start, start + MINUTE * self.chance.randint(3, 8), 2500, 2500)
        self.add(0, "gp3", 100, LoadModel(50, 50, surges=(surge,)))
        self.scare(start, start)

    def near_limit(self) -> None:
        """Busy all day, and within what it may do."""
        self.add(0, "gp3", 500, LoadModel(1100, 1100, daily_swing=0.05, weekend_factor=1.0, noise=0.02))
        first = self.at(1, timedelta(hours=6))
        self.scare(first, first + 2 * HOUR)

    def no_bucket(self) -> None:
        """gp2 beyond 1,000 GiB: it has no BurstBalance."""
        self.add(0, "gp2", 2000, LoadModel(1000, 1000, noise=0.1))
        first = self.at(1, timedelta(hours=6))
        self.scare(first, first + 2 * HOUR)

    def detached(self) -> None:
        """Taken off in the middle of its life."""
        volume = self.add(0, "gp2", 50, self.calm(150))
        at = self.at(1, timedelta(hours=12))
        self.fleet.world.detach(volume.volume_id, at)
        self.scare(at, at + 2 * HOUR)

    def loses_points(self) -> None:
        """CloudWatch lacks some minutes, or all."""
        volume = self.add(0, "gp2", 100, self.calm(300))
        at = self.at(1, timedelta(hours=12))
        self.fleet.world.lose_points(volume.volume_id, at, at + MINUTE * self.chance.choice([7, 25, 50, 130]))
        self.scare(at, at + 2 * HOUR)


FAULTS = {
    "bucket empties": _Builder.bucket_empties,
    "bucket empties fast": _Builder.bucket_empties,
    "bytes run out": _Builder.bytes_run_out,
    "nightly batch overruns": _Builder.batch_overruns,
    "provisioned limit": _Builder.at_provisioned_limit,
    "bucket empties slowly": _Builder.bucket_empties,
    "instance's limit": _Builder.instance_binds,
    "stalled": _Builder.stalls,
    "micro-bursts": _Builder.micro_bursts,
    "wears down": _Builder.wears_down,
}
DECOYS = {
    "low bucket that refills": _Builder.recovers,
    "nightly batch": _Builder.nightly,
    "one-minute spikes": _Builder.spikes,
    "short time at a limit": _Builder.short_limit,
    "near its limit": _Builder.near_limit,
    "gp2 without bucket": _Builder.no_bucket,
    "detached": _Builder.detached,
    "missing points": _Builder.loses_points,
}


# What came of it


def _label(fleet: Fleet) -> None:
    for volume in fleet.world.volumes.values():
        held, instance_over = _held_back(fleet, volume)
        meant = fleet.causes.get(volume.volume_id, [])
        kind = fleet.kinds.get(volume.volume_id, "beside a fault" if meant else "healthy")
        fleet.truth.decoys[volume.volume_id] = kind
        told: set[datetime] = set()
        began = ended = START - 2 * HOUR
        for first, last, minutes in _spans(held):
            start, end = START + first * MINUTE, START + last * MINUTE
            # What nobody meant begins with the first of its spans: a load that grows past a limit meets it on and off.
            began, ended = (start if start - ended > HOUR else began), end
            meant_at = max((at for at in meant if at <= start), default=None)
            cause, due = meant_at or began, start_of_hour(start + HURTS * MINUTE)
            if minutes <= HARMLESS:
                continue
            # Neither: it hurts a little, it is the same load again, or it was before the first hour that is judged.
            if minutes < HURTS or cause in told or due < FIRST:
                fleet.truth.unclear.append((volume.volume_id, cause, end))
                continue
            fleet.truth.faults.append(Fault(volume.volume_id, kind, cause, due, end, start if meant_at else None))
            told.add(cause)
        # Neither: its instance was at its limit, and of the share that it lost it felt little.
        beside = [at for v in fleet.world._unit_of(volume).volumes for at in fleet.causes.get(v.volume_id, [])]
        for first, last, minutes in _spans(instance_over):
            start, end = START + first * MINUTE, START + last * MINUTE
            if minutes > HARMLESS:
                began = max((at for at in beside if at <= start), default=start)
                fleet.truth.unclear.append((volume.volume_id, began, end))


def _held_back(fleet: Fleet, volume: Volume) -> tuple[np.ndarray, np.ndarray]:
    """Minutes in which the volume did less than it was asked to, for whatever reason; and its instance."""
    unit = fleet.world._unit_of(volume)
    row, first = unit.volumes.index(volume), int(START.timestamp() // 86_400)
    held, over = [], []
    for day in range(first, first + fleet.scenario.days):
        figures, instance = unit.day(day)
        mine = figures[row]
        of_instance = instance.iops_exceeded + instance.bytes_exceeded if instance else np.zeros(len(mine.queue))
        exceeded = np.nan_to_num(mine.iops_exceeded) + np.nan_to_num(mine.bytes_exceeded) + np.nan_to_num(mine.stalled)
        held.append(exceeded + of_instance * (np.nan_to_num(mine.queue) >= 1) > 0)
        over.append(of_instance > 0)
    return np.concatenate(held), np.concatenate(over)


def _spans(held: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """First minute, last minute and minutes held of each span without a long pause."""
    at = np.flatnonzero(held)
    for part in np.split(at, np.flatnonzero(np.diff(at) > PAUSE) + 1):
        if len(part):
            yield int(part[0]), int(part[-1]), len(part)


def cases(fleet: Fleet) -> list[Case]:
    """The hours of volumes to judge, with all volumes of their instance."""
    chance = random.Random(f"{fleet.scenario.seed} hours")  # noqa: S311 a simulation
    last = fleet.scenario.end - HOUR
    wanted: dict[str, set[datetime]] = {}
    for fault in fleet.truth.faults:
        until = fault.due
        first = max(start_of_hour(fault.begins) - HOUR, until - HOURS_PER_FAULT * HOUR)
        of = wanted.setdefault(fault.resource, set())
        of |= {first + n * HOUR for n in range(int((until - first) / HOUR) + 2)}
        if start_of_hour(fault.begins) - HOUR < first:
            begun = start_of_hour(fault.begins)
            of |= {begun + n * HOUR for n in range(3)}
    for resource, scary in fleet.scary.items():
        wanted.setdefault(resource, set()).update(scary)
    for resource in fleet.world.volumes:
        of = wanted.setdefault(resource, set())
        of |= {START + HOUR * chance.randrange(24, fleet.scenario.days * 24) for _ in range(CONTROL_HOURS)}
    together: dict[str, set[datetime]] = {}
    for resource, hours in wanted.items():
        together.setdefault(str(fleet.world.volumes[resource].instance_id), set()).update(hours)
    return [
        Case(volume.volume_id, hour)
        for volume in fleet.world.volumes.values()
        for hour in sorted(together[str(volume.instance_id)])
        if FIRST <= hour <= last
    ]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, judges and scores."""
    fleet = build(scenario)
    chosen = cases(fleet)
    with TemporaryDirectory() as folder:
        frames = app.transform(sources(bench.spark, fleet, chosen, Path(folder)), JUDGED, Config())
        # No detector of volumes reads single minutes.
        frames["metrics.volume_sample"] = frames["metrics.volume_sample"].limit(0)
        bench.load("ebs_volumes", frames)
    bench.remember("metrics.volume_hourly", "volume_id")
    rows = bench.judge("ebs_volume_starving")
    verdicts = [Verdict.of(row["volume_id"], row) for row in rows]
    result = score("starving volumes", bench.detector("ebs_volume_starving"), verdicts, fleet.truth)
    result.errors, result.error_of = _forecast_errors(rows, fleet.truth), "time to exhaustion"
    return result


def _forecast_errors(rows: Sequence[Mapping[str, Any]], truth: Truth) -> list[float]:
    """Of forecasts made while the load that emptied the bucket was there for all of the hour, an hour or more ahead."""
    errors = []
    outages = {fault.resource: fault for fault in truth.faults if fault.kind.startswith(("b", "n"))}
    for row in rows:
        case = Case.of(row["volume_id"])
        fault, told = outages.get(case.resource), row["hours_to_exhaustion"]
        if fault is None or fault.outage is None or not told or fault.begins > case.hour:
            continue
        left = (fault.outage - case.hour - HOUR) / HOUR
        if left >= 1:
            errors.append(abs(told - left) / left)
    return errors


# What the sources say


class Points:
    """CloudWatch's answer in the long layout, column by column."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.columns: list[tuple[np.ndarray, ...]] = []

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.names)
            self.names.append(name)
        return self.numbers[name]

    def add(self, resource: str, metric: str, start: datetime, period_seconds: int, values: np.ndarray) -> None:
        """One series from `start` on; NaN: no point. A series without points has a row of its own."""
        there = np.flatnonzero(~np.isnan(values))
        at = np.int64(start.timestamp()) + there * period_seconds
        if not len(there):
            at, values = np.array([-1]), np.array([np.nan])
            there = np.array([0])
        ids = (self.number(resource), self.number(metric), period_seconds)
        self.columns.append((*(np.full(len(at), i, dtype=np.int32) for i in ids), at, values[there]))

    def frame(self, spark: SparkSession, file: Path) -> DataFrame:
        resource, metric, period, at, value = (np.concatenate(column) for column in zip(*self.columns, strict=True))
        names, none = pa.array(self.names), at < 0
        count = len(at)
        table = pa.table(
            {
                "account": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [ACCOUNT]),
                "region": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [REGION]),
                "resource_id": pa.DictionaryArray.from_arrays(resource, names),
                "metric": pa.DictionaryArray.from_arrays(metric, names),
                "at": pa.array(at * 1_000_000, mask=none).cast(pa.timestamp("us", "UTC")),
                "period_seconds": pa.array(period, mask=none),
                "value": pa.array(value, mask=none),
            }
        )
        pq.write_table(table, file, row_group_size=500_000)
        rest = {name: f.lit(None).cast(kind) for name, kind in _REST.items()}
        return spark.read.parquet(str(file)).withColumns(rest)


_REST = {"calls": "int", "metrics_asked": "int", "resource": "string", "gap": "string"}


def sources(spark: SparkSession, fleet: Fleet, chosen: list[Case], folder: Path) -> dict[str, DataFrame]:
    """What the app's `extract` would give, all cases as volumes of one hour."""
    end = JUDGED + HOUR
    until = {"known_until": f.lit(end)}
    volumes = spark.createDataFrame([_volume_row(fleet, case) for case in chosen], Ec2Volumes({}).schema())
    hosts = sorted({Case(str(fleet.world.volumes[case.resource].instance_id), case.hour) for case in chosen},
                   key=lambda c: (c.resource, c.hour))  # fmt: skip
    instances = spark.createDataFrame([_instance_row(fleet, host) for host in hosts], Ec2Instances({}).schema())
    hour, day = Points(), Points()
    for case in chosen:
        _add_volume(fleet.world, case, hour, day)
    for host in hosts:
        _add_instance(fleet.world, host, hour)
    metrics = hour.frame(spark, folder / "hour.parquet")
    look_back = day.frame(spark, folder / "day.parquet") if day.columns else metrics.limit(0)
    of_volume = [metric.column for metric in app.VOLUME_METRICS]
    of_instance = [*(metric.column for metric in app.INSTANCE_METRICS), *app.AGENT_METRICS.values()]
    return {
        "instances": app.instances_of(instances, end).withColumns(until),
        "volumes": app.volumes_of(volumes, end).withColumns(until),
        "cloudwatch": metrics,
        "cloudwatch_look_back": look_back,
        "cloudwatch_read_baseline": metrics.limit(0),
        "sampled_since": spark.createDataFrame(
            [], "account string, region string, volume_id string, sampled_since timestamp"
        ),
        "volume_samples": app.samples(metrics, "volume_id", of_volume).cache(),
        "last_day_samples": app.samples(look_back, "volume_id", [m.column for m in app.LOOK_BACK_METRICS]).cache(),
        "instance_samples": app.samples(metrics, "instance_id", of_instance).cache(),
    }


def _volume_row(fleet: Fleet, case: Case) -> dict[str, Any]:
    volume = fleet.world.volumes[case.resource]
    is_attached = volume.detached_at is None or volume.detached_at > case.hour + HOUR
    attachment = {
        "instance_id": Case(str(volume.instance_id), case.hour).name,
        "device": volume.device,
        "state": "attached",
        "attached_at": START + case.shift,
    }
    return {
        "account": ACCOUNT,
        "region": REGION,
        "volume_id": case.name,
        "volume_type": volume.volume_type,
        "size_gib": volume.size_gib,
        "iops": volume.iops or (3000 if volume.volume_type == "gp3" else None),
        "throughput_mib_s": 125 if volume.volume_type == "gp3" else None,
        "state": "in-use" if is_attached else "available",
        "multi_attach": False,
        "created_at": START + case.shift,
        "attachments": [attachment] if is_attached else [],
        "tags": {},
        "observed_at": JUDGED + HOUR,
        "resource": f"{ACCOUNT}/{REGION} volumes",
        "gap": None,
    }


def _instance_row(fleet: Fleet, case: Case) -> dict[str, Any]:
    instance = fleet.world.instances[case.resource]
    kind = INSTANCE_TYPES[instance.instance_type]
    return {
        "account": ACCOUNT,
        "region": REGION,
        "instance_id": case.name,
        "instance_type": instance.instance_type,
        "state": "running",
        "private_ip": instance.private_ip,
        "private_dns": None,
        "launched_at": START + case.shift,
        "vcpus": kind.vcpus,
        "memory_bytes": int(kind.memory_gib * GIB),
        "nitro": kind.nitro,
        "ebs_baseline_iops": float(kind.base_iops),
        "ebs_maximum_iops": float(kind.max_iops),
        "ebs_baseline_bytes_per_second": kind.base_mbps * 125e3,
        "ebs_maximum_bytes_per_second": kind.max_mbps * 125e3,
        "tags": {},
        "observed_at": JUDGED + HOUR,
        "resource": f"{ACCOUNT}/{REGION} instances",
        "gap": None,
    }


def _read(world: World, namespace: str, name: str, resource: str, start: datetime, minutes: int) -> np.ndarray:
    dimension = "VolumeId" if namespace == "AWS/EBS" else "InstanceId"
    found = world.read(
        ACCOUNT, REGION, Metric(namespace, name, frozenset({(dimension, resource)})),
        int(start.timestamp() // 60), minutes,
    )  # fmt: skip
    return np.full(minutes, np.nan) if found is None else np.asarray(found[1], dtype=float)


def _add_volume(world: World, case: Case, hour: Points, day: Points) -> None:
    start = case.hour - app.OVERLAP
    minutes = int((HOUR + app.OVERLAP) / MINUTE)
    figures = {}
    for metric in app.VOLUME_METRICS:
        values = _read(world, "AWS/EBS", metric.name, case.resource, start, minutes)
        if metric.name == "BurstBalance":
            values = np.round(values)
            values[-LATE_BALANCE:] = np.nan
        figures[metric.column] = values
        hour.add(case.name, metric.column, start + case.shift, 60, values)
    held = np.nan_to_num(figures["iops_exceeded"]) + np.nan_to_num(figures["throughput_exceeded"]) > 0
    if held.any() or np.nanmin(figures["burst_balance_percent"], initial=100) <= LOW_PERCENT:
        _add_last_day(world, case, day)


def _add_last_day(world: World, case: Case, day: Points) -> None:
    start, period = case.hour + HOUR - app.LOOK_BACK, app.LOOK_BACK_PERIOD_SECONDS
    for metric in app.LOOK_BACK_METRICS:
        minutes = _read(world, "AWS/EBS", metric.name, case.resource, start, int(app.LOOK_BACK / MINUTE))
        values = minutes.reshape(-1, period // 60)
        known = ~np.isnan(values).all(axis=1)
        merged = np.full(len(values), np.nan)
        merge = np.nansum if metric.stat == "Sum" else np.nanmean
        merged[known] = merge(values[known], axis=1)
        if metric.name == "BurstBalance":
            merged = np.round(merged)
        day.add(case.name, metric.column, start + case.shift, period, merged)


def _add_instance(world: World, case: Case, hour: Points) -> None:
    start = case.hour - app.OVERLAP
    for metric in app.INSTANCE_METRICS:
        values = _read(world, "AWS/EC2", metric.name, case.resource, start, int((HOUR + app.OVERLAP) / MINUTE))
        hour.add(case.name, metric.column, start + case.shift, 60, values)
