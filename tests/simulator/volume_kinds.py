"""Fleets of EBS volumes: days in minutes by the demo's model (demo.ebs_physics), with faults and decoys."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from demo.ebs_load import LoadModel, Surge
from demo.ebs_physics import KIB, volume_limits
from demo.ebs_resources import Volume
from demo.world import World
from streamwarden.base.hours import HOUR, start_of_hour

from tests.simulator import volume_changes, volume_loads
from tests.simulator.scenario import START, Scenario, Truth

ACCOUNT, REGION, OTHER_REGION = "123456789012", "eu-central-1", "eu-south-2"
"""The other region has no list prices."""
NITRO_TYPES = ("m5.xlarge", "m5.2xlarge", "r5.xlarge", "c5.2xlarge", "m6g.xlarge", "r7g.xlarge")
SHARE_OF_KINDS = 0.7
"""Share of instances with a fault or a decoy."""
MINUTE = timedelta(minutes=1)
JUST_NOW = 5 * MINUTE
"""An end less than so long before the end of the hour cannot be distinguished from a pause."""
NIGHTS, NEW_NIGHTS = 5, 3


@dataclass
class Fleet:
    """A simulated world, the truth about it, and the hours to evaluate."""

    scenario: Scenario
    world: World
    truth: Truth = field(default_factory=Truth)
    scary: dict[str, list[datetime]] = field(default_factory=dict)
    """Hours of decoys that must be evaluated."""
    causes: dict[str, list[datetime]] = field(default_factory=dict)
    """Start times of loads that are planned to throttle a volume."""
    kinds: dict[str, str] = field(default_factory=dict)
    turn: int = 0


def attachment_at(volume: Volume, at: datetime) -> Volume:
    """The volume at the instance that it has at a time, or had before; before any, at its first one."""
    return next((each for each in volume.attachments if each.created_at <= at), volume.attachments[-1])


def meant(scenario: Scenario) -> Fleet:
    """The planned fleet of a scenario."""
    fleet = Fleet(scenario, World(scenario.seed, lambda: scenario.end))
    chance = random.Random(f"{scenario.seed} volumes")  # noqa: S311 a simulation
    number = 0
    while number < scenario.volumes:
        number += Builder(fleet, chance, number).add_instance()
    return fleet


class Builder:
    """Adds instances with their volumes: most of them healthy, some faults, some decoys."""

    def __init__(self, fleet: Fleet, chance: random.Random, number: int) -> None:
        self.fleet, self.chance, self.number = fleet, chance, number
        self.instance_id = f"i-{number:05d}"
        self.region = REGION if chance.random() < 0.75 else OTHER_REGION

    def add_instance(self) -> int:
        room = self.fleet.scenario.volumes - self.number
        kinds = [*self.fleet.scenario.some(list(FAULTS)), *DECOYS]
        if self.chance.random() < SHARE_OF_KINDS and room >= 3:
            # Kinds in rotation, so that every seed has each of them.
            kind = kinds[self.fleet.turn % len(kinds)]
            self.fleet.turn += 1
        else:
            kind = "healthy"
        nitro_type = self.chance.choice(
            ["m5.xlarge", "m5.2xlarge", "r5.xlarge", "c5.2xlarge", "m6g.xlarge", "r7g.xlarge"]
        )
        instance_type = self.chance.choice(INSTANCE_OF.get(kind, (nitro_type,)))
        if kind in ("healthy", "bucket empties") and self.chance.random() < 0.15:
            instance_type = "m4.xlarge"  # has no status checks of volumes
        self.fleet.world.add_instance(
            ACCOUNT, self.region, self.instance_id, instance_type, {"Name": self.instance_id}, START,
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

    def peer(self, instance_type: str) -> str:
        """Adds a second instance without volumes; returns its id."""
        instance_id = f"{self.instance_id}-peer"
        self.fleet.world.add_instance(ACCOUNT, self.region, instance_id, instance_type, {"Name": instance_id}, START)
        return instance_id

    def volume_id(self, position: int) -> str:
        return f"vol-{self.number + position:05d}"

    def at(self, earliest_day: float, before_end: timedelta) -> datetime:
        """A random minute from which an event of this length still ends within the scenario."""
        span = self.fleet.scenario.end - before_end - (START + timedelta(days=earliest_day))
        return START + timedelta(days=earliest_day) + MINUTE * int(self.chance.random() * max(span / MINUTE, 1))

    def add(self, position: int, volume_type: str, size_gib: int, load: LoadModel, **more: Any) -> Volume:
        return self.fleet.world.add_volume(
            ACCOUNT, self.region, self.volume_id(position), volume_type, size_gib, instance_id=self.instance_id,
            device=f"/dev/sd{'fghij'[position]}", load=load, **{"created_at": START} | more,
        )  # fmt: skip

    def calm(self, baseline_iops: float, **more: Any) -> LoadModel:
        """A load well below the baseline, with daily and weekly cycles, and deploys of some minutes."""
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
            "peak_minute": self.chance.randrange(1440),
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
        """RocksDB on a small gp2 volume: a lasting load above the baseline."""
        size = self.chance.choice([10, 20, 33, 50, 100, 150, 250, 400])
        limits = volume_limits("gp2", size, None, None)
        hours = 1.2 * 30 ** self.chance.random()  # 1.2 h to 36 h
        excess = min(limits.credits / (hours * 3600), 3000 - limits.base_iops)
        calm = self.calm(limits.base_iops, noise=0.1, surges=())
        start = self.at(1, timedelta(hours=40))
        # Additional load on top of a calm load with a daily cycle.
        wanted = limits.base_iops + excess - (calm.read_iops + calm.write_iops)
        reads = self.chance.uniform(0.2, 0.8)
        surge = Surge(start, self.fleet.scenario.end, wanted * reads, wanted * (1 - reads))
        calm = replace(calm, daily_swing=0.1, weekend_factor=1.0, surges=(surge,))
        # Requests of 512 KiB count as two operations: half as many suffice, if throughput allows.
        if (limits.base_iops + excess) * 256 * KIB < 0.8 * limits.burst_bytes and self.chance.random() < 0.4:
            halved = replace(surge, read_iops=surge.read_iops / 2, write_iops=surge.write_iops / 2)
            calm = replace(calm, read_iops=calm.read_iops / 2, write_iops=calm.write_iops / 2, read_kib=512,
                           write_kib=512, surges=(halved,))  # fmt: skip
        self.add(0, "gp2", size, calm)
        self.fleet.causes[self.volume_id(0)] = [start]

    def bytes_run_out(self) -> None:
        """A scan on st1 or sc1, whose credits are bytes, or small random I/O, which costs as much."""
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
        """A nightly batch that does not end one night."""
        limits = volume_limits("gp2", 100, None, None)
        wanted = limits.base_iops + limits.credits * self.chance.uniform(0.3, 0.45) / 7200
        begins = timedelta(hours=self.chance.randint(0, 4), minutes=self.chance.randint(0, 50))
        nights = [START + timedelta(days=day) + begins for day in range(self.fleet.scenario.days)]
        ends = [*(at + 2 * HOUR for at in nights[:-1]), self.fleet.scenario.end]
        surges = tuple(Surge(at, end, wanted * 0.7, wanted * 0.3) for at, end in zip(nights, ends, strict=True))
        self.add(0, "gp2", 100, LoadModel(30, 30, noise=0.1, surges=surges))
        self._know(nights)
        # The fault begins when the batch should have ended.
        self.fleet.causes[self.volume_id(0)] = [nights[-1] + 2 * HOUR]

    def at_provisioned_limit(self) -> None:
        """A load above the limits of gp3, io1, or io2: without a bucket there is no warning."""
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
        """A third of its IOPS on average, but all within twelve seconds of each minute."""
        start = self.at(1, timedelta(hours=12))
        surge = Surge(start, start + MINUTE * self.chance.randint(90, 300), 500, 500)
        self.add(0, "gp3", 300, LoadModel(20, 20, noise=0.05, duty=0.2, surges=(surge,)))
        self.fleet.causes[self.volume_id(0)] = [start]

    def wears_down(self) -> None:
        """Above its baseline by day and below it by night: burst balance is lower at the end of each day."""
        size = self.chance.choice([50, 100, 200])
        limits = volume_limits("gp2", size, None, None)
        mean = limits.base_iops * self.chance.uniform(1.1, 1.25)
        start = START + timedelta(days=self.chance.randint(1, 2))
        surge = Surge(start, self.fleet.scenario.end, mean * 0.25, mean * 0.25)
        load = LoadModel(mean * 0.25, mean * 0.25, noise=0.05, daily_swing=0.5, weekend_factor=1.0, surges=(surge,))
        self.add(0, "gp2", size, load)
        self.fleet.causes[self.volume_id(0)] = [start]

    def instance_binds(self) -> None:
        """Each volume is below its limit, the instance is not: the baseline of m5.large is 3,600 IOPS."""
        start = self.at(1, timedelta(hours=12))
        surge = Surge(start, start + MINUTE * self.chance.randint(150, 400), 1250, 1250)
        self.add(0, "gp3", 500, LoadModel(50, 50, noise=0.1, surges=(surge,)))
        for position in (1, 2):
            self.add(position, "gp3", 500, LoadModel(800, 800, noise=0.1, daily_swing=0.1, weekend_factor=1))
        self.fleet.causes |= {self.volume_id(p): [start] for p in range(3)}
        self.fleet.kinds |= {self.volume_id(p): "instance's limit" for p in range(3)}

    def stalls(self) -> None:
        """Stalled I/O."""
        volume = self.add(0, "gp3", 200, self.calm(3000))
        start = self.at(1, timedelta(hours=5))
        self.fleet.world.stall(volume.volume_id, start, start + MINUTE * self.chance.randint(30, 90))
        self.fleet.causes[volume.volume_id] = [start]

    def clamped_for_days(self) -> None:
        """Throttled for so long that the previous day does not show its demand either."""
        kind = self.chance.choice(["gp3", "io1", "io2"])
        iops = {"gp3": None, "io1": 800, "io2": 1000}[kind]
        wanted = volume_limits(kind, 300, iops, None).base_iops * self.chance.uniform(1.2, 2.0)
        start = self.at(1, timedelta(hours=44))
        surge = Surge(start, self.fleet.scenario.end, wanted * 0.5, wanted * 0.5)
        concurrency = self.chance.choice([8, 32, 64])
        load = LoadModel(20, 20, noise=0.1, daily_swing=0.1, concurrency=concurrency, surges=(surge,))
        self.add(0, kind, 300, load, iops=iops)
        self.fleet.causes[self.volume_id(0)] = [start]
        self.scare(start + 28 * HOUR, start + 32 * HOUR)

    def dry_within_the_hour(self) -> None:
        """A sudden load that drains a full bucket in about 35 minutes."""
        size = self.chance.choice([10, 33, 50, 100])
        start = self.at(1, timedelta(hours=12))
        wanted = self.chance.uniform(2500, 2850)
        surge = Surge(start, start + MINUTE * self.chance.randint(150, 360), wanted * 0.5, wanted * 0.5)
        self.add(0, "gp2", size, LoadModel(15, 15, noise=0.02, weekend_factor=1.0, surges=(surge,)))
        self.fleet.causes[self.volume_id(0)] = [start]

    def stalls_for_minutes(self) -> None:
        """Stalled I/O for two to fourteen minutes: an incident, however short."""
        volume = self.add(0, "gp3", 200, self.calm(3000))
        start = self.at(1, timedelta(hours=5))
        self.fleet.world.stall(volume.volume_id, start, start + MINUTE * self.chance.randint(2, 14))
        self.fleet.causes[volume.volume_id] = [start]

    def slow_without_a_check(self) -> None:
        """An impaired volume: every request takes tens of milliseconds, and no limit is near."""
        load = LoadModel(300, 300, noise=0.1, concurrency=self.chance.choice([8, 16, 32]))
        volume = self.add(0, self.chance.choice(["gp2", "gp3"]), 500, load)
        start = self.at(2, timedelta(hours=8))
        end = start + MINUTE * self.chance.randint(60, 240)
        self.fleet.world.slow(volume.volume_id, start, end, self.chance.uniform(30, 100))
        self.fleet.causes[volume.volume_id] = [start]
        # Its own history is the baseline.
        self.scare(start - 24 * HOUR, start - HOUR)

    def hydrates(self) -> None:
        """Created from a snapshot: blocks are loaded from S3 on first read."""
        start = self.at(1, timedelta(hours=10))
        load = LoadModel(350, 100, noise=0.1, concurrency=32)
        volume = self.add(0, "gp3", 500, load, created_at=start)
        end = start + MINUTE * self.chance.randint(120, 360)
        self.fleet.world.slow(volume.volume_id, start, end, self.chance.uniform(25, 60))
        self.fleet.causes[volume.volume_id] = [start]

    def limit_before_nitro(self) -> None:
        """A gp3 volume at its limit, on an instance without status checks of volumes."""
        start = self.at(1, timedelta(hours=12))
        wanted = 3000 * self.chance.uniform(1.15, 1.5)
        surge = Surge(start, start + MINUTE * self.chance.randint(120, 400), wanted * 0.5, wanted * 0.5)
        self.add(0, "gp3", 300, LoadModel(20, 20, 8, 8, noise=0.1, surges=(surge,)))
        self.fleet.causes[self.volume_id(0)] = [start]

    def instance_binds_before_nitro(self) -> None:
        """m4.large has 3,600 IOPS and no metric of their use."""
        start = self.at(1, timedelta(hours=12))
        surge = Surge(start, start + MINUTE * self.chance.randint(120, 400), 1100, 1100)
        self.add(0, "gp3", 500, LoadModel(50, 50, 8, 8, noise=0.1, surges=(surge,)))
        self.add(1, "gp3", 500, LoadModel(1000, 1000, 8, 8, noise=0.1, daily_swing=0.1, weekend_factor=1))
        self.fleet.causes |= {self.volume_id(p): [start] for p in range(2)}
        self.fleet.kinds |= {self.volume_id(p): "instance's limit before Nitro" for p in range(2)}

    # Decoys

    def instance_bursts(self) -> None:
        """15 minutes above the instance's baseline, within its burst."""
        start = self.at(1, timedelta(hours=12))
        surge = Surge(start, start + MINUTE * self.chance.randint(12, 17), 220, 220)
        for position in range(3):
            load = LoadModel(10, 10, 256, 256, noise=0.05, surges=(surge,))
            self.add(position, "gp3", 500, load)
        self.scare(start, start)

    def always_as_slow(self) -> None:
        """Four times as slow as others, for the whole history."""
        volume = self.add(0, "gp3", 300, LoadModel(100, 100, noise=0.1))
        self.fleet.world.slow(volume.volume_id, START, self.fleet.scenario.end, 4.5)
        first = self.at(2, timedelta(hours=6))
        self.scare(first - 24 * HOUR, first)

    def one_stalled_minute(self) -> None:
        """Throttled for too short a time to matter."""
        volume = self.add(0, "gp3", 200, self.calm(3000))
        start = self.at(1, timedelta(hours=5))
        self.fleet.world.stall(volume.volume_id, start, start + MINUTE)
        self.scare(start, start)

    def scare(self, first: datetime, last: datetime) -> None:
        hours = int((start_of_hour(last) - start_of_hour(first)) / HOUR) + 2
        scary = self.fleet.scary.setdefault(self.volume_id(0), [])
        scary += [start_of_hour(first) + n * HOUR for n in range(hours)]

    def recovers(self) -> None:
        """A load of under an hour lowers burst balance, which refills."""
        size = self.chance.choice([50, 100, 200])
        limits = volume_limits("gp2", size, None, None)
        start = self.at(1, timedelta(hours=12))
        minutes = self.chance.randint(25, 55)
        wanted = min(2600, limits.base_iops + limits.credits * self.chance.uniform(0.5, 0.85) / (minutes * 60))
        calm = self.calm(limits.base_iops)
        surge = Surge(start, start + MINUTE * minutes, wanted / 2, wanted / 2)
        self.add(0, "gp2", size, replace(calm, read_kib=16, write_kib=16, surges=(surge,)))
        # The end is not predictable, but it is visible some minutes later.
        self.fleet.truth.unclear.append((self.volume_id(0), start, start + MINUTE * minutes - HOUR + JUST_NOW))
        self.scare(start, start + 2 * HOUR)

    def nightly(self) -> None:
        """A nightly batch of two hours at a varying time, which uses half of the bucket."""
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
        """Evaluates the last nights. On the first of them the batch is new to the detector."""
        evaluated_nights = nights[1:][-NIGHTS:]
        for sample_fleet in evaluated_nights:
            self.scare(sample_fleet, sample_fleet + 4 * HOUR)
        # Earlier nights, without history for the detector, are not evaluated.
        for sample_fleet in nights[: nights.index(evaluated_nights[0]) + NEW_NIGHTS]:
            self.fleet.truth.unclear.append((self.volume_id(0), sample_fleet, sample_fleet + 2 * HOUR))

    def spikes(self) -> None:
        """Far above its limit for one minute in thirty."""
        self.add(0, "gp2", 100, LoadModel(20, 20, spike_every_minutes=30, spike_iops=4000))
        first = self.at(1, timedelta(hours=6))
        self.scare(first, first + 2 * HOUR)

    def short_limit(self) -> None:
        """At its limit for some minutes only."""
        start = self.at(1, timedelta(hours=6))
        surge = Surge(start, start + MINUTE * self.chance.randint(3, 8), 2500, 2500)
        self.add(0, "gp3", 100, LoadModel(50, 50, surges=(surge,)))
        self.scare(start, start)

    def near_limit(self) -> None:
        """Busy all day, below its limits."""
        self.add(0, "gp3", 500, LoadModel(1100, 1100, daily_swing=0.05, weekend_factor=1.0, noise=0.02))
        first = self.at(1, timedelta(hours=6))
        self.scare(first, first + 2 * HOUR)

    def no_bucket(self) -> None:
        """gp2 beyond 1,000 GiB: it has no BurstBalance."""
        self.add(0, "gp2", 2000, LoadModel(1000, 1000, noise=0.1))
        first = self.at(1, timedelta(hours=6))
        self.scare(first, first + 2 * HOUR)

    def detached(self) -> None:
        """Detached during the scenario."""
        volume = self.add(0, "gp2", 50, self.calm(150))
        at = self.at(1, timedelta(hours=12))
        self.fleet.world.detach(volume.volume_id, at)
        self.scare(at, at + 2 * HOUR)

    def loses_points(self) -> None:
        """CloudWatch has no data points for some minutes, or for all."""
        volume = self.add(0, "gp2", 100, self.calm(300))
        at = self.at(1, timedelta(hours=12))
        self.fleet.world.lose_points(volume.volume_id, at, at + MINUTE * self.chance.choice([7, 25, 50, 130]))
        self.scare(at, at + 2 * HOUR)


FAULTS = {
    "bucket empties": Builder.bucket_empties,
    "bucket empties fast": Builder.bucket_empties,
    "bytes run out": Builder.bytes_run_out,
    "nightly batch overruns": Builder.batch_overruns,
    "provisioned limit": Builder.at_provisioned_limit,
    "bucket empties slowly": Builder.bucket_empties,
    "instance's limit": Builder.instance_binds,
    "stalled": Builder.stalls,
    "micro-bursts": Builder.micro_bursts,
    "micro-bursts before Nitro": Builder.micro_bursts,
    "clamped for days": Builder.clamped_for_days,
    "bucket dry within the hour": Builder.dry_within_the_hour,
    "stalled for minutes": Builder.stalls_for_minutes,
    "slow without a check": Builder.slow_without_a_check,
    "hydrating": Builder.hydrates,
    "provisioned limit before Nitro": Builder.limit_before_nitro,
    "instance's limit before Nitro": Builder.instance_binds_before_nitro,
    "wears down": Builder.wears_down,
    **volume_loads.FAULTS,
    **volume_changes.FAULTS,
}
DECOYS = {
    "low bucket that refills": Builder.recovers,
    "nightly batch": Builder.nightly,
    "one-minute spikes": Builder.spikes,
    "short time at a limit": Builder.short_limit,
    "near its limit": Builder.near_limit,
    "gp2 without bucket": Builder.no_bucket,
    "detached": Builder.detached,
    "missing points": Builder.loses_points,
    "instance bursts": Builder.instance_bursts,
    "always as slow": Builder.always_as_slow,
    "one stalled minute": Builder.one_stalled_minute,
    **volume_loads.DECOYS,
    **volume_changes.DECOYS,
}
INSTANCE_OF = {
    "instance's limit": ("m5.large", "m6g.large"),
    "instance bursts": ("m5.large",),
    "micro-bursts before Nitro": ("m4.xlarge",),
    "provisioned limit before Nitro": ("m4.xlarge",),
    "instance's limit before Nitro": ("m4.large",),
    **volume_changes.INSTANCE_OF,
}
