"""JVMs and their machines: one sample of each, as the source `jmx` takes it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader

from spark_apps.sources.jmx import METRICS_OF, SCHEMA, Jmx, replicas_of
from spark_apps.sources.jmx_catalog import Role
from spark_apps.sources.jmx_endpoint import CREDENTIALS_REFUSED, NOTHING_THERE
from spark_apps.sources.recognition import recognized, rule_lines
from streamwarden.base.config import Config
from streamwarden.base.hours import last_full_hour
from streamwarden.cli.probe.result import Answer, Question, sentence

_CURES = {
    NOTHING_THERE: "start the agent or exporter, and let its port through from this machine (security group)",
    CREDENTIALS_REFUSED: "write `user` and `password: ${NAME}` of the endpoint as its agent has them",
    "no answer within": "let its port through from this machine (security group), or raise timeout_seconds",
    "were denied": "let the agent's policy read all MBeans: docs/deploy.md has one",
}
"""By a part of the reason."""


def questions(config: Config) -> Iterator[Question]:
    """One for all of them: the source asks them at once."""
    if config.jmx or config.jmx_files or config.jmx_ec2:
        yield Question("jmx", _ask)
        yield Question("jmx", partial(_ask_replicas, config))


def _ask() -> Iterator[Answer]:
    """A line for each that doesn't answer, one for the others of a kind, and one for each that exposes less than it
    could."""
    silent: dict[str, str] = {}
    exposed: dict[str, _Exposed] = defaultdict(_Exposed)
    readings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    once = {"hour": last_full_hour().isoformat(), "partitions": "1", "samples": "1"}
    for row in _rows(Jmx(once).reader(SCHEMA)):
        if row["resource"].startswith(METRICS_OF):
            exposed[row["resource"].removeprefix(METRICS_OF)].gap = row["gap"] or ""
        elif row["gap"]:
            silent[row["resource"]] = row["gap"]
        else:
            readings[row["cluster"], row["role"]][row["resource"]] += 1
            exposed[row["resource"]].add(row["role"], row["metric"])
    for resource, gap in silent.items():
        cure = next((cure for reason, cure in _CURES.items() if reason in gap), None)
        yield Answer("jmx", resource, problem=sentence(gap), cure=cure)
    for (cluster, role), of_kind in readings.items():
        some = {resource: count for resource, count in of_kind.items() if resource not in silent}
        if some:
            told = f"{len(some)} answer, {min(some.values())} readings or more"
            yield Answer("jmx", f"{role}s of {cluster}", told=told)
    for resource, of_resource in exposed.items():
        yield from of_resource.answers(resource)


@dataclass
class _Exposed:
    """What an endpoint exposes."""

    role: Role = "broker"
    metrics: set[str] = field(default_factory=set)
    gap: str | None = None
    """What it doesn't, as the source says it; None: its protocol exposes all."""

    def add(self, role: Role, metric: str) -> None:
        self.role = role
        self.metrics.add(metric)

    def answers(self, resource: str) -> Iterator[Answer]:
        """How many metrics are recognized, and the rules that expose the others; ambiguous names are a problem."""
        if self.gap is None:
            return
        known = recognized(self.role, self.metrics)
        blind = f"; not evaluated here: {', '.join(known.not_evaluated)}" if known.not_evaluated else ""
        lines = rule_lines(self.role, known.missing)
        action = "put first under `rules` of the JMX exporter's file:\n" + "\n".join(lines) if lines else None
        missing = f"; not exposed: {', '.join(known.missing)}" if known.missing else ""
        yield Answer("jmx", f"metrics of {resource}", told=f"{known.share}{missing}{blind}", cure=action)
        if clashes := re.findall(r"Ambiguous: (.*?)\.(?= Ambiguous|$)", self.gap):
            action = "expose each attribute of an MBean by one rule, and keep its labels"
            yield Answer("jmx", f"names of {resource}", problem="; ".join(clashes), cure=action)


def _ask_replicas(config: Config) -> Iterator[Answer]:
    """A line for each endpoint of a Prometheus server whose `match` selects series more than once."""
    for resource, labels in replicas_of(config, last_full_hour()).items():
        told = "; ".join(f"{label}: {', '.join(sorted(values))}" for label, values in sorted(labels.items()))
        yield Answer("jmx", resource, told=f"`match` selects several replicas, each series is read once ({told})")


def _rows(reader: DataSourceReader) -> Iterator[dict[str, Any]]:
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from cast(pa.RecordBatch, batch).to_pylist()
