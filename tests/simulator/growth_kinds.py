"""Processes whose memory grows until it is exhausted, and decoys: caches that fill up, daily cycles, recent starts.

Memory is heap (live data and garbage), RocksDB, threads, buffers, classes, and native memory that no metric exposes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from streamwarden.base.hours import HOUR

from tests.simulator import fleets
from tests.simulator.clusters import GIB, MIB, drift
from tests.simulator.scenario import EVALUATED

DAYS = 8
NOW = DAYS * 24
"""Index of the evaluated hour in each array of hours."""
END = 0.85
SOON, LATER = (8, 55), (160, 500)
"""Hours until memory is exhausted: the detector must fire, and must not."""


@dataclass
class Process:
    """A process: bytes of its memory areas by hour."""

    name: str
    kind: str
    chance: np.random.Generator
    limit: float
    """Memory of its host or container."""
    heap_max: float
    live: np.ndarray
    """Live heap after collections."""
    garbage: np.ndarray
    """Garbage in the old generation that is not collected yet."""
    touched: np.ndarray
    """Bytes of the heap that were ever used, which are resident."""
    rocksdb: np.ndarray
    cache_bytes: float
    """Size to which RocksDB's block cache fills."""
    direct: np.ndarray
    classes: np.ndarray
    threads: np.ndarray
    native: np.ndarray
    started: datetime
    index_blocks: np.ndarray
    """Index and filter blocks of RocksDB's tables, which are not in the block cache."""
    reports_resident_memory: bool = True
    has_node: bool = False
    page_cache: float = 0.3
    jvms: int = 1
    """Number of JVMs on its host."""
    answers: bool = True

    @property
    def resident(self) -> np.ndarray:
        parts = (
            self.touched,
            self.rocksdb,
            self.index_blocks,
            self.direct,
            self.classes,
            self.threads * 0.1 * MIB,
            self.native,
        )
        return np.asarray(sum(parts))

    @property
    def after_gc(self) -> np.ndarray:
        """Heap after GC as the app computes it: the whole old generation if less than half of it is live."""
        old, kept = self.live + self.garbage, self.live
        return np.asarray(np.where(kept < old / 2, old, kept))


Fleet = fleets.Fleet[Process]
Make = fleets.Make[Process]


def a_process(number: int, kind: str, chance: np.random.Generator) -> Process:
    """A process with sufficient memory for weeks."""
    hours = NOW + 1
    limit = float(chance.choice([4, 8, 16, 32])) * GIB
    heap_max = limit * chance.uniform(0.3, 0.5)
    day = 1 + chance.uniform(0.0, 0.12) * np.sin(2 * np.pi * (np.arange(hours) + chance.integers(0, 24)) / 24)
    live = heap_max * chance.uniform(0.2, 0.5) * day * (1 + drift(chance, hours, 0.03))
    cache = limit * chance.uniform(0.05, 0.12)
    return Process(
        f"grows{number:04d}", kind, chance, limit, heap_max, live,
        garbage=live * chance.uniform(0.1, 0.6) * chance.uniform(0, 1, hours),
        touched=np.full(hours, heap_max * chance.uniform(0.7, 1)),
        rocksdb=cache * (0.97 + 0.02 * chance.random(hours)),
        cache_bytes=cache,
        direct=np.full(hours, chance.uniform(10, 200) * MIB),
        classes=np.full(hours, chance.uniform(80, 200) * MIB),
        threads=np.round(chance.uniform(40, 150) + chance.normal(0, 2, hours)),
        native=limit * chance.uniform(0.03, 0.08) * day * (1 + drift(chance, hours, 0.03)),
        started=EVALUATED - timedelta(days=float(chance.uniform(12, 60))),
        index_blocks=np.full(hours, cache * chance.uniform(0.01, 0.1)),
    )  # fmt: skip


def ramp(process: Process, hours: tuple[int, int] = SOON) -> np.ndarray:
    """Bytes leaked by hour: memory reaches END in so many hours; the leak is as old as the history, or younger."""
    left = process.chance.uniform(*hours)
    begun = int(process.chance.integers(0, NOW - 84))
    process.started = min(process.started, EVALUATED - (NOW - begun + 24) * HOUR)
    free = END * process.limit - process.resident[NOW]
    age = np.clip(np.arange(NOW + 1) - begun, 0, None)
    return np.asarray(free / (NOW - begun + left) * age)


# Faults


def native_leak(fleet: Fleet, process: Process) -> None:
    """Allocator arenas, unclosed iterators."""
    process.touched[:] = process.heap_max
    process.native += ramp(process)
    fleet.fault(process)


def native_leak_on_a_machine(fleet: Fleet, process: Process) -> None:
    """The agent exposes no resident memory, but the host has node exporter and no other JVM."""
    process.reports_resident_memory, process.has_node = False, True
    native_leak(fleet, process)


def heap_leak(fleet: Fleet, process: Process) -> None:
    left, begun = process.chance.uniform(*SOON), int(process.chance.integers(0, NOW - 84))
    process.touched[:] = process.heap_max
    process.live[:] = process.heap_max * process.chance.uniform(0.15, 0.3) * (1 + drift(process.chance, NOW + 1, 0.02))
    slope = (END * process.heap_max - process.live[NOW]) / (NOW - begun + left)
    process.live += slope * np.clip(np.arange(NOW + 1) - begun, 0, None)
    process.garbage = process.live * 0.2 * process.chance.random(NOW + 1)
    fleet.fault(process)


def threads_leak(fleet: Fleet, process: Process) -> None:
    """Each thread takes a stack and other native memory."""
    process.touched[:] = process.heap_max
    grown = ramp(process)
    process.threads += np.round(grown / (4 * MIB))
    process.native += grown - np.round(grown / (4 * MIB)) * 0.1 * MIB
    fleet.fault(process)


def direct_leak(fleet: Fleet, process: Process) -> None:
    process.touched[:] = process.heap_max
    process.direct += ramp(process)
    fleet.fault(process)


def index_blocks_grow(fleet: Fleet, process: Process) -> None:
    """Each new table brings index and filter blocks, which no cache bounds (RocksDB's default)."""
    process.touched[:] = process.heap_max
    process.index_blocks += ramp(process)
    fleet.fault(process)


# Decoys


def index_blocks_grow_slowly(fleet: Fleet, process: Process) -> None:
    """The store's data would fill the memory in weeks only."""
    process.touched[:] = process.heap_max
    process.index_blocks += ramp(process, LATER)


def arenas_settle(fleet: Fleet, process: Process) -> None:
    """glibc gives each busy thread an arena of 64 MiB, one after the other, up to eight per core."""
    process.touched[:] = process.heap_max
    tau, age = process.chance.uniform(20, 60), process.chance.uniform(60, 190)
    room = process.chance.uniform(0.5, 0.9) * (END * process.limit - process.resident[NOW])
    cores = max(2, int(process.limit / (4 * GIB)))
    arenas = min(int(room / (64 * MIB)), 8 * cores)
    for made in process.chance.exponential(tau, arenas):
        process.native += 64 * MIB * process.chance.uniform(0.3, 1) * (np.arange(NOW + 1) >= NOW - age + made)


def heap_given_back(fleet: Fleet, process: Process) -> None:
    """By day the heap grows; by night a periodic collection returns the pages to the system (JEP 346)."""
    hour = (np.arange(NOW + 1) + process.chance.integers(0, 24)) % 24
    least, most = process.chance.uniform(0.2, 0.4), process.chance.uniform(0.7, 1)
    process.touched = process.heap_max * (least + (most - least) * np.clip(hour / process.chance.uniform(12, 20), 0, 1))


def warms_up(fleet: Fleet, process: Process) -> None:
    """Started hours or a day ago: memory rises to its normal level."""
    starts(process, process.chance.uniform(0.5, 40))


def warmed_up(fleet: Fleet, process: Process) -> None:
    """The same, started two or three days ago."""
    starts(process, process.chance.uniform(52, 80))


def starts(process: Process, hours_ago: float) -> None:
    process.started = EVALUATED + HOUR - hours_ago * HOUR
    age = np.clip(np.arange(NOW + 1) - (NOW - hours_ago), 0, None)
    grown = 1 - np.exp(-age / process.chance.uniform(1, 5))
    for part in (process.touched, process.rocksdb, process.native, process.live, process.garbage):
        part *= grown


def caches_fill(fleet: Fleet, process: Process) -> None:
    """RocksDB's block cache fills for days, up to its configured size."""
    process.cache_bytes = process.limit * process.chance.uniform(0.25, 0.35)
    begun = int(process.chance.integers(0, 72))
    process.started = EVALUATED - (NOW - begun) * HOUR
    full = process.chance.uniform(60, 250)
    process.rocksdb = process.cache_bytes * (np.clip(np.arange(NOW + 1) - begun, 0, None) / full).clip(0.01, 0.99)


def heap_is_touched(fleet: Fleet, process: Process) -> None:
    """A large heap whose use rises day by day; it is bounded by -Xmx."""
    process.heap_max = process.limit * 0.58
    rate = process.chance.uniform(0.4, 1.2)
    process.touched = process.heap_max * (0.4 + 0.6 * rate * np.arange(NOW + 1) / NOW).clip(0, 1)


def breathes_by_day(fleet: Fleet, process: Process) -> None:
    swing = process.chance.uniform(0.05, 0.12) * process.limit
    hours = np.arange(NOW + 1) + process.chance.integers(0, 24)
    process.native += swing * (1 + np.sin(2 * np.pi * hours / 24))


def breathes_by_week(fleet: Fleet, process: Process) -> None:
    """More sessions on each weekday than on the previous one, none at weekends."""
    hours = (np.arange(NOW + 1) + process.chance.integers(0, 168)) % 168
    process.native += process.limit * process.chance.uniform(0.1, 0.2) * np.where(hours < 120, hours / 120, 0)


def stepped_up(fleet: Fleet, process: Process) -> None:
    """A rebalance assigned half of the tasks of a dead instance to it."""
    at = NOW - int(process.chance.integers(0, 70))
    process.native[at:] += process.chance.uniform(0.08, 0.2) * process.limit


def old_garbage(fleet: Fleet, process: Process) -> None:
    """The old generation was not collected for days: it is mostly garbage."""
    process.live[:] = process.heap_max * process.chance.uniform(0.03, 0.08)
    begun = int(process.chance.integers(0, NOW - 84))
    top = process.heap_max * process.chance.uniform(0.5, 0.78)
    process.garbage = top * np.clip((np.arange(NOW + 1) - begun) / (NOW - begun), 0.02, 1)


def page_cache_fills(fleet: Fleet, process: Process) -> None:
    """The host reads files: free memory falls, available memory does not."""
    process.reports_resident_memory, process.has_node, process.page_cache = False, True, 0.6


def leaks_slowly(fleet: Fleet, process: Process) -> None:
    """Memory is exhausted in weeks only."""
    process.touched[:] = process.heap_max
    process.native += ramp(process, LATER)


def nearly_settled(fleet: Fleet, process: Process) -> None:
    """Pools whose growth slows down."""
    tau = process.chance.uniform(25, 45)
    process.native += 0.2 * process.limit * (1 - np.exp(-np.arange(NOW + 1) / tau))


def settles(fleet: Fleet, process: Process) -> None:
    """Pools that have grown for days and still do; their final size is well below the limit."""
    tau, age = process.chance.uniform(20, 60), process.chance.uniform(60, 190)
    process.touched[:] = process.heap_max
    needed = process.chance.uniform(0.5, 0.9) * (END * process.limit - process.resident[NOW])
    process.native += needed * (1 - np.exp(-np.clip(np.arange(NOW + 1) - NOW + age, 0, None) / tau))


def shares_its_machine(fleet: Fleet, process: Process) -> None:
    """Two JVMs on one host: the growing one cannot be identified."""
    process.reports_resident_memory, process.has_node, process.jvms = False, True, 2
    process.native += ramp(process)


def is_silent(fleet: Fleet, process: Process) -> None:
    process.answers = False


def healthy(fleet: Fleet, process: Process) -> None:
    """A healthy process with its daily load."""


FAULTS: tuple[Make, ...] = (
    native_leak,
    native_leak_on_a_machine,
    heap_leak,
    threads_leak,
    direct_leak,
    index_blocks_grow,
)
DECOYS: tuple[Make, ...] = (
    warms_up,
    warmed_up,
    caches_fill,
    heap_is_touched,
    breathes_by_day,
    breathes_by_week,
    stepped_up,
    old_garbage,
    page_cache_fills,
    leaks_slowly,
    nearly_settled,
    settles,
    index_blocks_grow_slowly,
    arenas_settle,
    heap_given_back,
    shares_its_machine,
    is_silent,
    healthy,
)
