"""JVMs and Kafka Streams applications: heaps, RocksDB that grows to its configured size, and hosts out of memory.

Memory use grows over hours: the heap expands towards -Xmx, block caches fill, and write buffers vary. A fault is a
configuration (or a leak) that exceeds the host's memory. The outage is the minute in which the sum on the host exceeds
it. The unit of evaluation is a process in an hour, with the others on its host.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd
import sqlalchemy as sa
from demo.ebs_physics import INSTANCE_TYPES
from pyspark.sql import functions as f
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import Finding

from spark_apps.apps import jvm_apps as app
from spark_apps.sources.jmx import checked
from spark_apps.sources.jmx_endpoint import Answer, Refused
from tests.simulator.bench import Bench
from tests.simulator.scenario import EVALUATED, START, Case, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, score

DETECTOR = "app_memory_heavy"
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
WORST_FIRST = ("firing", "unknown", "ok")


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
    def rest(self) -> float:
        return self.non_heap + self.threads * MIB + self.direct

    @property
    def may_take(self) -> float:
        """Memory use after all growth."""
        return self.xmx + self.rest + self.caches + self.buffers

    def resident(self, age: timedelta, hours: float) -> float:
        """Memory use so long after its start, with the data of so many hours after the start of the simulation."""
        heap = self.live + (self.xmx - self.live) * _share(age, HEAP_GROWS)
        return (
            heap
            + self.rest
            + self.caches_at(hours) * _share(age, CACHES_FILL)
            + self.buffers * self.buffers_used * _share(age, 2 * HOUR)
        )


def _share(age: timedelta, constant: timedelta) -> float:
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


class _Builder:
    """Adds hosts to a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.number = fleet, 0
        self.chance = random.Random(f"{fleet.scenario.seed} memory")  # noqa: S311 a simulation

    def machine(self, *types: str) -> str:
        host = f"i-m{len(self.fleet.machines):04d}"
        self.fleet.machines[host] = self.chance.choice(types or ("m5.large", "m5.xlarge", "r5.xlarge", "m5.2xlarge"))
        self.fleet.hours[host] = set()
        return host

    def process(self, host: str, shape: Shape, **more: Any) -> Process:
        process = Process(f"app-{len(self.fleet.processes):04d}", host, [(START, shape)], **more)
        self.fleet.processes[process.name] = process
        return process

    def stores(self, total: float, *, windowed: float = 0.3) -> tuple[Store, ...]:
        """Stores with RocksDB's defaults that can use about so many bytes."""
        made: list[Store] = []
        each = 50 * MIB + 48 * MIB
        while total > each:
            kind = "window" if self.chance.random() < windowed and total > 3 * each else "key_value"
            partitions = max(1, min(self.chance.choice([1, 2, 4, 6]), int(total / each / SEGMENTS[kind])))
            made.append(Store(f"store-{len(made)}", kind, partitions, 50 * MIB))
            total -= partitions * SEGMENTS[kind] * each
        return tuple(made)

    def fitting(self, host: str, share: float) -> Shape:
        """A process whose final memory use is this share of the host's memory."""
        total = self.fleet.memory(host) * share
        heap = self.chance.uniform(0.35, 0.65) * total
        stores = self.stores(total - heap - 240 * MIB) if self.chance.random() < 0.75 else ()
        rest = Shape(0, 0, stores).may_take
        xmx = max(total - rest, 128 * MIB)
        return Shape(xmx, xmx * self.chance.uniform(0.3, 0.6), stores)

    def at(self, hours_before_end: int = 48) -> datetime:
        span = self.fleet.scenario.end - timedelta(hours=hours_before_end) - (START + 24 * HOUR)
        return START + 24 * HOUR + timedelta(minutes=int(self.chance.random() * span / timedelta(minutes=1)))

    def near(self, host: str, moment: datetime, hours: int = KEPT_HOURS) -> None:
        first = start_of_hour(moment) - HOUR
        self.fleet.hours[host] |= {first + n * HOUR for n in range(hours + 2)}

    def fault(self, process: Process, kind: str, begins: datetime, due: datetime | None = None) -> None:
        """From `begins` on the host's memory is exceeded: the detector must fire in the hour whose run reads it."""
        due = due or start_of_hour(begins)
        outage = self._outage(process.host, begins)
        for each in self.fleet.on(process.host):
            self.fleet.truth.decoys[each.unit] = "beside a fault"
            self.add_fault(Fault(each.unit, kind, begins, due, self.fleet.scenario.end, outage, hurts_from=due))
        self.near(process.host, begins)
        if due > start_of_hour(begins):
            self.near(process.host, due)

    def add_fault(self, fault: Fault) -> None:
        """Adds a fault unless the application has one of this kind: its first instance counts."""
        if not any((f.resource_name, f.kind) == (fault.resource_name, fault.kind) for f in self.fleet.truth.faults):
            self.fleet.truth.faults.append(replace(fault, begins=fault.begins - SEEN_BEFORE))

    def _outage(self, host: str, begins: datetime) -> datetime | None:
        minutes = int((self.fleet.scenario.end - begins) / timedelta(minutes=1))
        for minute in range(0, minutes, 10):
            moment = begins + timedelta(minutes=minute)
            if self.fleet.used_percent(host, moment) >= 99.0:
                return moment
        return None

    # Faults

    def heap_raised(self) -> None:
        """A deploy gives most of the host's memory to the heap; RocksDB needs memory too."""
        host = self.machine()
        shape = self.fitting(host, 0.6)
        stores = self.stores(self.fleet.memory(host) * 0.35)
        process = self.process(host, replace(shape, stores=stores, xmx=self.fleet.memory(host) * 0.3,
                                             live=self.fleet.memory(host) * 0.12))  # fmt: skip
        begins = self.at()
        old = process.shapes[0][1]
        target = self.fleet.memory(host) * self.chance.uniform(1.0, 1.4)
        process.shapes.append((begins, replace(old, xmx=target - old.may_take + old.xmx)))
        self.fault(process, "heap raised", begins)

    def partitions_arrive(self) -> None:
        """Another instance died: its partitions are assigned here, each with its RocksDB instance."""
        host = self.machine()
        process = self.process(host, self.fitting(host, 0.55))
        old = process.shapes[0][1]
        missing = self.fleet.memory(host) * self.chance.uniform(1.0, 1.5) - old.may_take
        stores = [*(old.stores or self.stores(300 * MIB))]
        names = {store.name for store in stores}
        stores = [s._replace(partitions=s.partitions + 1) for s in stores]
        more = [s for s in self.stores(missing) if s.name not in names]
        shape = replace(old, stores=(*stores, *(s._replace(name=f"{s.name}-b") for s in more)))
        while shape.may_take < self.fleet.memory(host):
            shape = replace(shape, stores=tuple(s._replace(partitions=s.partitions + 1) for s in shape.stores))
        begins = self.at()
        process.shapes.append((begins, shape))
        self.fault(process, "partitions arrive", begins)

    def neighbour_arrives(self) -> None:
        """A second JVM on a host sized for one."""
        host = self.machine("m5.xlarge", "m5.2xlarge", "r5.xlarge")
        first = self.process(host, self.fitting(host, 0.65))
        begins = self.at()
        second = self.process(host, self.fitting(host, self.chance.uniform(0.4, 0.6)))
        second.shapes = [(begins, second.shapes[0][1])]
        self.fault(first, "neighbour arrives", begins)

    def container_too_small(self) -> None:
        """The heap fits into the container, RocksDB does not."""
        host = self.machine("m5.2xlarge")
        limit = self.chance.choice([3, 4, 6]) * GIB
        xmx = limit * 0.7
        process = self.process(host, Shape(xmx, xmx * 0.4), container_bytes=limit)
        old = process.shapes[0][1]
        begins = self.at()
        process.shapes.append((begins, replace(old, stores=self.stores(limit * self.chance.uniform(0.45, 0.8)))))
        due = start_of_hour(begins)
        self.add_fault(Fault(process.unit, "container too small", begins, due, self.fleet.scenario.end, hurts_from=due))
        self.near(host, begins)

    def leaks(self) -> None:
        """Native memory that JMX does not expose fills the host."""
        host = self.machine()
        process = self.process(host, self.fitting(host, 0.5))
        process.leak_from = self.at(72)
        process.leak_per_hour = self.fleet.memory(host) * self.chance.uniform(0.01, 0.04)
        moment = start_of_hour(process.leak_from)
        while self._mean(host, moment) < 85 and moment < self.fleet.scenario.end:
            moment += HOUR
        self.fleet.truth.unclear.append((process.unit, moment - 2 * HOUR, moment))
        self.fault(process, "leaks outside the heap", moment, moment + HOUR)

    def _mean(self, host: str, hour: datetime) -> float:
        return sum(self.fleet.used_percent(host, hour + n * HOUR / 12) for n in range(12)) / 12

    def heap_fills(self) -> None:
        """After a release nearly the whole heap is live: GC frees nothing."""
        host = self.machine()
        process = self.process(host, self.fitting(host, 0.6))
        begins, old = self.at(), process.shapes[0][1]
        process.shapes.append((begins, replace(old, live=old.xmx * self.chance.uniform(0.88, 0.95))))
        self.fault(process, "heap fills", begins)

    def caches_of_its_own_size(self) -> None:
        """A RocksDBConfigSetter gives each of many stores its own cache, larger than the default."""
        host = self.machine()
        process = self.process(host, self.fitting(host, 0.4))
        begins, old = self.at(), process.shapes[0][1]
        room = self.fleet.memory(host) * self.chance.uniform(1.0, 1.4) - old.may_take
        stores = [Store(f"wide-{n}", "key_value", 4, 160 * MIB) for n in range(math.ceil(room / (4 * 208 * MIB)))]
        # Caches of equal capacity are distinguished by their contents.
        process.shapes.append((begins, replace(old, stores=tuple(s._replace(cache_bytes=160 * MIB) for s in stores),
                                               xmx=old.xmx + old.caches + old.buffers)))  # fmt: skip
        self.fault(process, "caches of its own size", begins)

    def buffers_beside_shared_cache(self) -> None:
        """The cache is shared, but the write buffers of many stores are not bounded by it."""
        host = self.machine("m5.xlarge", "r5.xlarge", "m5.large")
        memory = self.fleet.memory(host)
        cache = 256 * MIB
        few = tuple(Store(f"store-{n}", "key_value", 2, cache, shared=True) for n in range(4))
        process = self.process(host, Shape(memory * 0.25, memory * 0.12, few))
        begins, old = self.at(), process.shapes[0][1]
        missing = memory * self.chance.uniform(1.0, 1.3) - old.may_take
        more = math.ceil(missing / (8 * 48 * MIB))
        many = tuple(Store(f"more-{n}", "key_value", 8, cache, shared=True) for n in range(more))
        process.shapes.append((begins, replace(old, stores=(*few, *many))))
        self.fault(process, "write buffers beside a shared cache", begins)

    def containers_together(self) -> None:
        """Each container fits its limit; the limits together exceed the host's memory."""
        processes = self.containers(3)
        begins = self.at()
        for late in self.containers(2, processes[0].host):
            late.shapes = [(begins, late.shapes[0][1])]
        self.fault(processes[0], "containers together", begins)

    def containers(self, count: int, host: str = "") -> list[Process]:
        host = host or self.machine("m5.2xlarge")
        limit = self.fleet.memory(host) / 4
        shape = self.fitting(host, self.chance.uniform(0.195, 0.205))
        return [self.process(host, shape, container_bytes=int(limit)) for _ in range(count)]

    def death_of_one(self) -> None:
        """Each instance fits, but not with the stores of a dead one. A release adds the stores."""
        count = self.chance.choice([2, 3])
        processes = self.instances(count, {2: 0.46, 3: 0.52}[count])
        begins = self.at()
        for process in processes:
            shape = process.shapes[0][1]
            process.shapes = [(START, replace(shape, stores=())), (begins, shape)]
            self.one_more_than_fits(process, "death of one", begins)

    def death_of_two(self) -> None:
        """Four instances, two of them on one host: the others would take over their stores."""
        first, second, third = self.instances(3, 0.24)
        wide = first.shapes[0][1]
        memory = self.fleet.memory(first.host)
        begins = self.at()
        small = replace(wide, xmx=memory * 0.12, live=memory * 0.06)
        fourth = self.process(first.host, small, application=first.application)
        fourth.shapes[0] = (START, replace(small, stores=self.tasks(wide.stores, 3)))
        first.shapes[0] = (START, small)
        for process in (second, third):
            shape = replace(process.shapes[0][1], xmx=memory * 0.55)
            process.shapes = [(START, replace(shape, stores=())), (begins, shape)]
            self.one_more_than_fits(process, "death of two at once", begins)
        for process in (first, fourth):
            shape = process.shapes[0][1]
            process.shapes = [(START, replace(shape, stores=())), (begins, shape)]

    def one_more_than_fits(self, process: Process, kind: str, begins: datetime) -> None:
        due = start_of_hour(begins)
        self.add_fault(Fault(process.unit, kind, begins, due, self.fleet.scenario.end, hurts_from=due))
        self.near(process.host, begins)

    def instances(self, count: int, share: float, *, standby: bool = False, shared: bool = False) -> list[Process]:
        """An application with stores on so many hosts of one type, each filled to this share."""
        kind = self.chance.choice(["m5.large", "m5.xlarge", "r5.xlarge"])
        name = f"group-{len(self.fleet.machines)}"
        hours: set[datetime] = set()  # evaluated together
        made = []
        for n in range(count):
            host = self.machine(kind)
            self.fleet.hours[host] = hours
            memory = self.fleet.memory(host)
            cache = memory * 0.2 if shared else 50 * MIB
            tasks = round(share * memory / (2 * ((0 if shared else 50) + 48) * MIB))
            stores = tuple(Store(f"store-{s}", "key_value", tasks, cache, shared) for s in range(2))
            shape = Shape(memory * 0.22, memory * 0.1, self.tasks(stores, 0 if standby else n),
                          buffers_in_cache=shared)  # fmt: skip
            made.append(self.process(host, shape, application=name))
        return made

    @staticmethod
    def tasks(stores: tuple[Store, ...], part: int) -> tuple[Store, ...]:
        """The tasks of instance number `part`."""
        return tuple(store._replace(first_task=part * store.partitions) for store in stores)

    def hides_its_stores(self) -> None:
        """Recording level INFO: no RocksDB metrics, although RocksDB fills the host."""
        host = self.machine()
        memory = self.fleet.memory(host)
        process = self.process(host, self.fitting(host, 0.5), hides_stores=True)
        begins, old = self.at(72), process.shapes[0][1]
        room = memory * self.chance.uniform(0.95, 1.2) - old.may_take
        stores = (*old.stores, *(s._replace(name=f"{s.name}-b") for s in self.stores(max(room, 400 * MIB))))
        process.shapes.append((begins, replace(old, stores=stores)))
        moment = start_of_hour(begins)
        while self._mean(host, moment) < 85 and moment < self.fleet.scenario.end - 3 * HOUR:
            moment += HOUR
        self.fleet.truth.unclear.append((process.unit, begins - SEEN_BEFORE, moment))
        self.near(host, begins)
        self.fault(process, "hides its stores", moment, moment + HOUR)

    def leaves_no_room_for_the_system(self) -> None:
        """Everything fits, but nothing is left for the kernel and its page cache."""
        host = self.machine("m5.large", "c5.xlarge")
        process = self.process(host, self.fitting(host, 0.6))
        begins, old = self.at(), process.shapes[0][1]
        target = self.fleet.memory(host) * self.chance.uniform(0.96, 0.995)
        process.shapes.append((begins, replace(old, xmx=target - old.may_take + old.xmx)))
        self.fault(process, "no room for the system", begins)

    def release_on_all(self) -> None:
        """One release gives most of each host's memory to the heap: one cause on many instances."""
        processes = self.instances(self.chance.choice([4, 6]), 0.3)
        begins = self.at()
        for process in processes:
            old, memory = process.shapes[0][1], self.fleet.memory(process.host)
            process.shapes.append((begins, replace(old, xmx=memory * 1.1 - old.may_take + old.xmx)))
        for process in processes:
            self.fault(process, "release on all instances", begins)

    def data_grow_into_their_caches(self) -> None:
        """Caches larger than the host's memory were empty since the start; now there is data for them."""
        host = self.machine()
        memory = self.fleet.memory(host)
        heap = memory * 0.35
        count = math.ceil((memory * self.chance.uniform(1.1, 1.3) - heap - 240 * MIB) / (98 * MIB) / 4)
        per_hour = 50 * MIB / (self.fleet.scenario.days * 24 * self.chance.uniform(0.5, 0.7))
        stores = tuple(
            Store(f"store-{n}", "key_value", 4, 50 * MIB, data_bytes=1 * MIB, data_per_hour=per_hour)
            for n in range(count)
        )
        process = self.process(host, Shape(heap, heap * 0.4, stores))
        self.fleet.hours[host] |= {START + n * HOUR for n in range(24, self.fleet.scenario.days * 24, 5)}
        self.fault(process, "data grow into their caches", START + 24 * HOUR, START + 54 * HOUR)

    # Decoys

    def caches_larger_than_their_data(self) -> None:
        """The caches of its stores exceed the host's memory, but their data has been small for days."""
        host = self.machine()
        memory = self.fleet.memory(host)
        heap = memory * 0.35
        each = 50 * MIB + 48 * MIB
        count = max(1, round((memory * self.chance.uniform(1.0, 1.2) - heap - 240 * MIB) / each / 4))
        stores = tuple(Store(f"store-{n}", "key_value", 4, 50 * MIB, data_bytes=6 * MIB) for n in range(count))
        process = self.process(host, Shape(heap, heap * 0.4, stores, buffers_used=0.1))
        self.small_data(process, "caches larger than their data")

    def small_data(self, process: Process, kind: str) -> None:
        """On the first evaluated day the final size is unknown; later restarts do not change that."""
        self.fleet.truth.unclear.append((process.unit, START, START + 54 * HOUR))
        self.fleet.hours[process.host] |= {START + n * HOUR for n in range(24, self.fleet.scenario.days * 24, 5)}
        shape, moment = process.shapes[0][1], self.at()
        process.shapes += [(moment + n * 40 * HOUR, shape) for n in range(2)]
        self.decoy(process, kind, moment)

    def data_that_grow_slowly(self) -> None:
        """The data would not fill the caches for months."""
        host = self.machine()
        memory = self.fleet.memory(host)
        heap = memory * 0.35
        count = max(1, round((memory * self.chance.uniform(1.0, 1.2) - heap - 240 * MIB) / (98 * MIB) / 4))
        per_hour = 44 * MIB / (self.chance.uniform(90, 300) * 24)
        stores = tuple(
            Store(f"store-{n}", "key_value", 4, 50 * MIB, data_bytes=1 * MIB, data_per_hour=per_hour)
            for n in range(count)
        )
        process = self.process(host, Shape(heap, heap * 0.4, stores, buffers_used=0.1))
        self.small_data(process, "data that grow slowly")

    def shared_cache_larger_than_its_data(self) -> None:
        """One cache larger than the host's memory, for stores with little data."""
        host = self.machine("m5.xlarge", "r5.xlarge")
        memory = self.fleet.memory(host)
        cache = memory * self.chance.uniform(0.7, 1.2)
        stores = tuple(
            Store(f"store-{n}", "key_value", 4, cache, shared=True, data_bytes=memory / 400) for n in range(5)
        )
        shape = Shape(memory * 0.4, memory * 0.2, stores, 4 * MIB, 2)
        self.small_data(self.process(host, shape), "shared cache larger than its data")

    def room_for_the_dead(self) -> None:
        """If one instance dies, the others can hold its stores."""
        count = self.chance.choice([2, 3, 4])
        self.group_decoy(self.instances(count, {2: 0.25, 3: 0.35, 4: 0.4}[count]), "room for the dead")

    def standbys(self) -> None:
        """Both hold all stores: one as active task, the other as standby."""
        self.group_decoy(self.instances(2, 0.5, standby=True), "standbys")

    def shared_cache_of_many(self) -> None:
        """More stores share the same cache."""
        self.group_decoy(self.instances(3, 0.5, shared=True), "shared cache of many instances")

    def group_decoy(self, processes: list[Process], kind: str) -> None:
        moment = self.at()
        for process in processes:
            self.decoy(process, kind, moment)

    def containers_that_fit(self) -> None:
        for process in self.containers(4):
            self.decoy(process, "containers that fit together")

    def decoy(self, process: Process, kind: str, moment: datetime | None = None) -> None:
        self.fleet.truth.decoys[process.unit] = kind
        self.near(process.host, moment or self.at(), 3)

    def large_heap(self) -> None:
        host = self.machine("m5.2xlarge", "r5.xlarge")
        xmx = self.fleet.memory(host) * 0.68
        self.decoy(self.process(host, Shape(xmx, xmx * self.chance.uniform(0.1, 0.8))), "large heap that fits")

    def shared_cache(self) -> None:
        """Forty RocksDB instances on one cache, partly used or full, with write buffers charged to it or not."""
        host = self.machine("m5.xlarge", "r5.xlarge")
        inside = self.chance.random() < 0.5
        cache = self.chance.choice([256, 512, 1024]) * MIB
        stores = tuple(
            Store(f"store-{n}", "window" if n % 4 == 0 else "key_value", 4, cache, shared=True) for n in range(10)
        )
        heap = self.fleet.memory(host) * 0.25
        shape = Shape(heap, heap * 0.5, stores, 4 * MIB, 2, buffers_in_cache=inside)
        self.decoy(self.process(host, shape), "shared cache")

    def restarts(self) -> None:
        host = self.machine()
        process = self.process(host, self.fitting(host, 0.7))
        shape = process.shapes[0][1]
        moment = self.at()
        process.shapes += [(moment + timedelta(minutes=9 * n), shape) for n in range(5)]
        process.silent = (moment, moment + HOUR)
        self.decoy(process, "restarting app", moment)

    def says_nan(self) -> None:
        """An agent that responds with NaN: a process that fits is unknown, and not `ok`."""
        host = self.machine()
        process = self.process(host, self.fitting(host, self.chance.choice([0.5, 0.7])))
        moment = start_of_hour(self.at())
        process.speechless = (moment, moment + 5 * HOUR)
        process.verdicts = self.chance.choice([(), ("threads",)])
        self.decoy(process, "says NaN", moment)

    def cold_caches(self) -> None:
        """Just started, with caches of a configured size that are still empty."""
        host = self.machine()
        total = self.fleet.memory(host)
        stores = tuple(Store(f"store-{n}", "key_value", 4, 24 * MIB) for n in range(int(total * 0.3 / (4 * 72 * MIB))))
        process = self.process(host, Shape(total * 0.35, total * 0.15, stores))
        moment = self.at().replace(minute=57)
        process.shapes.append((moment, process.shapes[0][1]))
        self.decoy(process, "caches still cold", moment)

    def busy_machine(self) -> None:
        host = self.machine()
        self.decoy(self.process(host, self.fitting(host, 0.76)), "full to 76 %")

    def container_fits(self) -> None:
        host = self.machine("m5.2xlarge")
        limit = self.chance.choice([4, 6]) * GIB
        process = self.process(host, Shape(limit * 0.4, limit * 0.2, self.stores(limit * 0.25)), container_bytes=limit)
        self.decoy(process, "container that fits")

    def healthy(self) -> None:
        host = self.machine()
        for share in self.chance.choice([(0.4,), (0.6,), (0.7,), (0.3, 0.35)]):
            self.process(host, self.fitting(host, share))


FAULTS = (
    _Builder.hides_its_stores,
    _Builder.heap_raised,
    _Builder.partitions_arrive,
    _Builder.neighbour_arrives,
    _Builder.container_too_small,
    _Builder.leaks,
    _Builder.heap_fills,
    _Builder.caches_of_its_own_size,
    _Builder.buffers_beside_shared_cache,
    _Builder.containers_together,
    _Builder.death_of_one,
    _Builder.death_of_two,
    _Builder.leaves_no_room_for_the_system,
    _Builder.release_on_all,
    _Builder.data_grow_into_their_caches,
)
DECOYS = (
    _Builder.caches_larger_than_their_data,
    _Builder.data_that_grow_slowly,
    _Builder.shared_cache_larger_than_its_data,
    _Builder.large_heap,
    _Builder.shared_cache,
    _Builder.restarts,
    _Builder.says_nan,
    _Builder.cold_caches,
    _Builder.busy_machine,
    _Builder.container_fits,
    _Builder.room_for_the_dead,
    _Builder.standbys,
    _Builder.shared_cache_of_many,
    _Builder.containers_that_fit,
)


def build(scenario: Scenario) -> Fleet:
    """Adds hosts until there are enough applications; half of them are faults and decoys in rotation."""
    fleet = Fleet(scenario)
    builder = _Builder(fleet)
    kinds = [kind for pair in zip_longest(scenario.some(FAULTS), DECOYS) for kind in pair if kind]
    turn = 0
    while len(fleet.processes) < scenario.applications:
        if builder.chance.random() < 0.75:
            kinds[turn % len(kinds)](builder)
            turn += 1
        else:
            builder.healthy()
    for hours in fleet.hours.values():
        hours |= {START + HOUR * builder.chance.randrange(24, scenario.days * 24) for _ in range(CONTROL_HOURS)}
    return fleet


def cases(fleet: Fleet) -> list[Case]:
    """Every process in the evaluated hours of its host, except before its first start."""
    last = fleet.scenario.end - HOUR
    return [
        Case(process.name, hour)
        for process in fleet.processes.values()
        for hour in sorted(fleet.hours[process.host])
        if START + 24 * HOUR <= hour <= last and process.shapes[0][0] < hour + HOUR
    ]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    scored = prepare(bench, scenario)
    return scored(bench.findings(DETECTOR))


def prepare(bench: Bench, scenario: Scenario) -> Callable[[list[Finding]], Score]:
    """Simulates and loads; returns what scores findings of the detector, with whatever parameters they were made."""
    fleet = build(scenario)
    chosen = cases(fleet)
    config = _config(fleet, chosen)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "jolokia.parquet"
        _readings(fleet, chosen).to_parquet(file, coerce_timestamps="us", allow_truncated_timestamps=True)
        read = bench.spark.read.parquet(str(file))
        sources = {
            "jmx": read.withColumns({"resource": f.col("endpoint"), "gap": f.lit(None).cast("string")}),
            "earlier_counters": bench.spark.createDataFrame([], _EARLIER),
        }
        frames = app.transform(sources, EVALUATED, config)
        frames["metrics.jvm_app_sample"] = frames["metrics.jvm_app_sample"].limit(0)
        bench.load("jvm_apps", frames)
    _load_machines(bench, fleet, chosen)
    for table in ("metrics.jvm_app_hourly", "metrics.state_store_memory_hourly"):
        bench.remember(table, "cluster")
    return lambda found: _scored(bench, fleet, found)


def _scored(bench: Bench, fleet: Fleet, found: list[Finding]) -> Score:
    rows = [
        Verdict.of(f"{row.metrics['app']}@{row.resource.columns['cluster'].rsplit('@', 1)[1]}", row) for row in found
    ]
    by_hour: dict[tuple[str, datetime], list[Verdict]] = {}
    for row in rows:
        by_hour.setdefault((row.resource_name, row.hour), []).append(row)
    # The verdict of an application is that of its worst instance.
    verdicts = [min(each, key=lambda row: WORST_FIRST.index(row.status)) for each in by_hour.values()]
    result = score("memory-heavy applications", bench.detector(DETECTOR), verdicts, fleet.truth)
    _check_claims(result, fleet, by_hour)
    return result


def _check_claims(result: Score, fleet: Fleet, by_hour: dict[tuple[str, datetime], list[Verdict]]) -> None:
    """Claims: one cause gives one finding, and an unknown process is not `ok`."""
    instances = Counter(process.unit for process in fleet.processes.values())
    for process in fleet.processes.values():
        begins, ends = process.speechless or (START, START)
        for hour in (begins + (n - 1) * HOUR for n in range(int((ends - begins) / HOUR))):
            for verdict in by_hour.get((process.unit, hour), []):
                wrong = verdict.message if verdict.status == "ok" else None
                unsaid = Fault(process.unit, "says NaN", begins, hour, ends)
                result.claim("what isn't known isn't ok", unsaid, verdict, wrong)
    for fault in fleet.truth.faults:
        said = by_hour.get((fault.resource_name, fault.due), [])
        firing = [verdict for verdict in said if verdict.status == "firing"]
        if firing and instances[fault.resource_name] > 1:
            wrong = f"{len(firing)} findings" if len(firing) > 1 else None
            result.claim("one finding for an application", fault, firing[0], wrong)
        process = next(p for p in fleet.processes.values() if p.unit == fault.resource_name)
        for (unit, hour), rows in by_hour.items():
            if process.hides_stores and unit == fault.resource_name and hour >= process.shapes[-1][0]:
                wrong = rows[0].message if rows[0].status == "ok" else None
                result.claim("what isn't known isn't ok", fault, rows[0], wrong)


_LAYOUT = ("cluster", "role", "app", "endpoint", "metric", "labels", "kind", "at", "value", "process_started_at")
_EARLIER = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"


def _cluster(hour: datetime) -> str:
    """Each hour of the fleet is a separate cluster, with the same names in all of them."""
    return Case(CLUSTER, hour).name


def _url(process: str) -> str:
    return f"http://{process}:8778/jolokia"


def _config(fleet: Fleet, chosen: list[Case]) -> Config:
    endpoints = []
    for case in chosen:
        process = fleet.processes[case.resource_name]
        _, shape = process.at(case.hour + HOUR)
        endpoints.append(
            JmxEndpoint(
                role="app",
                cluster=_cluster(case.hour),
                app=process.unit,
                url=_url(process.name),
                instance_id=Case(process.host, case.hour).name,
                memory_limit_bytes=process.container_bytes,
                rocksdb_write_buffer_bytes=int(shape.write_buffer),
                rocksdb_write_buffers=shape.write_buffers,
            )
        )
    clusters = [
        KafkaCluster(name=name, bootstrap_servers="127.0.0.1:1") for name in sorted({e.cluster for e in endpoints})
    ]
    # Not validated: it is one JVM in the cluster of each hour.
    return Config(kafka=clusters).model_copy(update={"jmx": endpoints})


def _readings(fleet: Fleet, chosen: list[Case]) -> pd.DataFrame:
    """Jolokia's responses just after the end of each hour, in the source's layout."""
    rows: list[tuple[Any, ...]] = []
    for case in chosen:
        process = fleet.processes[case.resource_name]
        head = (_cluster(case.hour), "app", process.unit, _url(process.name))
        for n in range(SAMPLES):
            at = case.hour + HOUR + READ_AFTER + n * READ_EVERY
            if process.silent and process.silent[0] <= at < process.silent[1]:
                continue
            since, _ = process.at(at)
            is_nan = process.speechless is not None and process.speechless[0] <= at < process.speechless[1]
            readings = [
                (
                    metric,
                    json.dumps(labels, sort_keys=True),
                    None if is_nan and metric not in process.verdicts else value,
                )
                for metric, labels, value in _jvm(fleet, process, at)
            ]
            with suppress(Refused):  # a gap of the source
                answer = checked(Answer(at + case.shift, since + case.shift, readings))
                for metric, labels, value in answer.readings:
                    kind = "counter" if metric.endswith("_total") else "gauge"
                    rows.append((*head, metric, labels, kind, answer.at, value, answer.process_started_at))
    return pd.DataFrame(rows, columns=list(_LAYOUT))


Reading = tuple[str, dict[str, str], float | None]


def _jvm(fleet: Fleet, process: Process, at: datetime) -> Iterator[Reading]:
    since, shape = process.at(at)
    age = at - since
    chance = random.Random(f"{process.name} {at}")  # noqa: S311 a simulation
    committed = shape.live + (shape.xmx - shape.live) * _share(age, HEAP_GROWS)
    # The young generation fills between two collections.
    used = shape.live + (committed - shape.live) * chance.random()
    eden = max(used - shape.live, 0.0)
    kind = INSTANCE_TYPES[fleet.machines[process.host]]
    whole: dict[str, float] = {
        "physical_memory_bytes": fleet.memory(process.host),
        "processors": kind.vcpus,
        "heap_max_bytes": shape.xmx,
        "heap_used_bytes": used,
        "non_heap_used_bytes": shape.non_heap,
        "direct_buffer_bytes": shape.direct,
        "threads": shape.threads,
    }
    yield from ((name, {}, value) for name, value in whole.items())
    pools = {"G1 Eden Space": (eden, 0.0), "G1 Survivor Space": (8.0 * MIB, 8.0 * MIB), "G1 Old Gen": (shape.live,) * 2}
    for pool, (now, kept) in pools.items():
        yield "memory_pool_used_bytes", {"pool": pool}, now
        yield "memory_pool_used_after_gc_bytes", {"pool": pool}, kept
    if shape.stores:
        yield "streams_info", {"application_id": process.unit}, 1.0
        tasks = {f"0_{store.first_task + n}" for store in shape.stores for n in range(store.partitions)}
        for task in sorted(tasks):
            yield "records_dropped_total", {"task": task, "thread": "StreamThread-1"}, 0.0
        if not process.hides_stores:
            yield from _rocksdb(shape, age, (at - START) / HOUR, chance)


def _rocksdb(shape: Shape, age: timedelta, hours: float, chance: random.Random) -> Iterator[Reading]:
    """MBeans of all stores and tasks. A shared cache has equal values in all; own caches differ by some blocks."""
    filled = min(_share(age, CACHES_FILL), 0.98)
    instances = sum(s.instances for s in shape.stores)
    full = shape.write_buffer * shape.write_buffers
    for store in shape.stores:
        segments = SEGMENTS[store.kind]
        for partition in range(store.partitions):
            memtables = full * segments * chance.uniform(0.3, 0.8) * _share(age, 2 * HOUR) * shape.buffers_used / 0.9
            if store.shared:
                in_cache = (
                    shape.write_buffer * instances * 0.3 * _share(age, 2 * HOUR) if shape.buffers_in_cache else 0.0
                )
                capacity = store.cache_bytes
                holds = capacity if shape.buffers_in_cache else shape.caches_at(hours)
                usage = min(holds * filled + in_cache, capacity)
                pinned = max(in_cache, 88.0)
                if shape.buffers_in_cache:
                    memtables = in_cache / instances * segments
            else:
                capacity, pinned = store.cache_bytes * segments, 88.0
                holds = min(capacity, store.data(hours) * segments)
                usage = max(holds * filled * chance.uniform(0.85, 1.0), 88.0)
            labels = {"kind": store.kind, "store": store.name, "task": f"0_{store.first_task + partition}"}
            metrics = {
                "memtable_bytes": memtables,
                "memtable_unflushed_bytes": memtables * 0.8,
                "block_cache_usage_bytes": usage,
                "block_cache_pinned_bytes": pinned,
                "block_cache_capacity_bytes": capacity,
                "table_readers_bytes": 200_000.0,
                "sst_bytes": store.data(hours) * segments,
                "keys": 1e6,
            }
            yield from ((name, labels, value) for name, value in metrics.items())


def _load_machines(bench: Bench, fleet: Fleet, chosen: list[Case]) -> None:
    """Type and memory of the hosts from EC2 and the CloudWatch agent (the app ebs_volumes reads those)."""
    rows = []
    for host, hour in sorted({(fleet.processes[case.resource_name].host, case.hour) for case in chosen}):
        used = [fleet.used_percent(host, hour + n * HOUR / 12) for n in range(12)]
        rows.append(
            {
                "hour": EVALUATED,
                "account": ACCOUNT,
                "region": REGION,
                "instance_id": Case(host, hour).name,
                "instance_type": fleet.machines[host],
                "memory_bytes": int(fleet.memory(host)),
                "mean": sum(used) / len(used),
                "most": max(used),
            }
        )
    with bench.warehouse.begin() as connection:
        for statement in (_INSTANCE, _INSTANCE_HOUR):
            connection.execute(sa.text(statement), rows)


_INSTANCE = """
    insert into inventory.instance_hourly
      (hour, account, region, instance_id, instance_type, state, memory_bytes, tags, observed_at)
    values (:hour, :account, :region, :instance_id, :instance_type, 'running', :memory_bytes, '{}', :hour)"""
_INSTANCE_HOUR = """
    insert into metrics.instance_hourly
      (hour, account, region, instance_id, minutes_expected, minutes_present, memory_used_mean_percent,
       memory_used_max_percent)
    values (:hour, :account, :region, :instance_id, 60, 60, :mean, :most)"""
