"""JVMs and their hosts: one sample of each endpoint, taken by the source `jmx`."""

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

_ACTIONS = {
    NOTHING_THERE: "start the agent or exporter, and open its port to this host (security group)",
    CREDENTIALS_REFUSED: "set `user` and `password: ${NAME}` of the endpoint to the agent's credentials",
    "no answer within": "open its port to this host (security group), or raise timeout_seconds",
    "were denied": "allow reading all MBeans in the agent's policy: docs/deploy.md has an example",
}
"""By a part of the problem."""


def questions(config: Config) -> Iterator[Question]:
    """One question for all endpoints, because the source reads them in parallel, and one about replicas."""
    if config.jmx or config.jmx_files or config.jmx_ec2:
        yield Question("jmx", _ask)
        yield Question("jmx", partial(_ask_replicas, config))


def _ask() -> Iterator[Answer]:
    """A line for each endpoint that does not respond, and one line per cluster and role for the others."""
    failed: dict[str, str] = {}
    readings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    once = {"hour": last_full_hour().isoformat(), "partitions": "1", "samples": "1"}
    for row in _rows(Jmx(once).reader(SCHEMA)):
        if row["gap"]:
            failed[row["resource"]] = row["gap"]
        else:
            readings[row["cluster"], row["role"]][row["resource"]] += 1
    for resource, gap in failed.items():
        action = next((action for problem, action in _ACTIONS.items() if problem in gap), None)
        yield Answer("jmx", resource, problem=sentence(gap), action=action)
    for (cluster, role), of_kind in readings.items():
        counts = [count for resource, count in of_kind.items() if resource not in failed]
        if counts:
            answer = f"{len(counts)} responded, at least {min(counts)} readings each"
            yield Answer("jmx", f"{role}s of {cluster}", answer=answer)


def _ask_replicas(config: Config) -> Iterator[Answer]:
    """A line for each endpoint of a Prometheus server whose `match` selects series more than once."""
    for resource, labels in replicas_of(config, last_full_hour()).items():
        found = "; ".join(f"{label}: {', '.join(sorted(values))}" for label, values in sorted(labels.items()))
        yield Answer("jmx", resource, answer=f"`match` selects several replicas; each series is read once ({found})")


def _rows(reader: DataSourceReader) -> Iterator[dict[str, Any]]:
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from cast(pa.RecordBatch, batch).to_pylist()
