"""The demo's AWS world: instances and EBS volumes whose minutes are modelled, or measured where someone feeds figures.

Every minute follows from the seed and the time alone, so any past minute can be asked and gives the same answer. What
an application wants (`LoadModel`) is cut down to what the volume's credits, its caps and its instance allow; the rest
waits in the queue. The strict endpoint in aws_endpoint.py serves this world through the AWS APIs.
"""

import math
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4
DAY_MINUTES = 1440
FOREVER = datetime.max.replace(tzinfo=UTC)
CACHED_VOLUME_DAYS = 4000  # about 75 KB each
SSD_PIECE_KIB, HDD_PIECE_KIB = 256, 1024
NOISE_SIGMAS = 5.0  # noise is clipped there, so that a load has a known peak
GP2_CREDITS = 5_400_000.0
INSTANCE_BURST_SECONDS = 1800.0  # small instances may run at their EBS maximum for 30 minutes a day

Minutes = np.ndarray  # one figure for each minute; NaN where CloudWatch has no point


class InstanceType(NamedTuple):
    """What DescribeInstanceTypes says of a type, as far as memory and EBS go."""

    vcpus: int
    memory_gib: float
    nitro: bool
    base_mbps: int
    max_mbps: int
    base_iops: int
    max_iops: int


INSTANCE_TYPES = {
    "t3.medium": InstanceType(2, 4, True, 347, 2085, 2000, 11800),
    "m4.large": InstanceType(2, 8, False, 450, 450, 3600, 3600),
    "m4.xlarge": InstanceType(4, 16, False, 750, 750, 6000, 6000),
    "m5.large": InstanceType(2, 8, True, 650, 4750, 3600, 18750),
    "m5.xlarge": InstanceType(4, 16, True, 1150, 4750, 6000, 18750),
    "m5.2xlarge": InstanceType(8, 32, True, 2300, 4750, 12000, 18750),
    "m5.4xlarge": InstanceType(16, 64, True, 4750, 4750, 18750, 18750),
    "m6i.large": InstanceType(2, 8, True, 650, 10000, 3600, 40000),
    "m6i.xlarge": InstanceType(4, 16, True, 1250, 10000, 6000, 40000),
    "c5.large": InstanceType(2, 4, True, 650, 4750, 4000, 20000),
    "c5.xlarge": InstanceType(4, 8, True, 1150, 4750, 6000, 20000),
    "c5.2xlarge": InstanceType(8, 16, True, 2300, 4750, 10000, 20000),
    "r5.large": InstanceType(2, 16, True, 650, 4750, 3600, 18750),
    "r5.xlarge": InstanceType(4, 32, True, 1150, 4750, 6000, 18750),
    "r5.2xlarge": InstanceType(8, 64, True, 2300, 4750, 12000, 18750),
}


class Limits(NamedTuple):
    """What a volume can do: rates a second, and the bucket that lets it go beyond its baseline (0: it has none)."""

    base_iops: float
    burst_iops: float
    base_bytes: float
    burst_bytes: float
    credits: float


def volume_limits(volume_type: str, size_gib: int, iops: int | None, throughput_mib_s: int | None) -> Limits:
    """Baseline, burst and bucket of a volume: credits are I/Os for gp2, bytes for st1 and sc1."""
    tib = size_gib / 1024
    match volume_type:
        case "gp2":
            base = min(16_000.0, max(100.0, 3.0 * size_gib))
            throughput = (128.0 if size_gib <= 170 else 250.0) * MIB
            return Limits(base, max(3000.0, base), throughput, throughput, GP2_CREDITS if base < 3000 else 0.0)
        case "gp3":
            throughput = float(throughput_mib_s or 125) * MIB
            return Limits(iops or 3000, iops or 3000, throughput, throughput, 0.0)
        case "io1":
            rate = float(iops or 100)
            throughput = (min(500.0, rate / 4) if rate <= 32_000 else min(1000.0, rate / 64)) * MIB
            return Limits(rate, rate, throughput, throughput, 0.0)
        case "io2":
            rate = float(iops or 100)
            throughput = min(4000.0, 0.256 * rate) * MIB
            return Limits(rate, rate, throughput, throughput, 0.0)
        case "st1":
            return Limits(500, 500, min(500, 40 * tib) * MIB, min(500, 250 * tib) * MIB, tib * TIB)
        case "sc1":
            return Limits(250, 250, min(192, 12 * tib) * MIB, min(250, 80 * tib) * MIB, tib * TIB)
        case "standard":
            return Limits(200, 200, 90 * MIB, 90 * MIB, 0.0)
    raise ValueError(f"volume type {volume_type!r} is unknown: use gp2, gp3, io1, io2, st1, sc1 or standard")


@dataclass(frozen=True)
class Surge:
    """Demand added to a load in [start, end)."""

    start: datetime
    end: datetime
    read_iops: float = 0.0
    write_iops: float = 0.0


@dataclass(frozen=True)
class LoadModel:
    """What the application asks of a volume, before any limit: means, rhythm, noise, surges and spikes."""

    read_iops: float = 20.0
    write_iops: float = 20.0
    read_kib: float = 16.0
    write_kib: float = 16.0
    daily_swing: float = 0.3  # relative amplitude; the peak is at 14:00 UTC
    weekend_factor: float = 0.7
    noise: float = 0.1  # sigma of the logarithm, minute by minute
    random_share: float = 0.0  # of what HDD does: requests that can't be merged, each of which counts as 1 MiB
    duty: float = 1.0  # share of each minute in which the I/O comes: below 1 means micro-bursts
    concurrency: float = 32.0  # requests the application keeps in flight when it is held back
    spike_every_minutes: int = 0
    spike_iops: float = 0.0
    surges: tuple[Surge, ...] = ()

    def demand(self, seed: tuple[int, ...], day: int) -> tuple[Minutes, Minutes]:
        """Read and write IOPS wanted in each minute of the day."""
        minute = np.arange(DAY_MINUTES)
        rhythm = 1 + self.daily_swing * np.cos((minute - 14 * 60) * (2 * math.pi / DAY_MINUTES))
        if (day + 3) % 7 >= 5:  # day 0 of Unix time was a Thursday
            rhythm = rhythm * self.weekend_factor
        random = np.random.Generator(np.random.SFC64((*seed, day)))
        noise = random.standard_normal((2, DAY_MINUTES), dtype=np.float32).clip(-NOISE_SIGMAS, NOISE_SIGMAS)
        read, write = np.array([[self.read_iops], [self.write_iops]]) * rhythm * np.exp(self.noise * noise)
        if self.spike_every_minutes:
            read[(day * DAY_MINUTES + minute) % self.spike_every_minutes == 0] += self.spike_iops
        for surge in self.surges:
            inside = _within(day, surge.start, surge.end)
            read[inside] += surge.read_iops
            write[inside] += surge.write_iops
        return read, write

    def peak(self, day: int) -> tuple[float, float]:
        """Read and write IOPS that no minute of the day exceeds."""
        most = (1 + self.daily_swing) * max(1, self.weekend_factor) * math.exp(self.noise * NOISE_SIGMAS)
        read, write = self.read_iops * most + self.spike_iops, self.write_iops * most
        for surge in self.surges:
            if surge.start.timestamp() < (day + 1) * 86_400 and surge.end.timestamp() > day * 86_400:
                read, write = read + surge.read_iops, write + surge.write_iops
        return read, write


@dataclass(eq=False)
class Instance:
    """An EC2 instance with what it is measured or modelled to use."""

    account: str
    region: str
    instance_id: str
    instance_type: str
    tags: dict[str, str]
    launched_at: datetime
    private_ip: str
    detailed_monitoring: bool
    cpu_percent: float
    memory_used_percent: float
    terminated_at: datetime | None = None
    measured_memory: dict[int, float] = field(default_factory=dict)  # minute → bytes

    @property
    def type(self) -> InstanceType:
        return INSTANCE_TYPES[self.instance_type]

    @property
    def image_id(self) -> str:
        return f"ami-{zlib.crc32(self.region.encode()):017x}"


@dataclass(eq=False)
class Volume:
    """An EBS volume, its attachment and its load."""

    account: str
    region: str
    volume_id: str
    volume_type: str
    size_gib: int
    iops: int | None
    throughput_mib_s: int | None
    instance_id: str | None
    device: str | None
    tags: dict[str, str]
    load: LoadModel
    created_at: datetime
    initial_balance_percent: float
    detached_at: datetime | None = None
    deleted_at: datetime | None = None
    stalls: list[tuple[datetime, datetime]] = field(default_factory=list)
    gaps: list[tuple[datetime, datetime]] = field(default_factory=list)
    measured: dict[int, tuple[float, float]] = field(default_factory=dict)  # minute → read and write bytes

    @property
    def limits(self) -> Limits:
        return volume_limits(self.volume_type, self.size_gib, self.iops, self.throughput_mib_s)

    @property
    def hdd(self) -> bool:
        return self.volume_type in ("st1", "sc1")

    def pieces(self, read_iops: Any, write_iops: Any) -> Any:
        """What EBS counts: large I/O is split, so one operation may be several."""
        piece_kib = HDD_PIECE_KIB if self.hdd else SSD_PIECE_KIB
        return read_iops * math.ceil(self.load.read_kib / piece_kib) + write_iops * math.ceil(
            self.load.write_kib / piece_kib
        )

    def charged_bytes(self, read_iops: Any, write_iops: Any) -> Any:
        """What EBS counts against throughput and, on HDD, takes from the bucket."""
        rate = (read_iops * self.load.read_kib + write_iops * self.load.write_kib) * KIB
        if not self.hdd:
            return rate
        unmerged = self.pieces(read_iops, write_iops) * HDD_PIECE_KIB * KIB
        return rate + self.load.random_share * (unmerged - rate)

    @property
    def latency_seconds(self) -> float:
        return {"st1": 0.008, "sc1": 0.012, "standard": 0.010, "io1": 0.0008, "io2": 0.0003}.get(
            self.volume_type, 0.0009
        )


@dataclass
class Day:
    """The figures of one volume for each minute of one UTC day, and where its bucket stood at the end."""

    read_ops: Minutes
    write_ops: Minutes
    read_bytes: Minutes
    write_bytes: Minutes
    queue: Minutes
    idle_seconds: Minutes
    balance_percent: Minutes
    iops_exceeded: Minutes
    bytes_exceeded: Minutes
    stalled: Minutes
    credits_after: float


@dataclass
class InstanceDay:
    """EBS figures of one instance for each minute of one UTC day."""

    io_balance_percent: Minutes
    byte_balance_percent: Minutes
    iops_exceeded: Minutes
    bytes_exceeded: Minutes
    credits_after: tuple[float, float]


Figures = tuple[list[Day], InstanceDay | None]


def spend(demand: Minutes, base: float, burst: float, capacity: float, start: float) -> tuple[Minutes, Minutes]:
    """The rate a credit bucket allows in each minute, and the credits left after it.

    A minute earns base × 60 and pays for what it delivers, up to burst and never beyond what the bucket holds.
    """
    if not capacity:
        return np.full(demand.shape, burst), np.full(demand.shape, np.nan)
    change = (base - np.minimum(demand, burst)) * 60
    if start >= capacity and change.min() >= 0:
        return np.full(demand.shape, burst), np.full(demand.shape, capacity)
    left = start + np.cumsum(change)
    left -= np.maximum(0, np.maximum.accumulate(left - capacity))  # what is earned on a full bucket is lost
    if left.min() < 0:  # it is full at times and empty at others: no closed form
        steps = accumulate(change.tolist(), lambda have, step: min(capacity, max(0.0, have + step)), initial=start)
        left = np.fromiter(steps, float)[1:]
    before = np.concatenate(([start], left[:-1]))
    return np.minimum(burst, base + before / 60), left


class DayCache:
    """Simulated days, the least recently used dropped first."""

    def __init__(self) -> None:
        self._days: OrderedDict[tuple[int, int], Figures] = OrderedDict()
        self._volume_days = 0

    def get(self, unit: "Unit", day: int) -> Figures | None:
        figures = self._days.get((id(unit), day))
        if figures:
            self._days.move_to_end((id(unit), day))
        return figures

    def put(self, unit: "Unit", day: int, figures: Figures) -> None:
        self._days[id(unit), day] = figures
        self._volume_days += len(figures[0])
        while self._volume_days > CACHED_VOLUME_DAYS and len(self._days) > 2:  # a request may cross midnight
            self._drop(next(iter(self._days)))

    def forget(self, unit: "Unit", since_day: int) -> None:
        for key in [key for key in self._days if key[0] == id(unit) and key[1] >= since_day]:
            self._drop(key)

    def _drop(self, key: tuple[int, int]) -> None:
        self._volume_days -= len(self._days.pop(key)[0])


class Unit:
    """An instance with its volumes (or one volume never attached): what must be simulated together, day by day."""

    def __init__(self, seed: int, instance: Instance | None, cache: DayCache):
        self.seed = seed
        self.instance = instance
        self.volumes: list[Volume] = []
        self.states: dict[int, list[float]] = {}  # day → credits at its start: the volumes', then the instance's two
        self.cache = cache

    def forget(self, since_day: int) -> None:
        """Drops what was computed for a day and all after it: their figures or members have changed."""
        self.cache.forget(self, since_day)
        self.states = {day: state for day, state in self.states.items() if day <= since_day}

    def day(self, day: int) -> Figures:
        """The figures of the day, simulated forwards from the last day whose state is known."""
        if cached := self.cache.get(self, day):
            return cached
        first = min(_day(volume.created_at) for volume in self.volumes) if self.volumes else day
        known = max((d for d in self.states if d <= day), default=min(first, day))
        for each in range(known, day):
            if not self._stays_full(each):
                self._simulate(each)
        figures = self._simulate(day)
        self.cache.put(self, day, figures)
        return figures

    def _start(self, day: int) -> list[float]:
        """Credits at the day's start: the volumes', then the instance's two."""
        return self.states.get(day) or [*self._made_with(), *self._instance_credits()]

    def _made_with(self) -> list[float]:
        return [volume.limits.credits * volume.initial_balance_percent / 100 for volume in self.volumes]

    def _stays_full(self, day: int) -> bool:
        """Whether no bucket can lose anything on the day: all are full, and no demand can exceed a baseline.

        It spares the simulation of quiet weeks, which is most of the work for a large world.
        """
        state = self._start(day)
        iops_sum = bytes_sum = 0.0
        for volume, credits in zip(self.volumes, state, strict=False):
            read, write = volume.load.peak(day)
            iops, rate = volume.pieces(read, write), volume.charged_bytes(read, write)
            limits = volume.limits
            over = iops > limits.base_iops or rate > limits.base_bytes
            if over or credits < limits.credits or any(minute // DAY_MINUTES == day for minute in volume.measured):
                return False
            iops_sum, bytes_sum = iops_sum + iops, bytes_sum + rate
        if self.instance:
            kind = self.instance.type
            over = iops_sum > kind.base_iops or bytes_sum > kind.base_mbps * 125e3
            if over or tuple(state[-2:]) != self._instance_credits():
                return False
        self.states[day + 1] = state
        return True

    def _simulate(self, day: int) -> Figures:
        state = self._start(day)
        nothing = np.ones(DAY_MINUTES)
        days = [self._volume(v, day, credit, nothing) for v, credit in zip(self.volumes, state, strict=False)]
        instance_day = None
        if self.instance:
            instance_day, share = self._limit(self.instance.type, days, state[-2:])
            if share.min() < 1:
                days = [self._volume(v, day, credit, share) for v, credit in zip(self.volumes, state, strict=False)]
            state = [*(d.credits_after for d in days), *instance_day.credits_after]
        else:
            state = [*(d.credits_after for d in days), 0.0, 0.0]
        # A volume that doesn't exist yet starts with its own bucket, whatever day its neighbours began.
        for position, (volume, credits) in enumerate(zip(self.volumes, self._made_with(), strict=True)):
            if _day(volume.created_at) > day:
                state[position] = credits
        self.states[day + 1] = state
        return days, instance_day

    def _instance_credits(self) -> tuple[float, float]:
        if self.instance is None:
            return (0.0, 0.0)
        kind = self.instance.type
        return (
            (kind.max_iops - kind.base_iops) * INSTANCE_BURST_SECONDS,
            (kind.max_mbps - kind.base_mbps) * 125_000 * INSTANCE_BURST_SECONDS,
        )

    def _limit(self, kind: InstanceType, days: list[Day], state: list[float]) -> tuple[InstanceDay, Minutes]:
        """What the instance's own EBS limits leave of its volumes' I/O, as a share for each minute."""
        io_capacity, byte_capacity = self._instance_credits()
        zero = np.zeros(DAY_MINUTES)
        iops = sum((np.nan_to_num(d.read_ops + d.write_ops) / 60 for d in days), zero)
        rate = sum((np.nan_to_num(d.read_bytes + d.write_bytes) / 60 for d in days), zero)
        io_allowed, io_left = spend(iops, kind.base_iops, kind.max_iops, io_capacity, state[0])
        byte_allowed, byte_left = spend(rate, kind.base_mbps * 125e3, kind.max_mbps * 125e3, byte_capacity, state[1])
        share = np.minimum(1, np.minimum(io_allowed / np.maximum(iops, 1e-9), byte_allowed / np.maximum(rate, 1e-9)))
        return InstanceDay(
            io_left / io_capacity * 100 if io_capacity else np.full(DAY_MINUTES, np.nan),
            byte_left / byte_capacity * 100 if byte_capacity else np.full(DAY_MINUTES, np.nan),
            (iops > io_allowed).astype(float),
            (rate > byte_allowed).astype(float),
            (_last(io_left), _last(byte_left)),
        ), share

    def _volume(self, volume: Volume, day: int, credits: float, share: Minutes) -> Day:
        """One volume's day: demand, cut by throughput cap, bucket and instance share; the rest waits."""
        load, limits = volume.load, volume.limits
        attached = self._attached(volume, day)
        read, write, measured = self._wanted(volume, day, attached)
        read_size, write_size = load.read_kib * KIB, load.write_kib * KIB
        iops = volume.pieces(read, write)
        rate = volume.charged_bytes(read, write)
        # The bucket pays for what the caps and the instance let through; stalled I/O passes nothing.
        stalled = _inside(day, volume.stalls)
        through = np.minimum(share, np.minimum(1, limits.burst_bytes / np.maximum(rate, 1e-9)))
        through = np.where(measured, 1, np.where(stalled, 0, through))
        io_credits, byte_credits = (0.0, limits.credits) if volume.hdd else (limits.credits, 0.0)
        # before its creation a volume neither earns nor spends
        exists = _within(day, volume.created_at, FOREVER)
        io_spent = np.where(exists, iops * through, limits.base_iops)
        byte_spent = np.where(exists, rate * through, limits.base_bytes)
        io_allowed, io_left = spend(io_spent, limits.base_iops, limits.burst_iops, io_credits, credits)
        byte_allowed, byte_left = spend(byte_spent, limits.base_bytes, limits.burst_bytes, byte_credits, credits)
        allowed = np.minimum(io_allowed / np.maximum(iops, 1e-9), byte_allowed / np.maximum(rate, 1e-9))
        done = np.where(measured, 1, np.minimum(through, allowed))
        left = byte_left if volume.hdd else io_left
        served = (read + write) * done
        held = np.clip(1 - done, 0, 1)
        in_flight = np.where(held > 1e-9, load.concurrency * held, 0) + served * volume.latency_seconds
        idle = 60 * (1 - load.duty * (1 - np.exp(-served / load.duty))) * (held <= 1e-9)
        missing = ~attached | _inside(day, volume.gaps)

        def sent(figure: Minutes, kind: type = np.float32) -> Minutes:
            return np.where(missing, np.nan, figure).astype(kind)

        return Day(
            read_ops=sent(np.round(read * done * 60)),
            write_ops=sent(np.round(write * done * 60)),
            read_bytes=sent(np.round(read * done * 60 * read_size), np.float64),
            write_bytes=sent(np.round(write * done * 60 * write_size), np.float64),
            queue=sent(in_flight),
            idle_seconds=sent(idle),
            balance_percent=sent(left / limits.credits * 100 if limits.credits else left, np.float64),
            iops_exceeded=sent((iops / load.duty > io_allowed) & (in_flight > 0)),
            bytes_exceeded=sent((rate / load.duty > byte_allowed) & (in_flight > 0)),
            stalled=sent(stalled & (in_flight > 0)),
            credits_after=_last(left),
        )

    def _attached(self, volume: Volume, day: int) -> np.ndarray:
        if volume.instance_id is None:
            return np.zeros(DAY_MINUTES, bool)
        return _within(day, volume.created_at, min(volume.detached_at or FOREVER, volume.deleted_at or FOREVER))

    def _wanted(self, volume: Volume, day: int, attached: np.ndarray) -> tuple[Minutes, Minutes, np.ndarray]:
        """Read and write IOPS wanted, and the minutes in which they were measured instead: those are delivered."""
        load = volume.load
        read, write = load.demand((self.seed, zlib.crc32(volume.volume_id.encode())), day) * attached
        measured = np.zeros(DAY_MINUTES, bool)
        for minute, (read_bytes, write_bytes) in volume.measured.items():
            if minute // DAY_MINUTES == day:
                at = minute % DAY_MINUTES
                measured[at] = True
                read[at], write[at] = read_bytes / (load.read_kib * KIB) / 60, write_bytes / (load.write_kib * KIB) / 60
        return read, write, measured


def _last(credits: Minutes) -> float:
    # rounded, so that a bucket which is full compares as full
    return 0.0 if np.isnan(credits[-1]) else round(float(credits[-1]), 3)


def _minute(at: datetime) -> int:
    return int(at.timestamp() // 60)


def _day(at: datetime) -> int:
    return _minute(at) // DAY_MINUTES


def _within(day: int, start: datetime, end: datetime) -> np.ndarray:
    """Which minutes of the day lie in [start, end)."""
    minutes = np.arange(day * DAY_MINUTES, (day + 1) * DAY_MINUTES) * 60
    return (minutes >= start.timestamp()) & (minutes < end.timestamp())


def _inside(day: int, intervals: list[tuple[datetime, datetime]]) -> np.ndarray:
    hit = np.zeros(DAY_MINUTES, bool)
    for start, end in intervals:
        hit |= _within(day, start, end)
    return hit


EBS_METRICS: dict[str, tuple[str, Callable[[Day, Volume], Minutes]]] = {
    "VolumeReadOps": ("Count", lambda d, v: d.read_ops),
    "VolumeWriteOps": ("Count", lambda d, v: d.write_ops),
    "VolumeReadBytes": ("Bytes", lambda d, v: d.read_bytes),
    "VolumeWriteBytes": ("Bytes", lambda d, v: d.write_bytes),
    # Little's law: requests in flight × seconds = seconds spent by all requests
    "VolumeTotalReadTime": ("Seconds", lambda d, v: 60 * d.queue * _share(d.read_ops, d.write_ops)),
    "VolumeTotalWriteTime": ("Seconds", lambda d, v: 60 * d.queue * _share(d.write_ops, d.read_ops)),
    "VolumeIdleTime": ("Seconds", lambda d, v: d.idle_seconds),
    "VolumeQueueLength": ("Count", lambda d, v: d.queue),
    "BurstBalance": ("Percent", lambda d, v: d.balance_percent),
    "VolumeThroughputPercentage": ("Percent", lambda d, v: np.where(d.iops_exceeded > 0, 99.0, 100.0) + 0 * d.queue),
    "VolumeConsumedReadWriteOps": ("Count", lambda d, v: d.read_ops + d.write_ops),
    "VolumeIOPSExceededCheck": ("None", lambda d, v: d.iops_exceeded),
    "VolumeThroughputExceededCheck": ("None", lambda d, v: d.bytes_exceeded),
    "VolumeStalledIOCheck": ("None", lambda d, v: d.stalled),
}
NITRO_EBS_METRICS = {"VolumeIOPSExceededCheck", "VolumeThroughputExceededCheck", "VolumeStalledIOCheck"}
PROVISIONED_METRICS = {"VolumeThroughputPercentage", "VolumeConsumedReadWriteOps"}

INSTANCE_EBS_SUMS = {
    "EBSReadOps": ("Count", "read_ops"),
    "EBSWriteOps": ("Count", "write_ops"),
    "EBSReadBytes": ("Bytes", "read_bytes"),
    "EBSWriteBytes": ("Bytes", "write_bytes"),
}
INSTANCE_METRICS: dict[str, tuple[str, Callable[[InstanceDay], Minutes]]] = {
    "EBSIOBalance%": ("Percent", lambda d: d.io_balance_percent),
    "EBSByteBalance%": ("Percent", lambda d: d.byte_balance_percent),
    "InstanceEBSIOPSExceededCheck": ("None", lambda d: d.iops_exceeded),
    "InstanceEBSThroughputExceededCheck": ("None", lambda d: d.bytes_exceeded),
}
Dimensions = frozenset[tuple[str, str]]


def _share(mine: Minutes, other: Minutes) -> Minutes:
    return mine / np.maximum(mine + other, 1e-9)


class Metric(NamedTuple):
    """One metric as CloudWatch knows it."""

    namespace: str
    name: str
    dimensions: Dimensions


class World:
    """Accounts, regions, instances and volumes; answers what exists and what each metric was, minute by minute."""

    def __init__(self, seed: int, now: Callable[[], datetime]):
        self.seed = seed
        self.now = now
        self.instances: dict[str, Instance] = {}
        self.volumes: dict[str, Volume] = {}
        self._units: dict[str, Unit] = {}
        self._cache = DayCache()
        self._lock = threading.RLock()

    @property
    def accounts(self) -> set[str]:
        with self._lock:
            owners = {volume.account for volume in self.volumes.values()}
            return owners | {instance.account for instance in self.instances.values()}

    def add_instance(
        self,
        account: str,
        region: str,
        instance_id: str,
        instance_type: str,
        tags: dict[str, str] | None = None,
        launched_at: datetime | None = None,
        *,
        private_ip: str | None = None,
        detailed_monitoring: bool = False,
        cpu_percent: float = 25.0,
        memory_used_percent: float = 55.0,
    ) -> Instance:
        """Adds a running instance; without detailed monitoring its AWS/EC2 metrics come every five minutes."""
        if instance_type not in INSTANCE_TYPES:
            raise ValueError(f"instance type {instance_type!r} is unknown: use one of {', '.join(INSTANCE_TYPES)}")
        number = zlib.crc32(instance_id.encode())
        instance = Instance(
            account, region, instance_id, instance_type, dict(tags or {}), launched_at or self._long_ago(),
            private_ip or f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            detailed_monitoring, cpu_percent, memory_used_percent,
        )  # fmt: skip
        with self._lock:
            self.instances[instance_id] = instance
            self._units[instance_id] = Unit(self.seed, instance, self._cache)
        return instance

    def add_volume(
        self,
        account: str,
        region: str,
        volume_id: str,
        volume_type: str,
        size_gib: int,
        iops: int | None = None,
        throughput_mib_s: int | None = None,
        instance_id: str | None = None,
        device: str | None = None,
        tags: dict[str, str] | None = None,
        load: LoadModel | None = None,
        created_at: datetime | None = None,
        *,
        initial_balance_percent: float = 100.0,
    ) -> Volume:
        """Adds a volume, attached from its creation to the instance if one is named."""
        volume_limits(volume_type, size_gib, iops, throughput_mib_s)
        if instance_id is not None and instance_id not in self.instances:
            raise ValueError(f"volume {volume_id}: instance {instance_id} is not in this world: add it first")
        volume = Volume(
            account, region, volume_id, volume_type, size_gib, iops, throughput_mib_s, instance_id,
            device or (instance_id and "/dev/sdf"), dict(tags or {}), load or LoadModel(),
            created_at or self._long_ago(), initial_balance_percent,
        )  # fmt: skip
        with self._lock:
            self.volumes[volume_id] = volume
            unit = self._units.setdefault(instance_id or volume_id, Unit(self.seed, None, self._cache))
            unit.forget(-1)
            unit.volumes.append(volume)
        return volume

    def _long_ago(self) -> datetime:
        return (self.now() - timedelta(days=15)).replace(hour=0, minute=0, second=0, microsecond=0)

    def feed_volume(self, volume_id: str, at: datetime, read_bytes: float, write_bytes: float) -> None:
        """Sets what was measured in the minute that holds `at`; it takes the model's place there."""
        with self._lock:
            self.volumes[volume_id].measured[_minute(at)] = (read_bytes, write_bytes)
            self._unit_of(self.volumes[volume_id]).forget(_day(at))

    def feed_memory(self, instance_id: str, at: datetime, used_bytes: float) -> None:
        """Sets the memory in use that was measured in the minute that holds `at`."""
        with self._lock:
            self.instances[instance_id].measured_memory[_minute(at)] = used_bytes

    def stall(self, volume_id: str, start: datetime, end: datetime) -> None:
        """The volume completes no I/O in [start, end)."""
        self._change(volume_id, start, lambda volume: volume.stalls.append((start, end)))

    def lose_points(self, volume_id: str, start: datetime, end: datetime) -> None:
        """The volume sends no metrics in [start, end)."""
        self._change(volume_id, start, lambda volume: volume.gaps.append((start, end)))

    def detach(self, volume_id: str, at: datetime) -> None:
        """The volume is available, and silent, from `at` on."""
        self._change(volume_id, at, lambda volume: setattr(volume, "detached_at", at))

    def delete_volume(self, volume_id: str, at: datetime) -> None:
        """The volume is gone from the inventory from `at` on; CloudWatch still knows its past."""
        self._change(volume_id, at, lambda volume: setattr(volume, "deleted_at", at))

    def terminate_instance(self, instance_id: str, at: datetime) -> None:
        """The instance is terminated at `at`; its volumes are detached."""
        self.instances[instance_id].terminated_at = at
        for volume in [volume for volume in self.volumes.values() if volume.instance_id == instance_id]:
            self.detach(volume.volume_id, min(at, volume.detached_at or at))

    def _change(self, volume_id: str, at: datetime, change: Callable[[Volume], None]) -> None:
        with self._lock:
            change(self.volumes[volume_id])
            self._unit_of(self.volumes[volume_id]).forget(_day(at))

    def _unit_of(self, volume: Volume) -> Unit:
        return self._units[volume.instance_id or volume.volume_id]

    def metrics(self, account: str, region: str) -> Iterator[Metric]:
        """Every metric that the account's region has ever sent."""
        for volume in self.volumes.values():
            if (volume.account, volume.region) == (account, region):
                for name in EBS_METRICS:
                    if self._has(volume, name):
                        yield Metric("AWS/EBS", name, frozenset({("VolumeId", volume.volume_id)}))
        for instance in self.instances.values():
            if (instance.account, instance.region) == (account, region):
                yield from self._instance_metrics(instance)

    def _instance_metrics(self, instance: Instance) -> Iterator[Metric]:
        dimensions = frozenset({("InstanceId", instance.instance_id)})
        kind = instance.type
        yield Metric("AWS/EC2", "CPUUtilization", dimensions)
        if kind.nitro:
            for name in [*INSTANCE_EBS_SUMS, *INSTANCE_METRICS]:
                if not name.endswith("Balance%") or kind.max_iops > kind.base_iops:
                    yield Metric("AWS/EC2", name, dimensions)
        agent = dimensions | {("ImageId", instance.image_id), ("InstanceType", instance.instance_type)}
        for each in (dimensions, agent):  # the agent's usual config aggregates by InstanceId as well
            yield Metric("CWAgent", "mem_used_percent", each)
        disk = {("path", "/data"), ("fstype", "xfs")}
        for position, volume in enumerate(self._units[instance.instance_id].volumes):
            if volume.instance_id == instance.instance_id:
                device = ("device", f"nvme{position + 1}n1" if kind.nitro else f"xvd{chr(ord('f') + position)}")
                yield Metric("CWAgent", "disk_used_percent", agent | disk | {device})

    def _has(self, volume: Volume, name: str) -> bool:
        if volume.instance_id is None:
            return False
        if name == "BurstBalance":
            return volume.limits.credits > 0
        if name in PROVISIONED_METRICS:
            return volume.volume_type in ("io1", "io2")
        if name in NITRO_EBS_METRICS:
            return volume.volume_type != "standard" and self.instances[volume.instance_id].type.nitro
        return name in EBS_METRICS

    def read(self, account: str, region: str, metric: Metric, first: int, count: int) -> tuple[str, Minutes] | None:
        """Unit and figures of `count` minutes from Unix minute `first` (NaN: no point); None: no such metric."""
        with self._lock:
            found = self._source(account, region, metric)
            if found is None:
                return None
            unit, of_day = found
            days = range(first // DAY_MINUTES, (first + count - 1) // DAY_MINUTES + 1)
            figures = np.concatenate([of_day(day) for day in days]) if len(days) > 1 else of_day(days[0])
            start = first - days[0] * DAY_MINUTES
            return unit, figures[start : start + count]

    def _source(self, account: str, region: str, metric: Metric) -> tuple[str, Callable[[int], Minutes]] | None:
        dimensions = dict(metric.dimensions)
        if metric.namespace == "AWS/EBS":
            volume = self.volumes.get(dimensions.get("VolumeId", ""))
            if volume is None or (volume.account, volume.region, len(dimensions)) != (account, region, 1):
                return None
            if not self._has(volume, metric.name):
                return None
            unit, figure = EBS_METRICS[metric.name]
            home = self._unit_of(volume)
            row = home.volumes.index(volume)
            return unit, lambda day: figure(home.day(day)[0][row], volume)
        instance = self.instances.get(dimensions.get("InstanceId", ""))
        if instance is None or (instance.account, instance.region) != (account, region):
            return None
        if metric not in set(self._instance_metrics(instance)):
            return None
        return self._instance_source(instance, metric)

    def _instance_source(self, instance: Instance, metric: Metric) -> tuple[str, Callable[[int], Minutes]]:
        home = self._units[instance.instance_id]
        step = 1 if metric.namespace == "CWAgent" or instance.detailed_monitoring else 5
        if metric.name in INSTANCE_EBS_SUMS:
            unit, name = INSTANCE_EBS_SUMS[metric.name]
            whole = self._sums(home, name)
            # Basic monitoring sends one point for five minutes: it holds the sum of the five.
            return unit, lambda day: _alive(instance, day, _every(whole(day), step, np.sum))
        if metric.name in INSTANCE_METRICS:
            unit, figure = INSTANCE_METRICS[metric.name]
            merge = np.min if metric.name.endswith("Balance%") else np.max
            return unit, lambda day: _alive(instance, day, _every(figure(home.day(day)[1]), step, merge))
        if metric.name == "CPUUtilization":
            return "Percent", lambda day: _alive(instance, day, _every(self._cpu(instance, day), step, np.mean))
        if metric.name == "mem_used_percent":
            return "Percent", lambda day: _alive(instance, day, self._memory(instance, day))
        return "Percent", lambda day: _alive(instance, day, self._disk(instance, day))

    def _sums(self, home: Unit, name: str) -> Callable[[int], Minutes]:
        zero = np.zeros(DAY_MINUTES)
        return lambda day: sum((np.nan_to_num(getattr(each, name)) for each in home.day(day)[0]), zero)

    def _cpu(self, instance: Instance, day: int) -> Minutes:
        load = LoadModel(read_iops=instance.cpu_percent, write_iops=0)
        return np.minimum(100, load.demand((self.seed, zlib.crc32(instance.instance_id.encode())), day)[0])

    def _memory(self, instance: Instance, day: int) -> Minutes:
        load = LoadModel(read_iops=instance.memory_used_percent, daily_swing=0.02, weekend_factor=1, noise=0.005)
        used = load.demand((self.seed, zlib.crc32(instance.instance_id.encode()), 1), day)[0]
        for minute, used_bytes in instance.measured_memory.items():
            if minute // DAY_MINUTES == day:
                used[minute % DAY_MINUTES] = used_bytes / (instance.type.memory_gib * GIB) * 100
        return np.minimum(100, used)

    def _disk(self, instance: Instance, day: int) -> Minutes:
        age_days = day - _day(instance.launched_at) + np.arange(DAY_MINUTES) / DAY_MINUTES
        return 40 + 30 * (1 - np.exp(-np.maximum(0, age_days) / 30))


def _every(figures: Minutes, step: int, merge: Callable[..., Minutes]) -> Minutes:
    """One point for `step` minutes, at the first of them."""
    if step == 1:
        return figures
    points = np.full(DAY_MINUTES, np.nan)
    points[::step] = merge(figures.reshape(-1, step), axis=1)
    return points


def _alive(instance: Instance, day: int, figures: Minutes) -> Minutes:
    running = _within(day, instance.launched_at, instance.terminated_at or FOREVER)
    return np.where(running, figures, np.nan)


DEMO_ACCOUNT, DEMO_REGION = "123456789012", "eu-central-1"
BROKER_INSTANCE_ID, ORDERS_INSTANCE_ID = "i-0b1a6f2d4c8e90b11", "i-0a17c3e5d9f20b4a1"
BATCH_INSTANCE_ID = "i-0d14b8e6a2c07f9d3"
BROKER_VOLUME_ID, ORDERS_VOLUME_ID = "vol-0b40ce71d2a9f3851", "vol-0a2de95f1c70b3e64"
RECOVERING_VOLUME_ID, SPIKY_VOLUME_ID = "vol-0d1f4a7c93e2b6058", "vol-0d2b8e05c71f9a346"
QUIET_VOLUME_ID, DETACHED_VOLUME_ID = "vol-0d3c6d19f4e8a2b70", "vol-0d4e7a3b52c9f1806"
EBS_FAULT_LEAD = timedelta(hours=3)  # long enough before now for the bucket to be empty all through the judged hour


def demo_world(faults: set[str], now: Callable[[], datetime], broker_volume_id: str = BROKER_VOLUME_ID) -> World:
    """The demo's inventory: a broker, the Streams application `orders`, and volumes that only look scary."""
    world = World(seed=7, now=now)
    place = (DEMO_ACCOUNT, DEMO_REGION)
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    hour = now().replace(minute=0, second=0, microsecond=0)
    born = today - timedelta(days=30)

    def tags(name: str, application: str, owner: str) -> dict[str, str]:
        return {"Name": name, "application": application, "owner": owner}

    kafka, orders, batch = ("kafka", "team-platform"), ("orders", "team-orders"), ("batch", "team-data")
    world.add_instance(*place, BROKER_INSTANCE_ID, "m5.large", tags("kafka-1", *kafka), born)
    world.add_instance(*place, ORDERS_INSTANCE_ID, "c5.large", tags("orders-1", *orders), born)
    world.add_instance(*place, BATCH_INSTANCE_ID, "m5.large", tags("batch-1", *batch), born)
    # The broker reads its page cache, so the disk sees hardly a read; 128 KiB is the kernel's read-ahead.
    quiet = LoadModel(read_iops=0.4, write_iops=12, read_kib=128, write_kib=64, daily_swing=0.4, noise=0.3)
    world.add_volume(*place, broker_volume_id, "gp3", 500, 3000, 125, BROKER_INSTANCE_ID, "/dev/sdf",
                     tags("kafka-1-log", *kafka), quiet, born)  # fmt: skip
    healthy = LoadModel(read_iops=15, write_iops=20, daily_swing=0.3)
    surge = Surge(hour - EBS_FAULT_LEAD, FOREVER, read_iops=500, write_iops=450)
    starving = LoadModel(read_iops=15, write_iops=20, daily_swing=0.3, surges=(surge,))
    world.add_volume(*place, ORDERS_VOLUME_ID, "gp2", 10, None, None, ORDERS_INSTANCE_ID, "/dev/sdf",
                     tags("orders-1-state", *orders), starving if "ebs" in faults else healthy, born)  # fmt: skip
    _add_decoys(world, place, tags("batch-1", *batch), hour, born)
    return world


def _add_decoys(world: World, place: tuple[str, str], tags: dict[str, str], hour: datetime, born: datetime) -> None:
    """Volumes that must not alarm: a low bucket that refills, one-minute spikes, no bucket at all, nobody attached."""
    spent = Surge(hour - timedelta(minutes=100), hour - timedelta(minutes=35), read_iops=900, write_iops=600)
    loads = [
        (RECOVERING_VOLUME_ID, "gp2", "/dev/sdg", LoadModel(read_iops=20, write_iops=20, surges=(spent,))),
        (SPIKY_VOLUME_ID, "gp2", "/dev/sdh", LoadModel(spike_every_minutes=30, spike_iops=2400)),
        (QUIET_VOLUME_ID, "gp3", "/dev/sdi", LoadModel(read_iops=5, write_iops=10)),
        (DETACHED_VOLUME_ID, "gp2", "/dev/sdj", LoadModel()),
    ]
    for volume_id, volume_type, device, load in loads:
        world.add_volume(*place, volume_id, volume_type, 100, None, None, BATCH_INSTANCE_ID, device, tags, load, born)
    world.detach(DETACHED_VOLUME_ID, hour - timedelta(days=3))
