"""What the sources return of the simulated processes and hosts: Jolokia's readings, the config, and instances."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import sqlalchemy as sa
from demo.ebs_physics import INSTANCE_TYPES
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster
from streamwarden.base.hours import HOUR

from spark_apps.sources.jmx import checked
from spark_apps.sources.jmx_endpoint import Answer, Refused
from tests.simulator.bench import Bench
from tests.simulator.memory_fleet import (
    ACCOUNT,
    CACHES_FILL,
    CLUSTER,
    HEAP_GROWS,
    MIB,
    READ_AFTER,
    READ_EVERY,
    REGION,
    SAMPLES,
    SEGMENTS,
    Fleet,
    Process,
    Shape,
    share_of,
)
from tests.simulator.scenario import EVALUATED, START, Case

LAYOUT = ("cluster", "role", "app", "endpoint", "metric", "labels", "kind", "at", "value", "process_started_at")


def cluster_of(hour: datetime) -> str:
    """Each hour of the fleet is a separate cluster, with the same names in all of them."""
    return Case(CLUSTER, hour).name


def _url(process: str) -> str:
    return f"http://{process}:8778/jolokia"


def config_of(fleet: Fleet, chosen: list[Case]) -> Config:
    endpoints = []
    for case in chosen:
        process = fleet.processes[case.resource_name]
        _, shape = process.at(case.hour + HOUR)
        endpoints.append(
            JmxEndpoint(
                role="app",
                cluster=cluster_of(case.hour),
                app=process.unit,
                url=_url(process.name),
                instance_id=Case(process.host, case.hour).name,
                memory_limit_bytes=process.container_bytes,
                rocksdb_write_buffer_bytes=int(shape.write_buffer),
                rocksdb_write_buffers=shape.write_buffers,
            )
        )
    clusters = [
        KafkaCluster(name=name, bootstrap_servers="127.0.0.1:1") for name in sorted({e.cluster for e in endpoints})
    ]
    # Not validated: it is one JVM in the cluster of each hour.
    return Config(kafka=clusters).model_copy(update={"jmx": endpoints})


def readings_of(fleet: Fleet, chosen: list[Case]) -> pd.DataFrame:
    """Jolokia's responses just after the end of each hour, in the source's layout."""
    rows: list[tuple[Any, ...]] = []
    for case in chosen:
        process = fleet.processes[case.resource_name]
        head = (cluster_of(case.hour), "app", process.unit, _url(process.name))
        for n in range(SAMPLES):
            at = case.hour + HOUR + READ_AFTER + n * READ_EVERY
            if process.silent and process.silent[0] <= at < process.silent[1]:
                continue
            since, _ = process.at(at)
            is_nan = process.speechless is not None and process.speechless[0] <= at < process.speechless[1]
            readings = [
                (
                    metric,
                    json.dumps(labels, sort_keys=True),
                    None if is_nan and metric not in process.verdicts else value,
                )
                for metric, labels, value in _jvm(fleet, process, at)
            ]
            with suppress(Refused):  # a gap of the source
                answer = checked(Answer(at + case.shift, since + case.shift, readings))
                for metric, labels, value in answer.readings:
                    kind = "counter" if metric.endswith("_total") else "gauge"
                    rows.append((*head, metric, labels, kind, answer.at, value, answer.process_started_at))
    return pd.DataFrame(rows, columns=list(LAYOUT))


Reading = tuple[str, dict[str, str], float | None]


def _jvm(fleet: Fleet, process: Process, at: datetime) -> Iterator[Reading]:
    since, shape = process.at(at)
    age = at - since
    chance = random.Random(f"{process.name} {at}")  # noqa: S311 a simulation
    committed = shape.live + (shape.xmx - shape.live) * share_of(age, HEAP_GROWS)
    # The young generation fills between two collections.
    used = shape.live + (committed - shape.live) * chance.random()
    eden = max(used - shape.live, 0.0)
    kind = INSTANCE_TYPES[fleet.machines[process.host]]
    whole: dict[str, float] = {
        "physical_memory_bytes": fleet.memory(process.host),
        "processors": kind.vcpus,
        "heap_max_bytes": shape.xmx,
        "heap_used_bytes": used,
        "non_heap_used_bytes": shape.non_heap,
        "direct_buffer_bytes": shape.direct,
        "threads": shape.threads,
    }
    yield from ((name, {}, value) for name, value in whole.items())
    pools = {"G1 Eden Space": (eden, 0.0), "G1 Survivor Space": (8.0 * MIB, 8.0 * MIB), "G1 Old Gen": (shape.live,) * 2}
    for pool, (now, kept) in pools.items():
        yield "memory_pool_used_bytes", {"pool": pool}, now
        yield "memory_pool_used_after_gc_bytes", {"pool": pool}, kept
    if shape.stores:
        yield "streams_info", {"application_id": process.unit}, 1.0
        tasks = {f"0_{store.first_task + n}" for store in shape.stores for n in range(store.partitions)}
        for task in sorted(tasks):
            yield "records_dropped_total", {"task": task, "thread": "StreamThread-1"}, 0.0
        if not process.hides_stores:
            yield from _rocksdb(shape, age, (at - START) / HOUR, chance)


def _rocksdb(shape: Shape, age: timedelta, hours: float, chance: random.Random) -> Iterator[Reading]:
    """MBeans of all stores and tasks. A shared cache has equal values in all; own caches differ by some blocks."""
    filled = min(share_of(age, CACHES_FILL), 0.98)
    instances = sum(s.instances for s in shape.stores)
    full = shape.write_buffer * shape.write_buffers
    for store in shape.stores:
        segments = SEGMENTS[store.kind]
        for partition in range(store.partitions):
            memtables = full * segments * chance.uniform(0.3, 0.8) * share_of(age, 2 * HOUR) * shape.buffers_used / 0.9
            if store.shared:
                in_cache = (
                    shape.write_buffer * instances * 0.3 * share_of(age, 2 * HOUR) if shape.buffers_in_cache else 0.0
                )
                capacity = store.cache_bytes
                holds = capacity if shape.buffers_in_cache else shape.caches_at(hours)
                usage = min(holds * filled + in_cache, capacity)
                pinned = max(in_cache, 88.0)
                if shape.buffers_in_cache:
                    memtables = in_cache / instances * segments
            else:
                capacity, pinned = store.cache_bytes * segments, 88.0
                holds = min(capacity, store.data(hours) * segments)
                usage = max(holds * filled * chance.uniform(0.85, 1.0), 88.0)
            labels = {"kind": store.kind, "store": store.name, "task": f"0_{store.first_task + partition}"}
            metrics = {
                "memtable_bytes": memtables,
                "memtable_unflushed_bytes": memtables * 0.8,
                "block_cache_usage_bytes": usage,
                "block_cache_pinned_bytes": pinned,
                "block_cache_capacity_bytes": capacity,
                "table_readers_bytes": 200_000.0 + store.index_bytes * segments,
                "sst_bytes": store.data(hours) * segments,
                "keys": 1e6,
            }
            yield from ((name, labels, value) for name, value in metrics.items())


def load_machines(bench: Bench, fleet: Fleet, chosen: list[Case]) -> None:
    """Type and memory of the hosts from EC2 and the CloudWatch agent (the app ebs_volumes reads those)."""
    rows = []
    for host, hour in sorted({(fleet.processes[case.resource_name].host, case.hour) for case in chosen}):
        used = [fleet.used_percent(host, hour + n * HOUR / 12) for n in range(12)]
        rows.append(
            {
                "hour": EVALUATED,
                "account": ACCOUNT,
                "region": REGION,
                "instance_id": Case(host, hour).name,
                "instance_type": fleet.machines[host],
                "memory_bytes": int(fleet.memory(host)),
                "mean": sum(used) / len(used),
                "most": max(used),
            }
        )
    with bench.warehouse.begin() as connection:
        for statement in (_INSTANCE, _INSTANCE_HOUR):
            connection.execute(sa.text(statement), rows)


_INSTANCE = """
    insert into inventory.instance_hourly
      (hour, account, region, instance_id, instance_type, state, memory_bytes, tags, observed_at)
    values (:hour, :account, :region, :instance_id, :instance_type, 'running', :memory_bytes, '{}', :hour)"""

_INSTANCE_HOUR = """
    insert into metrics.instance_hourly
      (hour, account, region, instance_id, minutes_expected, minutes_present, memory_used_mean_percent,
       memory_used_max_percent)
    values (:hour, :account, :region, :instance_id, 60, 60, :mean, :most)"""
