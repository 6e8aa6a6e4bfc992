"""Fleets that the app jvm_apps reads, one resource per cluster of its name, and the detector that evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import functions as f
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster

from spark_apps.apps import jvm_apps
from tests.simulator.bench import Bench
from tests.simulator.fleets import Fleet, T
from tests.simulator.frames import EARLIER_COUNTERS, null_filled, rows_frame
from tests.simulator.scenario import EVALUATED, Verdict
from tests.simulator.score import Score, at_once, score


def evaluate(
    bench: Bench,
    fleet: Fleet[T],
    rule: str,
    endpoints: Iterable[JmxEndpoint],
    readings: Callable[[T], Iterator[dict[str, Any]]],
) -> Score:
    """Runs the app for the evaluated hour, evaluates, and scores."""
    clusters = [KafkaCluster(name=resource.name, bootstrap_servers="127.0.0.1:1") for resource in fleet.resources]
    config = Config(kafka=clusters, jmx=list(endpoints))
    with TemporaryDirectory() as folder:
        read = null_filled(
            bench.spark, Path(folder) / "jmx", (row for each in fleet.resources for row in readings(each))
        )
        sources = {
            "jmx": read.withColumns({"kind": f.lit("gauge"), "resource": f.col("endpoint")}),
            "earlier_counters": rows_frame(bench.spark, [], EARLIER_COUNTERS),
        }
        bench.load("jvm_apps", jvm_apps.transform(sources, EVALUATED, config))
    verdicts = [
        Verdict(name, EVALUATED, row.status, row.message, metrics=row.metrics)
        for row in bench.findings(rule)
        if (name := str(row.resource.columns["cluster"])) in fleet.truth.decoys
    ]
    return score(rule, at_once(bench.detector(rule)), verdicts, fleet.truth)
