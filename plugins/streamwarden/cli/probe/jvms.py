"""JVMs and their machines: one sample of each, as the source `jmx` takes it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader

from spark_apps.sources.jmx import SCHEMA, Jmx, replicas_of
from spark_apps.sources.jmx_endpoint import CREDENTIALS_REFUSED, NOTHING_THERE
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
    if config.jmx or config.jmx_files or config.jmx_ec2 or config.msk:
        yield Question("jmx", _ask)
        yield Question("jmx", partial(_ask_replicas, config))


def _ask() -> Iterator[Answer]:
    """A line for each that doesn't answer, and one for the others of a kind."""
    silent: dict[str, str] = {}
    readings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    once = {"hour": last_full_hour().isoformat(), "partitions": "1", "samples": "1"}
    for row in _rows(Jmx(once).reader(SCHEMA)):
        if row["gap"]:
            silent[row["resource"]] = row["gap"]
        else:
            readings[row["cluster"], row["role"]][row["resource"]] += 1
    for resource, gap in silent.items():
        cure = next((cure for reason, cure in _CURES.items() if reason in gap), None)
        yield Answer("jmx", resource, problem=sentence(gap), cure=cure)
    for (cluster, role), of_kind in readings.items():
        some = {resource: count for resource, count in of_kind.items() if resource not in silent}
        if some:
            told = f"{len(some)} answer, {min(some.values())} readings or more"
            yield Answer("jmx", f"{role}s of {cluster}", told=told)


def _ask_replicas(config: Config) -> Iterator[Answer]:
    """A line for each endpoint of a Prometheus server whose `match` selects series more than once."""
    for resource, labels in replicas_of(config, last_full_hour()).items():
        told = "; ".join(f"{label}: {', '.join(sorted(values))}" for label, values in sorted(labels.items()))
        yield Answer("jmx", resource, told=f"`match` selects several replicas, each series is read once ({told})")


def _rows(reader: DataSourceReader) -> Iterator[dict[str, Any]]:
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from cast(pa.RecordBatch, batch).to_pylist()
