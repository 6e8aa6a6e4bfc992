"""The I/O demand of an application on a volume, minute by minute, before any limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from demo.ebs_physics import Minutes, Sizes

DAY_MINUTES = 1440
NOISE_SIGMAS = 5.0  # noise is clipped there, so that a load has a known peak


@dataclass(frozen=True)
class Surge:
    """Demand added to a load in [start, end)."""

    start: datetime
    end: datetime
    read_iops: float = 0.0
    write_iops: float = 0.0


@dataclass(frozen=True)
class LoadModel:
    """The I/O demand before any limit: means, daily rhythm, noise, surges, and spikes."""

    read_iops: float = 20.0
    write_iops: float = 20.0
    read_kib: float = 16.0
    write_kib: float = 16.0
    daily_swing: float = 0.3  # relative amplitude
    peak_minute: int = 14 * 60  # of the day, UTC
    weekend_factor: float = 0.7
    noise: float = 0.1  # sigma of the logarithm, minute by minute
    random_share: float = 0.0  # share of requests that cannot be merged; on HDD, each counts as 1 MiB
    duty: float = 1.0  # share of each minute in which the I/O comes: below 1 means micro-bursts
    concurrency: float = 32.0  # requests in flight while the volume is throttled
    spike_every_minutes: int = 0
    spike_iops: float = 0.0
    surges: tuple[Surge, ...] = ()

    def demand(self, seed: tuple[int, ...], day: int) -> tuple[Minutes, Minutes]:
        """Demand of read and write IOPS in each minute of the day."""
        minute = np.arange(DAY_MINUTES)
        rhythm = 1 + self.daily_swing * np.cos((minute - self.peak_minute) * (2 * math.pi / DAY_MINUTES))
        if (day + 3) % 7 >= 5:  # day 0 of Unix time was a Thursday
            rhythm = rhythm * self.weekend_factor
        random = np.random.Generator(np.random.SFC64((*seed, day)))
        noise = random.standard_normal((2, DAY_MINUTES), dtype=np.float32).clip(-NOISE_SIGMAS, NOISE_SIGMAS)
        read, write = np.array([[self.read_iops], [self.write_iops]]) * rhythm * np.exp(self.noise * noise)
        if self.spike_every_minutes:
            read[(day * DAY_MINUTES + minute) % self.spike_every_minutes == 0] += self.spike_iops
        for surge in self.surges:
            inside = within(day, surge.start, surge.end)
            read[inside] += surge.read_iops
            write[inside] += surge.write_iops
        return read, write

    def peak(self, day: int) -> tuple[float, float]:
        """Upper bound of read and write IOPS of all minutes of the day."""
        most = (1 + self.daily_swing) * max(1, self.weekend_factor) * math.exp(self.noise * NOISE_SIGMAS)
        read, write = self.read_iops * most + self.spike_iops, self.write_iops * most
        for surge in self.surges:
            if surge.start.timestamp() < (day + 1) * 86_400 and surge.end.timestamp() > day * 86_400:
                read, write = read + surge.read_iops, write + surge.write_iops
        return read, write

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.read_kib, self.write_kib, self.random_share)


def within(day: int, start: datetime, end: datetime) -> np.ndarray:
    """Mask of the minutes of the day in [start, end)."""
    minutes = np.arange(day * DAY_MINUTES, (day + 1) * DAY_MINUTES) * 60
    return (minutes >= start.timestamp()) & (minutes < end.timestamp())
