"""Growing memory of processes: what the sources return of the fleet, and the evaluated hour.

The evaluated hour passes through the app jvm_apps, from the readings on. `_past` writes the same areas for the previous
hours, summed as that app does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from streamwarden.base.config import JmxEndpoint
from streamwarden.base.hours import HOUR

from spark_apps.apps.jvm_apps import THREAD_STACK_BYTES
from tests.simulator import fleets, jvm_fleet
from tests.simulator.bench import Bench
from tests.simulator.cluster_sources import copy
from tests.simulator.clusters import READ_AFTER
from tests.simulator.growth_kinds import DAYS, DECOYS, FAULTS, NOW, Fleet, Process, a_process
from tests.simulator.scenario import EVALUATED, Scenario
from tests.simulator.score import Score

RULE = "app_memory_growing"
SAMPLES = 3


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    fleet = fleets.build(scenario, 16, a_process, FAULTS, DECOYS)
    remember(bench, fleet)
    return jvm_fleet.evaluate(bench, fleet, RULE, _endpoints(fleet), _readings)


def _url(process: Process, number: int = 0) -> str:
    return f"http://{process.name}-{number}:8778/jolokia"


def _endpoints(fleet: Fleet) -> Iterator[JmxEndpoint]:
    for process in fleet.resources:
        of = {"cluster": process.name, "instance_id": f"i-{process.name}"}
        for number in range(process.jvms):
            yield JmxEndpoint(
                role="app", app="app", url=_url(process, number), memory_limit_bytes=int(process.limit), **of
            )
        if process.has_node:
            yield JmxEndpoint(role="node", url=f"http://{process.name}:9100/metrics", protocol="prometheus", **of)


def _readings(process: Process) -> Iterator[dict[str, Any]]:
    """Readings of the evaluated hour: its JVMs and its host."""
    for n in range(SAMPLES):
        at = EVALUATED + HOUR + READ_AFTER + timedelta(seconds=5 * n)
        head = {"cluster": process.name, "at": at, "process_started_at": process.started}
        for number in range(process.jvms if process.answers else 0):
            of_jvm = head | {"endpoint": _url(process, number), "role": "app", "app": "app"}
            for metric, labels, value in _of_jvm(process):
                yield of_jvm | {"metric": metric, "labels": json.dumps(labels, sort_keys=True), "value": value}
        if process.has_node:
            of_node = head | {"endpoint": f"http://{process.name}:9100/metrics", "role": "node", "app": None}
            used = process.jvms * process.resident[NOW]
            memory = {"physical_memory_bytes": process.limit, "available_memory_bytes": process.limit - used,
                      "page_cache_bytes": process.page_cache * process.limit}  # fmt: skip
            for metric, value in memory.items():
                yield of_node | {"metric": metric, "labels": "{}", "value": value}


def _of_jvm(process: Process) -> Iterator[tuple[str, dict[str, str], float]]:
    live, garbage = float(process.live[NOW]), float(process.garbage[NOW])
    whole = {
        "physical_memory_bytes": process.limit,
        "processors": 4.0,
        "heap_max_bytes": process.heap_max,
        "heap_used_bytes": live + garbage,
        "non_heap_used_bytes": float(process.classes[NOW]),
        "direct_buffer_bytes": float(process.direct[NOW]),
        "threads": float(process.threads[NOW]),
    }
    yield from ((name, {}, value) for name, value in whole.items())
    if process.reports_resident_memory:
        yield "resident_bytes", {}, float(process.resident[NOW])
    yield "memory_pool_used_bytes", {"pool": "G1 Old Gen"}, live + garbage
    yield "memory_pool_used_after_gc_bytes", {"pool": "G1 Old Gen"}, live
    yield "streams_info", {"application_id": "app"}, 1.0
    yield "records_dropped_total", {"task": "0_0", "thread": "StreamThread-1"}, 0.0
    store = {
        "memtable_bytes": 0.0,
        "memtable_unflushed_bytes": 0.0,
        "block_cache_usage_bytes": float(process.rocksdb[NOW]),
        "block_cache_pinned_bytes": 88.0,
        "block_cache_capacity_bytes": process.cache_bytes,
        "table_readers_bytes": float(process.index_blocks[NOW]),
        "sst_bytes": 4 * process.cache_bytes,
        "keys": 1e6,
    }
    yield from ((name, {"kind": "key_value", "store": "totals", "task": "0_0"}, value) for name, value in store.items())


def remember(bench: Bench, fleet: Fleet) -> None:
    """Rows of the previous hours, since the start of each process."""
    with bench.warehouse.begin() as connection:
        for day in range(-1, DAYS + 2):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (EVALUATED - timedelta(day)).date()})
        copy(connection, "metrics.jvm_app_hourly", *[_past(p) for p in fleet.resources])
        nodes = [_node_past(p) for p in fleet.resources if p.has_node]
        copy(connection, "metrics.node_hourly", *nodes)


def _past(process: Process) -> pd.DataFrame:
    """Columns of metrics.jvm_app_hourly that the detector reads, by hour."""
    hours = pd.date_range(EVALUATED - NOW * HOUR, EVALUATED, freq="h")
    rows = pd.DataFrame({
        "hour": hours, "cluster": process.name, "app": "app", "instance_id": f"i-{process.name}",
        "process_started_at": process.started.replace(microsecond=0), "memory_limit_bytes": process.limit,
        "heap_max_bytes": process.heap_max, "heap_used_after_gc_bytes": process.after_gc,
        "heap_survived_bytes": process.live, "non_heap_used_bytes": process.classes, "direct_bytes": process.direct,
        "resident_bytes": process.resident if process.reports_resident_memory else np.nan, "threads": process.threads,
        "thread_stack_bytes": process.threads * THREAD_STACK_BYTES,
        "rocksdb_measured_bytes": process.rocksdb + process.index_blocks,
    })  # fmt: skip
    lived = rows[(rows.hour < EVALUATED) & (rows.hour + HOUR > process.started)]
    return pd.concat([lived.assign(endpoint=_url(process, n)) for n in range(process.jvms)])


def _node_past(process: Process) -> pd.DataFrame:
    hours = pd.date_range(EVALUATED - NOW * HOUR, EVALUATED - HOUR, freq="h")
    used = 100 * process.jvms * process.resident[:NOW] / process.limit
    return pd.DataFrame({
        "hour": hours, "cluster": process.name, "endpoint": f"http://{process.name}:9100/metrics",
        "instance_id": f"i-{process.name}", "memory_bytes": process.limit, "memory_used_mean_percent": used,
    })  # fmt: skip
