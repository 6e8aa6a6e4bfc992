"""`make evaluate [SEEDS=20 | SEEDS=1,2,3 | SEED=n] [SMALL=1] [ONLY=volumes,…] [FAULTS=none] [PLATEAU=1]`: simulates
fleets, evaluates them with the product's own code, and prints the scores of its detectors. Exit code 1: a goal is
missed.

A part is a simulated fleet with its faults and decoys, and one score, or one per detector that evaluates it. With
FAULTS=none the fleet has decoys only: what looks like a fault to the detector that is scored. With PLATEAU=1 the
parameters of the flagships are varied instead (see tests/simulator/plateau.py).

Seeds are drawn at random unless they are named, so that detectors are not fitted to fixed seeds. Each wrong verdict is
listed with the command that reproduces it.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from rich.console import Console

from spark_apps.runtime.session import start_session
from tests.simulator import (
    brokers,
    compaction,
    consumers,
    courses,
    disks,
    growth,
    incidents,
    instances,
    lag,
    memory,
    notifications,
    plateau,
    schemas,
    volumes,
    workloads,
)
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import SMALL, STANDARD, Scenario
from tests.simulator.score import Score, metrics, pooled, show, show_wrong

PARTS: dict[str, Callable[[Bench, Scenario], Score | list[Score]]] = {
    "volumes": volumes.evaluate,
    "memory": memory.evaluate,
    "schemas": schemas.evaluate,
    "consumers": consumers.evaluate,
    "lag": lag.evaluate,
    "workloads": workloads.evaluate,
    "incidents": incidents.evaluate,
    "courses": courses.evaluate,
    "notifications": notifications.evaluate,
    "brokers": brokers.evaluate,
    "growth": growth.evaluate,
    "disks": disks.evaluate,
    "compaction": compaction.evaluate,
    "instances": instances.evaluate,
}
OF_FAULTS = ("incidents", "notifications")
"""Parts without decoys only: they are skipped with FAULTS=none."""
MOST = 1_000_000
MOST_SEEDS = 1000


def main() -> int:
    """Runs the parts one after the other for each seed; returns the exit code."""
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 160)
    wanted = [name for name in os.environ.get("ONLY", "").split(",") if name] or list(PARTS)
    has_faults = os.environ.get("FAULTS") != "none"
    if not has_faults:
        wanted = [name for name in wanted if name not in OF_FAULTS]
    if unknown := set(wanted) - set(PARTS):
        console.print(f"ONLY: no part '{min(unknown)}'; there are {', '.join(PARTS)}")
        return 2
    try:
        seeds = seeds_of(os.environ)
    except ValueError as error:
        console.print(str(error))
        return 2
    size = replace(SMALL if os.environ.get("SMALL") else STANDARD, has_faults=has_faults)
    console.print(
        f"{size.volumes} volumes, {size.applications} applications, {size.stores} stores, {size.brokers} brokers,"
        f" {size.groups} groups over {size.days} days, seeds {', '.join(map(str, seeds))}. All days are simulated;"
        " evaluated are the hours around each fault and each decoy, and random ones of every resource."
    )
    asked = "".join(f" {name}={value}" for name in ("SMALL", "FAULTS") if (value := os.environ.get(name)))
    spark = start_session("evaluate", master="local[2]")
    if os.environ.get("PLATEAU"):
        return 0 if plateau.measure(console, spark, size, seeds, wanted) else 1
    scores: list[Score] = []
    is_whole = True
    for seed in seeds:
        for name in wanted:
            started = time.monotonic()
            again = f"make evaluate SEED={seed} ONLY={name}{asked}"
            try:
                with a_bench(spark) as bench:  # one warehouse per part: a detector evaluates everything in it
                    made = scores_of(name, bench, replace(size, seed=seed))
            except Exception as error:  # an app fails on its input: the other parts continue
                is_whole = False
                console.print(f"[red]failed[/] {name}: {_first_line(error)} [dim]({again})[/]")
                continue
            finally:
                spark.catalog.clearCache()  # otherwise the JVM runs out of memory after ten seeds
            scores += made
            seconds = time.monotonic() - started
            console.print(f"seed {seed}, {name}: {sum(s.cases for s in made)} h in {seconds:.0f} s", style="dim")
            for score in made:
                console.print(f"  {score.analysis}: {metrics(score)}", style="dim")
                show_wrong(console, score, again)
    spark.stop()
    return 0 if show(console, by_analysis(scores)) and is_whole else 1


def scores_of(part: str, bench: Bench, scenario: Scenario) -> list[Score]:
    """The scores of one part, always as a list."""
    made = PARTS[part](bench, scenario)
    return made if isinstance(made, list) else [made]


def by_analysis(scores: list[Score]) -> list[Score]:
    """One pooled score per analysis over all seeds, in order of first occurrence."""
    names = dict.fromkeys(score.analysis for score in scores)
    return [pooled([score for score in scores if score.analysis == name]) for name in names]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def seeds_of(asked: Mapping[str, str]) -> list[int]:
    """The seeds of SEED=n or SEEDS=1,2,3; random ones for SEEDS=20, or one if neither is set. Raises ValueError."""
    one, many = asked.get("SEED", ""), asked.get("SEEDS", "")
    if one and many:
        raise ValueError("SEED, SEEDS: give one of them")
    named = [part.strip() for part in (one or many).split(",") if part.strip()]
    if not all(part.isdigit() and int(part) for part in named):
        raise ValueError(f"{'SEED' if one else 'SEEDS'}: must be whole numbers from 1 on, not '{one or many}'")
    if not one and len(named) == 1 and not many.endswith(",") and int(named[0]) > MOST_SEEDS:
        raise ValueError(f"SEEDS: {named[0]} seeds never end ({MOST_SEEDS:,} at most); that seed is SEED={named[0]}")
    if one or len(named) > 1 or many.endswith(","):
        return list(map(int, named))
    return random.SystemRandom().sample(range(1, MOST), int(named[0]) if named else 1)


if __name__ == "__main__":
    sys.exit(main())
