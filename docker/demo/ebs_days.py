"""Simulated days of an instance with its volumes, which share the limits of the instance.

Every minute depends only on seed and time, so repeated requests for past minutes have the same result. The demand of an
application is limited by volume and instance (ebs_physics). Measured values replace simulated ones.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from demo.ebs_load import DAY_MINUTES, within
from demo.ebs_physics import (
    KIB,
    InstanceType,
    Limits,
    Minutes,
    Served,
    charged_bytes,
    idle_seconds,
    in_flight,
    instance_share,
    percent,
    pieces,
    seconds_per_request,
    serve,
)
from demo.ebs_resources import FOREVER, Instance, Volume

CACHED_VOLUME_DAYS = 4000  # about 75 KB each


@dataclass
class Day:
    """Metrics of a volume for each minute of a UTC day, and its credits at the end."""

    wanted_reads: Minutes
    """Demand of the application per second."""
    wanted_writes: Minutes
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
    """EBS metrics of an instance for each minute of a UTC day."""

    io_balance_percent: Minutes
    byte_balance_percent: Minutes
    iops_exceeded: Minutes
    bytes_exceeded: Minutes
    credits_after: tuple[float, float]


Figures = tuple[list[Day], InstanceDay | None]


class DayCache:
    """LRU cache of simulated days."""

    def __init__(self) -> None:
        self._days: OrderedDict[tuple[int, int], Figures] = OrderedDict()
        self._volume_days = 0

    def get(self, unit: Unit, day: int) -> Figures | None:
        metrics = self._days.get((id(unit), day))
        if metrics:
            self._days.move_to_end((id(unit), day))
        return metrics

    def put(self, unit: Unit, day: int, metrics: Figures) -> None:
        self._days[id(unit), day] = metrics
        self._volume_days += len(metrics[0])
        while self._volume_days > CACHED_VOLUME_DAYS and len(self._days) > 2:  # a request may cross midnight
            self._drop(next(iter(self._days)))

    def forget(self, unit: Unit, since_day: int) -> None:
        for key in [key for key in self._days if key[0] == id(unit) and key[1] >= since_day]:
            self._drop(key)

    def _drop(self, key: tuple[int, int]) -> None:
        self._volume_days -= len(self._days.pop(key)[0])


class Unit:
    """An instance with its volumes (or one detached volume), simulated day by day."""

    def __init__(self, seed: int, instance: Instance | None, cache: DayCache):
        self.seed = seed
        self.instance = instance
        self.volumes: list[Volume] = []
        self.states: dict[int, list[float]] = {}  # day → credits at its start: the volumes', then the instance's two
        self.cache = cache

    def forget(self, since_day: int) -> None:
        """Discards the results of a day and all later days after a change of measurements or volumes."""
        self.cache.forget(self, since_day)
        self.states = {day: state for day, state in self.states.items() if day <= since_day}

    def day(self, day: int) -> Figures:
        """The metrics of a day, simulated from the last day with a known state."""
        if cached := self.cache.get(self, day):
            return cached
        first = min(day_of(volume.created_at) for volume in self.volumes) if self.volumes else day
        known = max((d for d in self.states if d <= day), default=min(first, day))
        for each in range(known, day):
            if not self._stays_full(each):
                self._simulate(each)
        metrics = self._simulate(day)
        self.cache.put(self, day, metrics)
        return metrics

    def _start(self, day: int) -> list[float]:
        """Credits at the day's start: the volumes', then the instance's two."""
        return self.states.get(day) or [*self._made_with(), *self._instance_credits()]

    def _made_with(self) -> list[float]:
        return [volume.limits.credits * volume.initial_balance_percent / 100 for volume in self.volumes]

    def _stays_full(self, day: int) -> bool:
        """Whether no bucket can lose credits on the day: all are full, and no demand can exceed a baseline.

        It spares the simulation of quiet weeks, which is most of the work for a large world.
        """
        state = self._start(day)
        if any(volume.modifications for volume in self.volumes):
            return False
        iops_sum = bytes_sum = 0.0
        for volume, credits in zip(self.volumes, state, strict=False):
            read, write = volume.load.peak(day)
            limits, sizes = volume.limits, volume.load.sizes
            iops, rate = pieces(limits, sizes, read, write), charged_bytes(limits, sizes, read, write)
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
        # A volume that does not exist yet starts with its own bucket, on whatever day the others began.
        for position, (volume, credits) in enumerate(zip(self.volumes, self._made_with(), strict=True)):
            if day_of(volume.created_at) > day:
                state[position] = credits
        self.states[day + 1] = state
        return days, instance_day

    def _instance_credits(self) -> tuple[float, float]:
        if self.instance is None:
            return (0.0, 0.0)
        kind = self.instance.type
        return kind.io_credits, kind.byte_credits

    def _limit(self, kind: InstanceType, days: list[Day], state: list[float]) -> tuple[InstanceDay, Minutes]:
        """Share of the volumes' I/O that the EBS limits of the instance allow, for each minute."""
        zero = np.zeros(DAY_MINUTES)
        iops = sum((np.nan_to_num(d.read_ops + d.write_ops) / 60 for d in days), zero)
        rate = sum((np.nan_to_num(d.read_bytes + d.write_bytes) / 60 for d in days), zero)
        served = instance_share(kind, iops, rate, (state[0], state[1]))
        return InstanceDay(
            percent(served.io_credits, kind.io_credits),
            percent(served.byte_credits, kind.byte_credits),
            served.iops_exceeded.astype(float),
            served.bytes_exceeded.astype(float),
            (_last(served.io_credits), _last(served.byte_credits)),
        ), served.share

    def _volume(self, volume: Volume, day: int, credits: float, share: Minutes) -> Day:
        """The day of a volume: its demand, limited to what was served; the rest waits in the queue."""
        load = volume.load
        attached = self._attached(volume, day)
        read, write, measured = self._wanted(volume, day, attached)
        stalled = _inside(day, volume.stalls)
        seconds_each = seconds_per_request(volume.volume_type) * _slowness(day, volume.slow)
        # An application has at most `concurrency` requests in flight.
        loop = load.concurrency / seconds_each / np.maximum(read + write, 1e-9)
        through = np.where(measured, 1, np.where(stalled, 0, np.minimum(share, np.minimum(1, loop))))
        through = np.where(within(day, volume.created_at, FOREVER), through, np.nan)
        served, balance_percent = _serve(volume, day, (read, write), credits, through)
        done = np.where(measured, 1, served.share)
        waiting = in_flight(read + write, done, seconds_each, load.concurrency)
        missing = ~attached | _inside(day, volume.gaps)

        def sent(metric: Minutes, kind: type = np.float32) -> Minutes:
            return np.where(missing, np.nan, metric).astype(kind)

        reads, writes = np.round(read * done * 60), np.round(write * done * 60)
        return Day(
            wanted_reads=np.where(attached, read, 0),
            wanted_writes=np.where(attached, write, 0),
            read_ops=sent(reads),
            write_ops=sent(writes),
            read_bytes=sent(np.round(read * done * 60 * load.read_kib * KIB), np.float64),
            write_bytes=sent(np.round(write * done * 60 * load.write_kib * KIB), np.float64),
            queue=sent(waiting),
            idle_seconds=sent(idle_seconds((read + write) * done, done, load.duty)),
            balance_percent=sent(balance_percent, np.float64),
            iops_exceeded=sent(served.iops_exceeded & (waiting > 0)),
            bytes_exceeded=sent(served.bytes_exceeded & (waiting > 0)),
            stalled=sent(stalled & (waiting > 0)),
            credits_after=_last(served.credits),
        )

    def _attached(self, volume: Volume, day: int) -> np.ndarray:
        if volume.instance_id is None:
            return np.zeros(DAY_MINUTES, bool)
        return within(day, volume.created_at, min(volume.detached_at or FOREVER, volume.deleted_at or FOREVER))

    def _wanted(self, volume: Volume, day: int, attached: np.ndarray) -> tuple[Minutes, Minutes, np.ndarray]:
        """Demand of read and write IOPS, and a mask of measured minutes, which are served without limits."""
        load = volume.load
        read, write = load.demand((self.seed, zlib.crc32(volume.volume_id.encode())), day) * attached
        measured = np.zeros(DAY_MINUTES, bool)
        for minute, (read_bytes, write_bytes) in volume.measured.items():
            if minute // DAY_MINUTES == day:
                at = minute % DAY_MINUTES
                measured[at] = True
                read[at], write[at] = read_bytes / (load.read_kib * KIB) / 60, write_bytes / (load.write_kib * KIB) / 60
        return read, write, measured


def _serve(
    volume: Volume, day: int, wanted: tuple[Minutes, Minutes], credits: float, through: Minutes
) -> tuple[Served, Minutes]:
    """What the volume serves of a day's reads and writes per second, and its burst balance in percent.

    A bucket that is kept by a modification keeps its credits.
    """
    parts, balances, sizes = [], [], volume.load.sizes
    for minutes, limits in _limits_of(volume, day):
        reads, writes = (each[minutes] for each in wanted)
        iops, rate = pieces(limits, sizes, reads, writes), charged_bytes(limits, sizes, reads, writes)
        served = serve(limits, iops, rate, min(credits, limits.credits), through[minutes], volume.load.duty)
        credits = _last(served.credits)
        parts.append(served)
        balances.append(percent(served.credits, limits.credits))
    return Served(*map(np.concatenate, zip(*parts, strict=True))), np.concatenate(balances)


def _limits_of(volume: Volume, day: int) -> list[tuple[slice, Limits]]:
    """The limits of a day: one, or another one from each minute on in which a modification is ready."""
    first = day * DAY_MINUTES
    ready = [minute_of(each.ready_at) - first for each in volume.modifications]
    starts = [0, *(minute for minute in ready if 0 < minute < DAY_MINUTES), DAY_MINUTES]
    return [
        (slice(start, end), volume.limits_at(datetime.fromtimestamp((first + start) * 60, UTC)))
        for start, end in pairwise(starts)
        if start < end
    ]


def _last(credits: Minutes) -> float:
    # rounded, so that a bucket which is full compares as full
    return 0.0 if np.isnan(credits[-1]) else round(float(credits[-1]), 3)


def minute_of(at: datetime) -> int:
    return int(at.timestamp() // 60)


def day_of(at: datetime) -> int:
    return minute_of(at) // DAY_MINUTES


def _inside(day: int, intervals: list[tuple[datetime, datetime]]) -> np.ndarray:
    hit = np.zeros(DAY_MINUTES, bool)
    for start, end in intervals:
        hit |= within(day, start, end)
    return hit


def _slowness(day: int, intervals: list[tuple[datetime, datetime, float]]) -> Minutes:
    """Latency factor of each minute."""
    times = np.ones(DAY_MINUTES)
    for start, end, factor in intervals:
        times[within(day, start, end)] = factor
    return times
