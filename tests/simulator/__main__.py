"""`make evaluate [SMALL=1] [SEED=n] [ONLY=volumes,…]`: simulates a fleet, judges it with the product's own code and
prints how well the flagship detectors did; exit code 1 when a goal is missed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from spark_apps.runtime.session import start_session
from tests.simulator import consumers, memory, schemas, volumes
from tests.simulator.bench import Bench, a_bench
from tests.simulator.scenario import SMALL, STANDARD, Scenario
from tests.simulator.score import Score, show

PARTS: dict[str, Callable[[Bench, Scenario], Score]] = {
    "volumes": volumes.evaluate,
    "memory": memory.evaluate,
    "schemas": schemas.evaluate,
    "consumers": consumers.evaluate,
}


def main() -> int:
    """Runs the analyses one after the other."""
    console = Console()
    wanted = [name for name in os.environ.get("ONLY", "").split(",") if name] or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        console.print(f"ONLY: no part '{min(unknown)}'; there are {', '.join(PARTS)}")
        return 2
    seed = os.environ.get("SEED", str(STANDARD.seed))
    if not seed.isdigit():
        console.print(f"SEED: must be a whole number, not '{seed}'")
        return 2
    scenario = replace(SMALL if os.environ.get("SMALL") else STANDARD, seed=int(seed))
    console.print(
        f"{scenario.volumes} volumes, {scenario.applications} applications, {scenario.stores} stores,"
        f" {scenario.brokers} brokers over {scenario.days} days, seed {scenario.seed}."
        " All days are simulated; judged are the hours around each fault and each decoy, and some of every resource by"
        " chance."
    )
    spark = start_session("evaluate", master="local[2]")
    scores = []
    with a_bench(spark) as bench:
        for name in wanted:
            started = time.monotonic()
            scores.append(PARTS[name](bench, scenario))
            console.print(f"{name}: {scores[-1].cases} hours judged in {time.monotonic() - started:.0f} s")
    spark.stop()
    return 0 if show(console, scores) else 1


if __name__ == "__main__":
    sys.exit(main())
