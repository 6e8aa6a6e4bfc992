"""Fleets that the app jvm_apps reads, each thing alone in a cluster of its name, and the one rule that judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from pyspark.sql import functions as f
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster
from streamwarden.base.hours import HOUR

from spark_apps.apps import jvm_apps
from tests.simulator.bench import Bench
from tests.simulator.frames import null_filled
from tests.simulator.scenario import JUDGED, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, at_once, score


class Thing(Protocol):
    """What may have a fault."""

    name: str
    kind: str


T = TypeVar("T", bound=Thing)


@dataclass
class Fleet(Generic[T]):
    things: list[T] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)

    def fault(self, thing: T) -> None:
        self.truth.faults.append(Fault(thing.name, thing.kind, JUDGED - HOUR, JUDGED, JUDGED + HOUR))


Make = Callable[[Fleet[T], T], None]


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
        thing = a_thing(n, make.__name__.replace("_", " "), np.random.default_rng([scenario.seed, number, n]))
        make(fleet, thing)
        fleet.things.append(thing)
        fleet.truth.decoys[thing.name] = thing.kind
    return fleet


def evaluate(
    bench: Bench,
    fleet: Fleet[T],
    rule: str,
    endpoints: Iterable[JmxEndpoint],
    readings: Callable[[T], Iterator[dict[str, Any]]],
) -> Score:
    """Reads the judged hour, judges and scores."""
    clusters = [KafkaCluster(name=thing.name, bootstrap_servers="127.0.0.1:1") for thing in fleet.things]
    config = Config(kafka=clusters, jmx=list(endpoints))
    with TemporaryDirectory() as folder:
        read = null_filled(bench.spark, Path(folder) / "jmx", (row for each in fleet.things for row in readings(each)))
        earlier = "cluster string, endpoint string, metric string, labels string, at timestamp, value double"
        sources = {
            "jmx": read.withColumns({"kind": f.lit("gauge"), "resource": f.col("endpoint")}),
            "earlier_counters": bench.spark.createDataFrame([], earlier),
        }
        bench.load("jvm_apps", jvm_apps.transform(sources, JUDGED, config))
    verdicts = [
        Verdict(name, JUDGED, row.status, row.reason, figures=row.figures)
        for row in bench.judge(rule)
        if (name := str(row.about.columns["cluster"])) in fleet.truth.decoys
    ]
    return score(rule, at_once(bench.detector(rule)), verdicts, fleet.truth)
