"""Kinds of decoys of memory, and the fleet that is built of faults and decoys."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import zip_longest

from streamwarden.base.hours import HOUR, start_of_hour

from tests.simulator.memory_faults import FaultBuilder
from tests.simulator.memory_fleet import (
    CONTROL_HOURS,
    GIB,
    MIB,
    Fleet,
    Process,
    Shape,
    Store,
)
from tests.simulator.scenario import START, Scenario


class Builder(FaultBuilder):
    """Adds hosts with faults, decoys, or neither to a fleet."""

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

    def index_blocks_that_fit(self) -> None:
        """Index and filter blocks next to the caches, and room for all of it."""
        host = self.machine("m5.xlarge", "r5.xlarge", "m5.2xlarge")
        total = self.fleet.memory(host) * self.chance.uniform(0.6, 0.75)
        shape = self.indexed(self.fitting(host, 0.4), total)
        self.decoy(self.process(host, shape), "index blocks that fit")

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
    FaultBuilder.hides_its_stores,
    FaultBuilder.heap_raised,
    FaultBuilder.partitions_arrive,
    FaultBuilder.neighbour_arrives,
    FaultBuilder.container_too_small,
    FaultBuilder.leaks,
    FaultBuilder.heap_fills,
    FaultBuilder.caches_of_its_own_size,
    FaultBuilder.buffers_beside_shared_cache,
    FaultBuilder.index_blocks_beside_caches,
    FaultBuilder.containers_together,
    FaultBuilder.death_of_one,
    FaultBuilder.death_of_two,
    FaultBuilder.leaves_no_room_for_the_system,
    FaultBuilder.release_on_all,
    FaultBuilder.data_grow_into_their_caches,
)

DECOYS = (
    Builder.caches_larger_than_their_data,
    Builder.data_that_grow_slowly,
    Builder.shared_cache_larger_than_its_data,
    Builder.large_heap,
    Builder.shared_cache,
    Builder.restarts,
    Builder.says_nan,
    Builder.cold_caches,
    Builder.index_blocks_that_fit,
    Builder.busy_machine,
    Builder.container_fits,
    Builder.room_for_the_dead,
    Builder.standbys,
    Builder.shared_cache_of_many,
    Builder.containers_that_fit,
)


def build(scenario: Scenario) -> Fleet:
    """Adds hosts until there are enough applications; half of them are faults and decoys in rotation."""
    fleet = Fleet(scenario)
    builder = Builder(fleet)
    kinds = [kind for pair in zip_longest(scenario.some(FAULTS), DECOYS) for kind in pair if kind]
    turn = builder.chance.randrange(len(kinds))  # a small fleet has only some of the kinds, which differ by seed
    while len(fleet.processes) < scenario.applications:
        if builder.chance.random() < 0.75:
            kinds[turn % len(kinds)](builder)
            turn += 1
        else:
            builder.healthy()
    for hours in fleet.hours.values():
        hours |= {START + HOUR * builder.chance.randrange(24, scenario.days * 24) for _ in range(CONTROL_HOURS)}
    return fleet
