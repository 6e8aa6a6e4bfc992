"""JVMs and their hosts: one sample of each endpoint, taken by the source `jmx`."""

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
from spark_apps.sources.jmx_endpoint import CREDENTIALS_REFUSED, NOTHING_THERE
from spark_apps.sources.jmx_mbeans import Role
from spark_apps.sources.recognition import recognized, rule_lines
from streamwarden.base.config import Config
from streamwarden.base.hours import last_full_hour
from streamwarden.cli.probe.result import Answer, Question, sentence

_ACTIONS = {
    NOTHING_THERE: "start the agent or exporter, and open its port to this host (security group)",
    CREDENTIALS_REFUSED: "set `user` and `password: ${NAME}` of the endpoint to the agent's credentials",
    "no answer within": "open its port to this host (security group), or raise timeout_seconds",
    "were denied": "allow reading all MBeans in the agent's policy: docs/deploy.md has an example",
}
"""By a part of the problem."""


def questions(config: Config) -> Iterator[Question]:
    """One question for all endpoints, because the source reads them in parallel, and one about replicas."""
    if config.jmx or config.jmx_files or config.jmx_ec2 or config.kubernetes or config.msk:
        yield Question("jmx", _ask)
        yield Question("jmx", partial(_ask_replicas, config))


def _ask() -> Iterator[Answer]:
    """A line for each endpoint that does not respond, one line per cluster and role for the others, and one for the
    metrics that each exposes."""
    failed: dict[str, str] = {}
    exposed: dict[str, _Exposed] = defaultdict(_Exposed)
    readings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    once = {"hour": last_full_hour().isoformat(), "partitions": "1", "samples": "1"}
    for row in _rows(Jmx(once).reader(SCHEMA)):
        if row["resource"].startswith(METRICS_OF):
            exposed[row["resource"].removeprefix(METRICS_OF)].gap = row["gap"] or ""
        elif row["gap"]:
            failed[row["resource"]] = row["gap"]
        else:
            readings[row["cluster"], row["role"]][row["resource"]] += 1
            exposed[row["resource"]].add(row["role"], row["metric"])
    for resource, gap in failed.items():
        action = next((action for problem, action in _ACTIONS.items() if problem in gap), None)
        yield Answer("jmx", resource, problem=sentence(gap), action=action)
    for (cluster, role), of_kind in readings.items():
        some = {resource: count for resource, count in of_kind.items() if resource not in failed}
        if some:
            answer = f"{len(some)} responded, at least {min(some.values())} readings each"
            yield Answer("jmx", f"{role}s of {cluster}", answer=answer)
    for resource, of_resource in exposed.items():
        yield from of_resource.answers(resource)


@dataclass
class _Exposed:
    """What an endpoint exposes."""

    role: Role = "broker"
    metrics: set[str] = field(default_factory=set)
    gap: str | None = None
    """What it does not expose, as the source reports it; None: its protocol exposes all."""

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
        yield Answer("jmx", f"metrics of {resource}", answer=f"{known.share}{missing}{blind}", action=action)
        if clashes := re.findall(r"Ambiguous: (.*?)\.(?= Ambiguous|$)", self.gap):
            action = "expose each attribute of an MBean by one rule, and keep its labels"
            yield Answer("jmx", f"names of {resource}", problem="; ".join(clashes), action=action)


def _ask_replicas(config: Config) -> Iterator[Answer]:
    """A line for each endpoint of a Prometheus server whose `match` selects series more than once."""
    for resource, labels in replicas_of(config, last_full_hour()).items():
        found = "; ".join(f"{label}: {', '.join(sorted(values))}" for label, values in sorted(labels.items()))
        yield Answer("jmx", resource, answer=f"`match` selects several replicas; each series is read once ({found})")


def _rows(reader: DataSourceReader) -> Iterator[dict[str, Any]]:
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from cast(pa.RecordBatch, batch).to_pylist()
