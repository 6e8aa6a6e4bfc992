"""Kinds of faults of memory: each method adds hosts with one fault."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from streamwarden.base.hours import HOUR, start_of_hour

from tests.simulator.memory_fleet import (
    GIB,
    KEPT_HOURS,
    MIB,
    SEEN_BEFORE,
    SEGMENTS,
    Fleet,
    Process,
    Shape,
    Store,
)
from tests.simulator.scenario import START, Fault

KNOWN = timedelta(days=2)
"""Time in which caches fill."""


class FaultBuilder:
    """Adds hosts with faults to a fleet."""

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

    def index_blocks_beside_caches(self) -> None:
        """After a release the tables are so large that their index and filter blocks do not fit next to the caches."""
        host = self.machine()
        process, begins = self.process(host, self.fitting(host, 0.5)), self.at()
        old, total = process.shapes[0][1], self.fleet.memory(host) * self.chance.uniform(1.0, 1.3)
        process.shapes.append((begins, self.indexed(old, total)))
        self.fault(process, "index blocks beside caches", begins)

    def indexed(self, shape: Shape, total: float) -> Shape:
        """The process with index blocks in its stores, so that it may take `total` bytes in all."""
        shape = shape if shape.stores else replace(shape, stores=self.stores(400 * MIB))
        each = (total - shape.may_take) / sum(store.instances for store in shape.stores)
        return replace(shape, stores=tuple(store._replace(index_bytes=each) for store in shape.stores))

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
        begins = self.at(72)
        for process in processes:
            shape = process.shapes[0][1]
            process.shapes = [(START, replace(shape, stores=())), (begins, shape)]
            self.one_more_than_fits(process, "death of one", begins)

    def death_of_two(self) -> None:
        """Four instances, two of them on one host: the others would take over their stores."""
        first, second, third = self.instances(3, 0.24)
        wide = first.shapes[0][1]
        memory = self.fleet.memory(first.host)
        begins = self.at(72)
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
        """Until caches have filled for two days, nobody knows what the stores of the dead one need: not due before."""
        due = start_of_hour(begins) + KNOWN
        self.add_fault(Fault(process.unit, kind, begins, due, self.fleet.scenario.end, hurts_from=due))
        self.near(process.host, begins)
        self.near(process.host, due)

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
