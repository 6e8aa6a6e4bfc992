"""`make bench [PART=hour,load]`: measures and prints each figure beside its limit; exit code 1 when one is missed."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table
from streamwarden.base.paths import PROJECT_ROOT

from tests.bench import aws, gathering, hour, jmx, kafka, load, memory, scale, schemas, size
from tests.bench.figure import Figure

PARTS = {
    "load": load.measure,
    "size": size.measure,
    "aws": aws.measure,
    "jmx": jmx.measure,
    "kafka": kafka.measure,
    "memory": memory.measure,
    "schemas": schemas.measure,
    "scale": scale.measure,
    "gathering": gathering.measure,
    "hour": hour.measure,
}


def main() -> int:
    """Runs the parts and prints a table."""
    console = Console()
    asked = os.environ.get("PART") or os.environ.get("ONLY", "")
    wanted = [name for name in asked.split(",") if name] or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        console.print(f"PART: no part '{min(unknown)}'; there are {', '.join(PARTS)}")
        return 2
    (PROJECT_ROOT / "var").mkdir(exist_ok=True)
    figures: list[Figure] = []
    # A process each: none inherits another's JVM, with its environment and its compiled code.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as parts:
        for name in wanted:
            console.print(f"measuring {name} …")
            figures += parts.submit(PARTS[name]).result()
    table = Table("figure", "measured", "limit", "", box=None, pad_edge=False)
    for figure in figures:
        table.add_row(figure.name, figure.shown, figure.limit_shown, "met" if figure.met else "[red]missed")
    console.print(table)
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
