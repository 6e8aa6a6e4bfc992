"""The dependency graph of the steps of an hourly run. The `hourly` DAG and `streamwarden run` both use it.

    gather.<app>         a Spark app of `base/catalog.py`
    gather.prices        the table of EBS prices
    evaluate.<subject>   the detectors of one folder of `sql/detectors`, one after the other
    causes               which firing finding may have caused which
    tickets              reconcile and deliver

A step begins when all its upstream steps have ended, even if some failed: `evaluate` decides which detectors are
blocked. Detectors of a subject share a step because starting a task takes longer than an evaluation. All wait for the
inventory, which has the owners and the relations of resources. Does not import pyspark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streamwarden.base.catalog import APPS
from streamwarden.detectors.load import Detector

PRICES, PRICE_TABLE = "prices", "inventory.ebs_price"


def hour_graph(detectors: Iterable[Detector], apps: Collection[str] = APPS) -> dict[str, set[str]]:
    """The upstream steps of each step of an hourly run, in topological order.

    Args:
        apps: apps to run; detectors wait for no others.
    """
    # With few cores, steps start in this order: apps that mostly wait for I/O do so while others compute.
    by_wait = sorted((APPS[name] for name in apps), key=lambda app: not app.mostly_waits)
    graph: dict[str, set[str]] = {f"gather.{name}": set() for name in (*(app.name for app in by_wait), PRICES)}
    inventory = {name for name in apps if any(table.startswith("inventory.") for table in APPS[name].writes)}
    for detector in sorted(detectors, key=lambda detector: detector.subject):
        gathered = {*inventory, *detector.apps, *([PRICES] if PRICE_TABLE in detector.reads else [])}
        steps = {f"gather.{name}" for name in gathered}
        graph.setdefault(f"evaluate.{detector.subject}", set()).update(steps & graph.keys())
    graph["causes"] = set(graph)
    graph["tickets"] = set(graph)
    return graph
