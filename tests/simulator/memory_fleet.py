"""Processes of the simulated fleet: heaps, state stores, and how their memory grows on a host."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from demo.ebs_physics import INSTANCE_TYPES
from streamwarden.base.hours import HOUR

from tests.simulator.scenario import START, Scenario, Truth

MIB, GIB = 2**20, 2**30


CLUSTER, ACCOUNT, REGION = "shop", "123456789012", "eu-central-1"

OS_BYTES = 0.35 * GIB


HEAP_GROWS, CACHES_FILL = 18 * HOUR, 8 * HOUR
"""Time constants of exponential growth: 63 % is reached after one of them."""

SEGMENTS = {"key_value": 1, "window": 3, "session": 3}


KEPT_HOURS, CONTROL_HOURS, SAMPLES = 6, 4, 2


READ_AFTER, READ_EVERY = timedelta(minutes=1), timedelta(seconds=5)
"""Delay of a run's first JMX read after the end of its hour, and time between two reads."""

SEEN_BEFORE = READ_AFTER + (SAMPLES - 1) * READ_EVERY
"""A fault that begins by the last read of a run is visible to the run of the previous hour, which may fire."""


class Store(NamedTuple):
    """The configuration of a state store."""

    name: str
    kind: str
    partitions: int
    cache_bytes: float
    """Block cache of one RocksDB instance, or of all stores together if it is shared."""
    shared: bool = False
    first_task: int = 0
    data_bytes: float = math.inf
    """Bytes that one RocksDB instance can cache, at the start."""
    data_per_hour: float = 0.0
    """Growth of these bytes per hour."""
    index_bytes: float = 0.0
    """Index and filter blocks of one instance's tables: RocksDB opens all tables, and keeps these beside the cache."""

    @property
    def instances(self) -> int:
        return self.partitions * SEGMENTS[self.kind]

    def data(self, hours: float) -> float:
        """Bytes in the files of one instance so many hours after the start; unlimited data exceeds any cache."""
        grown = self.data_bytes + self.data_per_hour * hours if self.data_per_hour else self.data_bytes
        return min(grown, 3 * self.cache_bytes)

    def cached(self, hours: float) -> float:
        """Bytes in its block caches by then."""
        return min(self.cache_bytes, self.data(hours)) * self.instances


@dataclass(frozen=True)
class Shape:
    """The configuration of a process, with its live heap and stores."""

    xmx: float
    live: float
    stores: tuple[Store, ...] = ()
    write_buffer: float = 16 * MIB
    write_buffers: int = 3
    buffers_in_cache: bool = False
    non_heap: float = 140 * MIB
    threads: int = 60
    direct: float = 32 * MIB
    buffers_used: float = 0.9
    """Share of its write buffers that are full at the same time."""

    @property
    def caches(self) -> float:
        return self.caches_at(math.inf)

    def caches_at(self, hours: float) -> float:
        """Bytes in its caches, with the data of so many hours after the start."""
        own = sum(s.cached(hours) for s in self.stores if not s.shared)
        capacity = max((s.cache_bytes for s in self.stores if s.shared), default=0.0)
        data = sum(s.data(hours) * s.instances for s in self.stores if s.shared)
        return own + (capacity if self.buffers_in_cache else min(capacity, data))

    @property
    def buffers(self) -> float:
        instances = sum(s.instances for s in self.stores)
        return 0.0 if self.buffers_in_cache else instances * self.write_buffer * self.write_buffers

    @property
    def index_blocks(self) -> float:
        return sum(s.index_bytes * s.instances for s in self.stores)

    @property
    def rest(self) -> float:
        return self.non_heap + self.threads * MIB + self.direct + self.index_blocks

    @property
    def may_take(self) -> float:
        """Memory use after all growth."""
        return self.xmx + self.rest + self.caches + self.buffers

    def resident(self, age: timedelta, hours: float) -> float:
        """Memory use so long after its start, with the data of so many hours after the start of the simulation."""
        heap = self.live + (self.xmx - self.live) * share_of(age, HEAP_GROWS)
        return (
            heap
            + self.rest
            + self.caches_at(hours) * share_of(age, CACHES_FILL)
            + self.buffers * self.buffers_used * share_of(age, 2 * HOUR)
        )


def share_of(age: timedelta, constant: timedelta) -> float:
    return 1 - math.exp(-max(age / constant, 0))


@dataclass
class Process:
    """One JVM over the days: its configurations by time, and when it was down or did not respond."""

    name: str
    host: str
    shapes: list[tuple[datetime, Shape]]
    """Configurations by start time; each begins with a restart."""
    container_bytes: int | None = None
    silent: tuple[datetime, datetime] | None = None
    speechless: tuple[datetime, datetime] | None = None
    """Spans in which its agent responds with NaN for all MBeans, or for all but one."""
    verdicts: tuple[str, ...] = ()
    """The metrics that it still exposes then."""
    leak_from: datetime | None = None
    leak_per_hour: float = 0.0
    application: str = ""
    """Application of several instances; otherwise the process alone."""
    hides_stores: bool = False
    """Recording level INFO: no RocksDB metrics."""

    @property
    def unit(self) -> str:
        """Resource of a finding: the application, with any number of instances."""
        return self.application or self.name

    def at(self, moment: datetime) -> tuple[datetime, Shape]:
        return max((each for each in self.shapes if each[0] <= moment), key=lambda each: each[0])

    def resident(self, moment: datetime) -> float:
        if moment < self.shapes[0][0]:
            return 0.0
        since, shape = self.at(moment)
        leaked = max((moment - self.leak_from) / HOUR, 0) * self.leak_per_hour if self.leak_from else 0
        return shape.resident(moment - since, (moment - START) / HOUR) + leaked


@dataclass
class Fleet:
    """Hosts with their processes."""

    scenario: Scenario
    truth: Truth = field(default_factory=Truth)
    processes: dict[str, Process] = field(default_factory=dict)
    machines: dict[str, str] = field(default_factory=dict)
    """Instance type by instance."""
    hours: dict[str, set[datetime]] = field(default_factory=dict)
    """Hours to evaluate, by instance."""

    def on(self, host: str) -> list[Process]:
        return [process for process in self.processes.values() if process.host == host]

    def memory(self, host: str) -> float:
        return INSTANCE_TYPES[self.machines[host]].memory_gib * GIB

    def used_percent(self, host: str, moment: datetime) -> float:
        used = OS_BYTES + sum(process.resident(moment) for process in self.on(host))
        return min(100 * used / self.memory(host), 99.0)
