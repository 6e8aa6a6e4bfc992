"""How EBS serves I/O, written only from AWS's documentation, and independent of the product that is tested with it.

Sources: EBS User Guide, "Amazon EBS volume types" (limits by type and size, I/O credits of gp2, throughput credits of
st1 and sc1), "I/O characteristics and monitoring" (what counts as one operation); EC2 User Guide, "Amazon EBS-optimized
instances" (baseline, maximum, half an hour of burst); AWS Knowledge Center, "Why isn't my SC1 or ST1 volume achieving
the rated throughput" (small or random I/O takes a whole MiB).

Everything is computed minute by minute from a demand; I/O that is not served waits in the queue.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4

Minutes = np.ndarray  # one figure for each minute

SSD_PIECE_KIB, HDD_PIECE_KIB = 256, 1024
"""The largest I/O that counts as one operation; larger ones are split."""
GP2_CREDITS = 5_400_000.0
INSTANCE_BURST_SECONDS = 1800.0
"""Small instances run at their EBS maximum for 30 minutes at least once in 24 hours."""
SECONDS_PER_REQUEST = {"st1": 0.008, "sc1": 0.012, "standard": 0.010, "io1": 0.0008, "io2": 0.0003}
"""Latency of an idle volume: AWS documents single-digit milliseconds for SSD, and less than one for io2."""
USUAL_SECONDS_PER_REQUEST = 0.0009
HALF_FULL = 0.05
"""Share of throttled demand at which half of the application's requests wait."""


class InstanceType(NamedTuple):
    """Memory and EBS limits of an instance type, as in DescribeInstanceTypes."""

    vcpus: int
    memory_gib: float
    nitro: bool
    base_mbps: int
    max_mbps: int
    base_iops: int
    max_iops: int
    base_gbps: float | None = None
    """Network baseline; None: AWS only documents a word such as "Moderate"."""
    peak_gbps: float | None = None

    @property
    def io_credits(self) -> float:
        """Capacity of its bucket of operations above the baseline."""
        return (self.max_iops - self.base_iops) * INSTANCE_BURST_SECONDS

    @property
    def byte_credits(self) -> float:
        """Capacity of its bucket of bytes above the baseline."""
        return (self.max_mbps - self.base_mbps) * 125_000 * INSTANCE_BURST_SECONDS


INSTANCE_TYPES = {
    "t3.small": InstanceType(2, 2, True, 174, 2085, 1000, 11800, 0.128, 5),
    "t3.medium": InstanceType(2, 4, True, 347, 2085, 2000, 11800, 0.256, 5),
    "t3.large": InstanceType(2, 8, True, 695, 2780, 4000, 15700, 0.512, 5),
    "t4g.medium": InstanceType(2, 4, True, 347, 2085, 2000, 11800, 0.256, 5),
    "t4g.large": InstanceType(2, 8, True, 695, 2780, 4000, 15700, 0.512, 5),
    "m4.large": InstanceType(2, 8, False, 450, 450, 3600, 3600),
    "m4.xlarge": InstanceType(4, 16, False, 750, 750, 6000, 6000),
    "m5.large": InstanceType(2, 8, True, 650, 4750, 3600, 18750, 0.75, 10),
    "m5.xlarge": InstanceType(4, 16, True, 1150, 4750, 6000, 18750, 1.25, 10),
    "m5.2xlarge": InstanceType(8, 32, True, 2300, 4750, 12000, 18750, 2.5, 10),
    "m5.4xlarge": InstanceType(16, 64, True, 4750, 4750, 18750, 18750, 5, 10),
    "m6i.large": InstanceType(2, 8, True, 650, 10000, 3600, 40000, 0.781, 12.5),
    "m6i.xlarge": InstanceType(4, 16, True, 1250, 10000, 6000, 40000, 1.562, 12.5),
    "m6g.large": InstanceType(2, 8, True, 630, 4750, 3600, 20000, 0.75, 10),
    "m6g.xlarge": InstanceType(4, 16, True, 1188, 4750, 6000, 20000, 1.25, 10),
    "m7g.large": InstanceType(2, 8, True, 630, 10000, 3600, 40000, 0.937, 12.5),
    "m7g.xlarge": InstanceType(4, 16, True, 1250, 10000, 6000, 40000, 1.876, 12.5),
    "c5.large": InstanceType(2, 4, True, 650, 4750, 4000, 20000, 0.75, 10),
    "c5.xlarge": InstanceType(4, 8, True, 1150, 4750, 6000, 20000, 1.25, 10),
    "c5.2xlarge": InstanceType(8, 16, True, 2300, 4750, 10000, 20000, 2.5, 10),
    "r5.large": InstanceType(2, 16, True, 650, 4750, 3600, 18750, 0.75, 10),
    "r5.xlarge": InstanceType(4, 32, True, 1150, 4750, 6000, 18750, 1.25, 10),
    "r5.2xlarge": InstanceType(8, 64, True, 2300, 4750, 12000, 18750, 2.5, 10),
    "r7g.xlarge": InstanceType(4, 32, True, 1250, 10000, 6000, 40000, 1.876, 12.5),
}


class Limits(NamedTuple):
    """Limits of a volume: rates per second, and the credit bucket for bursts above the baseline (0: none)."""

    base_iops: float
    burst_iops: float
    base_bytes: float
    burst_bytes: float
    credits: float
    """I/Os for gp2, bytes for st1 and sc1."""
    is_hdd: bool = False


def volume_limits(volume_type: str, size_gib: int, iops: int | None, throughput_mib_s: int | None) -> Limits:
    """Baseline, burst, and bucket of a volume."""
    limits = {"gp2": _gp2, "gp3": _gp3, "io1": _io1, "io2": _io2, "st1": _st1, "sc1": _sc1, "standard": _standard}
    if volume_type not in limits:
        raise ValueError(f"volume type {volume_type!r} is unknown: use gp2, gp3, io1, io2, st1, sc1 or standard")
    return limits[volume_type](size_gib, iops, throughput_mib_s)


def _gp2(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    """3 IOPS a GiB, from 100 to 16,000; 3,000 while there are credits. 250 MiB/s from 334 GiB on (from 171 GiB on with
    credits), 128 MiB/s below. At the baseline no operation carries more than 256 KiB."""
    base = min(max(3.0 * size_gib, 100.0), 16_000.0)
    burst_mib_s = 250.0 if size_gib > 170 else 128.0
    base_mib_s = min(burst_mib_s, base * SSD_PIECE_KIB / 1024)
    return Limits(base, max(base, 3000.0), base_mib_s * MIB, burst_mib_s * MIB, GP2_CREDITS if base < 3000 else 0.0)


def _gp3(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    """3,000 IOPS and 125 MiB/s are included, more are bought; no burst."""
    return _flat(iops or 3000, mib_s or 125)


def _io1(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    """256 KiB an operation up to 500 MiB/s; above 32,000 IOPS 16 KiB an operation, up to 1,000 MiB/s at 64,000."""
    rate = iops or 100
    return _flat(rate, min(rate * 256 / 1024, 500) if rate <= 32_000 else min(rate * 16 / 1024, 1000))


def _io2(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    """0.256 MiB/s for each provisioned IOPS, up to 4,000 MiB/s."""
    return _flat(iops or 100, min((iops or 100) * 0.256, 4000))


def _st1(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    return _hdd(size_gib, 500, base=(40, 500), burst=(250, 500))


def _sc1(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    return _hdd(size_gib, 250, base=(12, 192), burst=(80, 250))


def _standard(size_gib: int, iops: int | None, mib_s: int | None) -> Limits:
    """Magnetic: about 100 IOPS, bursts of hundreds, 40 to 90 MiB/s. AWS guarantees nothing."""
    return _flat(200, 90)


def _flat(iops: float, mib_s: float) -> Limits:
    return Limits(float(iops), float(iops), float(mib_s) * MIB, float(mib_s) * MIB, 0.0)


def _hdd(size_gib: int, iops: float, base: tuple[float, float], burst: tuple[float, float]) -> Limits:
    """MiB/s per TiB, and the maximum; each TiB of size adds a TiB to the bucket."""
    tib = size_gib / 1024
    base_mib_s, burst_mib_s = (min(per_tib * tib, most) for per_tib, most in (base, burst))
    # If the baseline reaches the burst, no credits are ever spent.
    return Limits(iops, iops, base_mib_s * MIB, burst_mib_s * MIB, tib * TIB if base_mib_s < burst_mib_s else 0.0, True)


def seconds_per_request(volume_type: str) -> float:
    """Latency of an idle volume in seconds."""
    return SECONDS_PER_REQUEST.get(volume_type, USUAL_SECONDS_PER_REQUEST)


class Sizes(NamedTuple):
    """Sizes of an application's requests, and the share that cannot be merged."""

    read_kib: float
    write_kib: float
    random_share: float = 0.0
    """Share of requests that count as 1 MiB each on HDD."""


def pieces(limits: Limits, sizes: Sizes, reads: Any, writes: Any) -> Any:
    """Operations as EBS counts them: large I/O is split, so one request may be several."""
    piece_kib = HDD_PIECE_KIB if limits.is_hdd else SSD_PIECE_KIB
    return reads * math.ceil(sizes.read_kib / piece_kib) + writes * math.ceil(sizes.write_kib / piece_kib)


def charged_bytes(limits: Limits, sizes: Sizes, reads: Any, writes: Any) -> Any:
    """What EBS counts against throughput and, on HDD, takes from the bucket."""
    rate = (reads * sizes.read_kib + writes * sizes.write_kib) * KIB
    if not limits.is_hdd:
        return rate
    unmerged = pieces(limits, sizes, reads, writes) * HDD_PIECE_KIB * KIB
    return rate + sizes.random_share * (unmerged - rate)


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


class Served(NamedTuple):
    """The served part of a volume's demand."""

    share: Minutes
    """Of the wanted load."""
    credits: Minutes
    """Credits in its bucket; NaN: the volume has none."""
    iops_exceeded: Minutes
    bytes_exceeded: Minutes


def serve(limits: Limits, iops: Minutes, rate: Minutes, credits: float, through: Minutes, duty: float = 1.0) -> Served:
    """A volume's minutes.

    Args:
        iops: operations wanted a second, as `pieces` counts them.
        rate: bytes wanted a second, as `charged_bytes` counts them.
        credits: in the bucket before the first minute.
        through: the share of it that comes through whatever else is in the way; NaN: no minute of the volume's life.
        duty: the share of a minute in which its requests come; limits bind in each second of it.
    """
    exists = ~np.isnan(through)
    open_share = np.minimum(np.nan_to_num(through), limits.burst_bytes / np.maximum(rate, limits.burst_bytes))
    io_spent = np.where(exists, iops * open_share, limits.base_iops)
    byte_spent = np.where(exists, rate * open_share, limits.base_bytes)
    io_capacity, byte_capacity = (0.0, limits.credits) if limits.is_hdd else (limits.credits, 0.0)
    io_allowed, io_left = spend(io_spent, limits.base_iops, limits.burst_iops, io_capacity, credits)
    if limits.is_hdd:
        byte_allowed, left = spend(byte_spent, limits.base_bytes, limits.burst_bytes, byte_capacity, credits)
    else:
        byte_allowed, left = np.full(rate.shape, limits.burst_bytes), io_left
    allowed = np.minimum(io_allowed / np.maximum(iops, 1e-9), byte_allowed / np.maximum(rate, 1e-9))
    return Served(
        np.minimum(open_share, allowed), left, iops / duty > io_allowed + 1e-6, rate / duty > byte_allowed + 1e-6
    )


def in_flight(wanted: Minutes, share: Minutes, seconds_each: Minutes | float, concurrency: float) -> Minutes:
    """Mean queue length: by Little's law without throttling; under throttling, it approaches all requests in flight."""
    served = wanted * share
    held = np.clip(1 - share, 0, 1)
    waiting = np.where(held > 1e-9, concurrency * (1 + HALF_FULL) * held / (held + HALF_FULL), 0)
    return np.minimum(np.maximum(concurrency, served * seconds_each), waiting + served * seconds_each)


def idle_seconds(served: Minutes, share: Minutes, duty: float) -> Minutes:
    """Seconds of each minute without a request: none while requests wait."""
    return 60 * (1 - duty * (1 - np.exp(-served / duty))) * (share >= 1 - 1e-9)


def instance_share(kind: InstanceType, iops: Minutes, rate: Minutes, credits: tuple[float, float]) -> InstanceServed:
    """The part of the volumes' I/O that the EBS limits of the instance allow."""
    io_allowed, io_left = spend(iops, kind.base_iops, kind.max_iops, kind.io_credits, credits[0])
    byte_allowed, byte_left = spend(rate, kind.base_mbps * 125e3, kind.max_mbps * 125e3, kind.byte_credits, credits[1])
    return InstanceServed(
        np.minimum(1, np.minimum(io_allowed / np.maximum(iops, 1e-9), byte_allowed / np.maximum(rate, 1e-9))),
        io_left,
        byte_left,
        iops > io_allowed,
        rate > byte_allowed,
    )


class InstanceServed(NamedTuple):
    """The I/O that an instance served."""

    share: Minutes
    io_credits: Minutes
    byte_credits: Minutes
    iops_exceeded: Minutes
    bytes_exceeded: Minutes


def percent(credits: Minutes, capacity: float) -> Minutes:
    """A balance in percent as in CloudWatch; NaN without a bucket."""
    return credits / capacity * 100 if capacity else np.full(credits.shape, np.nan)
