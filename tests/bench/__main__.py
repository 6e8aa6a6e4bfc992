"""`make bench [PART=hour,load]`: measures and prints each metric with its limit, part by part.

The exit code is 1 if a limit is missed or a part fails; a failed part does not stop the others.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table
from rich.text import Text
from streamwarden.base.paths import PROJECT_ROOT

from tests.bench import (
    aws,
    gathering,
    hour,
    incidents,
    jmx,
    kafka,
    load,
    memory,
    msk,
    pages,
    scale,
    schemas,
    size,
    small,
)
from tests.bench.metric import Metric, measured

PARTS = {
    "load": load.measure,
    "size": size.measure,
    "aws": aws.measure,
    "msk": msk.measure,
    "jmx": jmx.measure,
    "kafka": kafka.measure,
    "memory": memory.measure,
    "schemas": schemas.measure,
    "scale": scale.measure,
    "incidents": incidents.measure,
    "pages": pages.measure,
    "gathering": gathering.measure,
    "small": small.measure,
    "hour": hour.measure,
}


def main() -> int:
    """Runs the parts and prints a table. Returns the exit code."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    asked = os.environ.get("PART") or os.environ.get("ONLY", "")
    wanted = [name for name in asked.split(",") if name] or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        console.print(f"PART: no part '{min(unknown)}'; there are {', '.join(PARTS)}")
        return 2
    (PROJECT_ROOT / "var").mkdir(exist_ok=True)
    missed, broken = [], []
    for name in wanted:
        console.print(f"measuring {name} …")
        try:
            # Each part has its own process, so that none inherits the JVM of another, with its compiled code.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                metrics = process.submit(measured, PARTS[name]).result()
        except Exception as error:
            broken.append(name)
            console.print(Text(f"{name} failed: {error}", "red"))
            continue
        missed += [metric.name.strip() for metric in metrics if not metric.met]
        console.print(_table(name, metrics))
    for what, names in (("missed", missed), ("failed", broken)):
        if names:
            console.print(f"[red]{what}:[/] {'; '.join(names)}")
    return 1 if missed or broken else 0


def _table(part: str, metrics: list[Metric]) -> Table:
    table = Table(part, "measured", "limit", "", box=None, pad_edge=False)
    for metric in metrics:
        table.add_row(metric.name, metric.shown, metric.limit_shown, "met" if metric.met else "[red]missed")
    return table


if __name__ == "__main__":
    sys.exit(main())
