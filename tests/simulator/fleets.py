"""Fleets of resources with one fault or decoy each, in rotation, evaluated in one hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from tests.simulator.scenario import Fault, Scenario, Truth


class Resource(Protocol):
    """A resource that can have a fault."""

    name: str
    kind: str


T = TypeVar("T", bound=Resource)


@dataclass
class Fleet(Generic[T]):
    resources: list[T] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)

    def fault(self, resource: T, *verdicts: str) -> None:
        """The detector must fire for the resource in the evaluated hour, with one of these verdicts."""
        self.truth.faults.append(Fault.in_evaluated_hour(resource.name, resource.kind, *verdicts))


Make = Callable[[Fleet[T], T], None]


def kind_of(make: Callable[..., None]) -> str:
    return make.__name__.replace("_", " ")


def build(
    scenario: Scenario,
    number: int,
    make_resource: Callable[[int, str, np.random.Generator], T],
    faults: Sequence[Make[T]],
    decoys: Sequence[Make[T]],
) -> Fleet[T]:
    """Resources of all kinds in rotation, with random generators seeded by the scenario and the number of the part."""
    fleet: Fleet[T] = Fleet()
    kinds = (*scenario.some(faults), *decoys)
    for n in range(scenario.applications * 2):
        make = kinds[n % len(kinds)]
        resource = make_resource(n, kind_of(make), np.random.default_rng([scenario.seed, number, n]))
        make(fleet, resource)
        fleet.resources.append(resource)
        fleet.truth.decoys[resource.name] = resource.kind
    return fleet
