"""`make evaluate PLATEAU=1 [SEEDS=3] [SMALL=1] [ONLY=volumes,…]`: precision and recall over ± 50 % of each parameter.

Each seed is simulated once per detector, and the detector evaluates the same warehouse with one parameter changed at a
time. A default sits on a plateau if its neighbors score as it does; whole numbers are rounded, and a change that rounds
to the default is not evaluated again. The tables are Markdown, as in docs/plateaus.md.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from rich.console import Console
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import Detector, Finding

from tests.simulator import consumers, lag, memory, schemas, volumes
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import Scenario
from tests.simulator.score import Score, pooled

FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5)
PARTS: dict[str, tuple[str, Callable[[Bench, Scenario], Callable[[list[Finding]], Score]]]] = {
    "volumes": (volumes.DETECTOR, volumes.prepare),
    "memory": (memory.DETECTOR, memory.prepare),
    "schemas": (schemas.DETECTOR, schemas.prepare),
    "consumers": (consumers.DETECTOR, consumers.prepare),
    "lag": (lag.DETECTOR, lag.prepare),
}


@dataclass(frozen=True)
class Variant:
    """A detector with one parameter multiplied by a factor; `parameter` null: with its defaults."""

    parameter: str | None
    factor: float
    value: float | int | None = None

    def config(self, detector: Detector) -> Config:
        """The config that sets the parameter."""
        changed = {} if self.parameter is None else {self.parameter: self.value}
        return Config.model_validate({"detectors": {detector.id: {"params": changed}}})


DEFAULTS = Variant(None, 1.0)


def variants(detector: Detector) -> Iterator[Variant]:
    """Each numeric parameter times each factor but 1, without those that round to the default or to 0."""
    for name, parameter in detector.params.items():
        default = parameter.default
        if isinstance(default, bool) or not isinstance(default, (int, float)):
            continue
        for factor in FACTORS:
            value = round(default * factor) if isinstance(default, int) else default * factor
            if value and value != default:
                yield Variant(name, factor, value)


def measure(console: Console, spark: SparkSession, size: Scenario, seeds: Sequence[int], wanted: Sequence[str]) -> bool:
    """Prints the table of each detector; returns whether every variant could be evaluated."""
    is_whole = True
    for part in [part for part in wanted if part in PARTS]:
        name, prepare = PARTS[part]
        scores: dict[Variant, list[Score]] = defaultdict(list)
        for seed in seeds:
            started = time.monotonic()
            with a_bench(spark) as bench:
                scored = prepare(bench, replace(size, seed=seed))
                detector = bench.detector(name)
                for variant in (DEFAULTS, *variants(detector)):
                    try:
                        found = bench.findings(name, variant.config(detector), is_analyzed=variant != DEFAULTS)
                    except StreamwardenError as error:
                        is_whole = False
                        console.print(f"[red]failed[/] {name} {variant.parameter} = {variant.value}: {error}")
                        continue
                    scores[variant].append(scored(found))
            spark.catalog.clearCache()
            console.print(f"seed {seed}, {part}: {time.monotonic() - started:.0f} s", style="dim")
        for line in table(detector, scores):
            console.print(line, markup=False)
    return is_whole


def table(detector: Detector, scores: dict[Variant, list[Score]]) -> Iterator[str]:
    """A row per parameter: precision / recall at each factor, pooled over the seeds; `=`: as with the defaults."""
    faults = sum(score.faults for score in scores[DEFAULTS])
    yield f"### {detector.id}\n"
    yield f"{faults} faults; with the defaults: {_cell(scores[DEFAULTS])}.\n"
    yield "| parameter | default | " + " | ".join(f"{factor - 1:+.0%}" for factor in FACTORS if factor != 1) + " |"
    yield "|---|---|" + "---|" * (len(FACTORS) - 1)
    by_factor = {(variant.parameter, variant.factor): made for variant, made in scores.items()}
    for name in dict.fromkeys(variant.parameter for variant in scores if variant.parameter):
        cells = []
        for factor in FACTORS:
            if factor != 1:
                made = by_factor.get((name, factor))
                cell = _cell(made) if made else "rounds to the default"
                cells.append("=" if made and cell == _cell(scores[DEFAULTS]) else cell)
        parameter = detector.params[name]
        yield f"| {name} | {parameter.default} {parameter.unit} | " + " | ".join(cells) + " |"
    yield ""


def _cell(scores: Sequence[Score]) -> str:
    total = pooled(scores)
    return f"{total.precision:.3f} / {total.recall:.3f}"
