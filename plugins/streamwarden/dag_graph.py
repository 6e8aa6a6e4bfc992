"""The graph of the hour: what waits for what. The `hourly` DAG and `streamwarden run` both take it from here.

    gather.<app>      a Spark app of `base/catalog.py`
    gather.prices     the table of EBS prices
    judge.<subject>   the detectors of one folder of `sql/detectors`, one after the other
    causes            which finding in alarm may have caused which
    tickets

A step begins when all that it waits for has ended, well or not: which detectors can judge is decided by `evaluate`.
Detectors of a subject share a step because starting a task costs more than judging. All wait for the inventory, which
tells whose a thing is and how things hang together. Imports no pyspark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streamwarden.base.catalog import APPS
from streamwarden.detectors.load import Detector

PRICES, PRICE_TABLE = "prices", "inventory.ebs_price"


def hour_graph(detectors: Iterable[Detector], apps: Collection[str] = APPS) -> dict[str, set[str]]:
    """Steps of an hour, each with those it waits for. Steps come in an order in which they can begin.

    Args:
        apps: those to run; no detector waits for others.
    """
    # On a busy machine the first come first: what mostly waits goes on waiting while others compute.
    by_wait = sorted((APPS[name] for name in apps), key=lambda app: not app.mostly_waits)
    graph: dict[str, set[str]] = {f"gather.{name}": set() for name in (*(app.name for app in by_wait), PRICES)}
    inventory = {name for name in apps if any(table.startswith("inventory.") for table in APPS[name].writes)}
    for detector in sorted(detectors, key=lambda detector: detector.subject):
        gathered = {*inventory, *detector.apps, *([PRICES] if PRICE_TABLE in detector.reads else [])}
        steps = {f"gather.{name}" for name in gathered}
        graph.setdefault(f"judge.{detector.subject}", set()).update(steps & graph.keys())
    graph["causes"] = set(graph)
    graph["tickets"] = set(graph)
    return graph
