"""Fleets of things that each have one fault or decoy, by turns, and are judged in one hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from tests.simulator.scenario import Fault, Scenario, Truth


class Resource(Protocol):
    """What may have a fault."""

    name: str
    kind: str


T = TypeVar("T", bound=Resource)


@dataclass
class Fleet(Generic[T]):
    resources: list[T] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)

    def fault(self, resource: T, *verdicts: str) -> None:
        """Must be told in the judged hour, as one of these."""
        self.truth.faults.append(Fault.judged(resource.name, resource.kind, *verdicts))


Make = Callable[[Fleet[T], T], None]


def kind_of(make: Callable[..., None]) -> str:
    return make.__name__.replace("_", " ")


def build(
    scenario: Scenario,
    number: int,
    a_thing: Callable[[int, str, np.random.Generator], T],
    faults: Sequence[Make[T]],
    decoys: Sequence[Make[T]],
) -> Fleet[T]:
    """Each kind by turns; its chance is of the scenario's seed and the part's number."""
    fleet: Fleet[T] = Fleet()
    kinds = (*scenario.some(faults), *decoys)
    for n in range(scenario.applications * 2):
        make = kinds[n % len(kinds)]
        resource = a_thing(n, kind_of(make), np.random.default_rng([scenario.seed, number, n]))
        make(fleet, resource)
        fleet.resources.append(resource)
        fleet.truth.decoys[resource.name] = resource.kind
    return fleet
