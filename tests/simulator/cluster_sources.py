"""JMX samples and metadata of simulated clusters in the layout of the sources, and rows of the previous hours.

The evaluated hour passes through the apps, from the sources' layout on. `past` writes the previous hours: it computes
the same columns from the same readings as the app brokers (a test compares them for the evaluated hour). Metrics of
volumes, instances, nodes, and groups, which other apps gather, are written as rows in all hours.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster
from streamwarden.base.hours import HOUR

from spark_apps.apps import brokers, consumer_groups
from spark_apps.apps.consumer_groups.positions import positions
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_offsets import KafkaOffsets
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.simulator.bench import Bench
from tests.simulator.clusters import (
    APART,
    DAYS,
    NOW,
    PAST,
    READ_AFTER,
    SAMPLES,
    SPREAD,
    Cluster,
    Topic,
    hour_at,
)
from tests.simulator.frames import (
    KNOWN_BROKERS,
    KNOWN_COMMITS,
    NO_GROUPS_UNLISTED,
    NO_KNOWN_ENDS,
    commits_read,
    null_filled,
    rows_frame,
)
from tests.simulator.logs import KNOWN_HOURS
from tests.simulator.scenario import EVALUATED
from tests.simulator.volume_kinds import ACCOUNT

LOOK_BACK = 3
"""Hours after which an earlier reading of a counter is no longer used."""
LOG_DIR = "/var/lib/kafka"
HELD_HOURS = 6
"""Hours for which the leaders of partitions are stored."""


def url_of(cluster: Cluster, broker: int) -> str:
    return f"http://{cluster.name}-{broker}:8778/jolokia"


def instance_of(cluster: Cluster, broker: int) -> str:
    return f"i-{cluster.name}-{broker}"


def load(bench: Bench, clusters: list[Cluster], folder: Path) -> None:
    """Runs the apps for the evaluated hour, and writes all previous hours."""
    frames = brokers.transform(_jmx(bench, clusters, folder), EVALUATED, _config(clusters))
    bench.load("brokers", frames)
    bench.load("consumer_groups", consumer_groups.transform(_metadata(bench, clusters), EVALUATED, Config()))
    remember(bench, clusters)


def _config(clusters: list[Cluster]) -> Config:
    kafka = [KafkaCluster(name=c.name, bootstrap_servers="127.0.0.1:1") for c in clusters]
    endpoints = [
        JmxEndpoint(role="broker", cluster=c.name, url=url_of(c, b), broker_id=b, instance_id=instance_of(c, b))
        for c in clusters
        for b in range(c.brokers + len(c.controllers))
    ]
    return Config(kafka=kafka, jmx=endpoints)


# JMX


def _jmx(bench: Bench, clusters: list[Cluster], folder: Path) -> dict[str, DataFrame]:
    now, before = [], []
    for cluster in clusters:
        for broker in range(cluster.brokers):
            if cluster.answers[broker, NOW]:
                now += _readings(cluster, broker)
            before += _earlier(cluster, broker)
        now += _of_controllers(cluster)
    kind = f.when(f.col("metric").endswith("_total"), "counter").otherwise("gauge")
    kind = f.when(f.col("metric").rlike("_p[0-9]+_ms$"), "percentile").otherwise(kind)
    return {
        "jmx": null_filled(bench.spark, folder / "jmx", now).withColumns({"kind": kind, "resource": f.col("endpoint")}),
        "earlier_counters": null_filled(bench.spark, folder / "before", before).drop("gap"),
        "known_brokers": rows_frame(bench.spark, [], KNOWN_BROKERS),
    }


def _readings(cluster: Cluster, broker: int) -> Iterator[dict[str, Any]]:
    """The JMX samples of the evaluated hour."""
    started = cluster.started[broker, NOW]
    for n in range(SAMPLES):
        at = EVALUATED + HOUR + READ_AFTER + n * timedelta(seconds=APART)
        head = {"cluster": cluster.name, "endpoint": url_of(cluster, broker), "at": at,
                "process_started_at": datetime.fromtimestamp(started, EVALUATED.tzinfo)}  # fmt: skip
        for metric, labels, value in _sample(cluster, broker, n):
            yield head | {"metric": metric, "labels": json.dumps(labels), "value": None if np.isnan(value) else value}
        if n in (0, SAMPLES - 1):
            for topic, metric, value in _of_topics(cluster, broker, NOW, n * APART):
                if metric in ("log_bytes", "log_segments") and n == 0:
                    continue  # read in the last sample only
                yield head | {"metric": metric, "labels": json.dumps({"topic": topic}), "value": value}


def _sample(cluster: Cluster, broker: int, n: int) -> Iterator[tuple[str, dict[str, str], float]]:
    yield "broker_info", {"broker_id": str(broker), "version": "3.7.0"}, 1.0
    yield "processors", {}, float(cluster.vcpus[broker])
    for metric, value in counters(cluster, broker, NOW, n * APART).items():
        name, labels = _REQUESTS.get(metric, (metric, {}))
        yield name, labels, value
    for error, value in _responses(cluster, broker, NOW, n * APART).items():
        yield "produce_responses_total", {"error": error}, value
    yield "failed_produces_total", {}, _failed(cluster, broker, NOW, n * APART)
    if not np.isnan(cluster.gauges["active_controllers"][broker]).all():
        yield "unclean_elections_total", {}, float(sum(cluster.unclean_elections))
    for metric, values in cluster.gauges.items():
        if metric == "log_segments":
            continue  # exposed by topic
        if metric == "active_controllers" and np.isnan(values[broker]).all():
            continue  # a broker that is not a controller has no such MBean
        name, labels = _REQUESTS.get(metric, (metric, {}))
        yield name, labels, samples_of(cluster, broker, metric)[n]


_REQUESTS = {
    "produce_requests": ("requests_total", {"request": "Produce"}),
    "produce_ms": ("request_ms_total", {"request": "Produce"}),
    "produce_p99_ms": ("request_p99_ms", {"request": "Produce"}),
    "fetch_follower_p99_ms": ("request_p99_ms", {"request": "FetchFollower"}),
    "fetch_follower_requests": ("requests_total", {"request": "FetchFollower"}),
    "fetch_follower_ms": ("request_ms_total", {"request": "FetchFollower"}),
}


def samples_of(cluster: Cluster, broker: int, metric: str) -> tuple[float, ...]:
    """MBean values in the evaluated hour."""
    value = float(cluster.gauges[metric][broker, NOW])
    is_count = metric in COUNTS
    return cluster.own_samples.get((broker, metric), (value,) * 3 if is_count else tuple(value * s for s in SPREAD))


COUNTS = ("dead_cleaner_threads", "uncleanable_partitions", "partitions", "leaders", "under_replicated_partitions",
          "under_min_isr_partitions", "reassigning_partitions", "active_controllers",
          "max_file_descriptors", "heap_used_bytes", "heap_max_bytes")  # fmt: skip


def counters(cluster: Cluster, broker: int, hour: int, seconds: float = 0.0) -> dict[str, float]:
    """Values of the counters so long after this hour is read."""
    at, started = cluster.read_at[hour], cluster.started[broker, hour]
    since = np.clip(cluster.read_at[: hour + 1] - started, 0, 3600)
    return {name: float((rate[broker, : hour + 1] * since).sum() + rate[broker, hour] * seconds)
            for name, rate in cluster.rates.items()} if at > started else {}  # fmt: skip


def _responses(cluster: Cluster, broker: int, hour: int, seconds: float = 0.0) -> dict[str, float]:
    """Counters of produce responses by error; errors that never occurred have no counter."""
    if not cluster.reports_errors:
        return {}
    at, started = cluster.read_at[hour], cluster.started[broker, hour]
    since = np.clip(cluster.read_at[: hour + 1] - started, 0, 3600)
    rates = {"NONE": cluster.rates["produce_requests"]} | cluster.refused
    output = {error: float((rate[broker, : hour + 1] * since).sum() + rate[broker, hour] * seconds)
            for error, rate in rates.items()} if at > started else {}  # fmt: skip
    return {error: count for error, count in output.items() if count > 0}


FAILS = ("INVALID_RECORD", "INVALID_TIMESTAMP", "NOT_ENOUGH_REPLICAS")
"""Rate of the errors that FailedProduceRequestsPerSec counts too."""


def _failed(cluster: Cluster, broker: int, hour: int, seconds: float = 0.0) -> float:
    at, started = cluster.read_at[hour], cluster.started[broker, hour]
    since = np.clip(cluster.read_at[: hour + 1] - started, 0, 3600) * (at > started)
    rates = [rate[broker] for error, rate in cluster.refused.items() if error in FAILS]
    return float(sum((rate[: hour + 1] * since).sum() + rate[hour] * seconds for rate in rates))


def _of_topics(cluster: Cluster, broker: int, hour: int, seconds: float = 0.0) -> Iterator[tuple[str, str, float]]:
    """Counters of topics, by their share of the broker's counters, and the sizes of their logs."""
    total = counters(cluster, broker, hour, seconds)
    for topic in cluster.topics:
        if topic.begun > hour_at(hour) + HOUR or not any(broker in each for each in topic.replicas):
            continue
        for metric in ("bytes_in_total", "bytes_out_total", "messages_in_total"):
            if metric in total:
                yield topic.name, metric, total[metric] * topic.share
        yield topic.name, "log_bytes", float(cluster.used_bytes[broker, hour]) * topic.share
        yield topic.name, "log_segments", float(cluster.gauges["log_segments"][broker, hour]) * topic.share


def _earlier(cluster: Cluster, broker: int) -> Iterator[dict[str, Any]]:
    """The newest reading of each counter by an earlier run."""
    hour = next((NOW - n for n in range(1, LOOK_BACK + 1) if cluster.answers[broker, NOW - n]), None)
    if hour is None:
        return
    at = datetime.fromtimestamp(cluster.read_at[hour], EVALUATED.tzinfo)
    head = {"cluster": cluster.name, "endpoint": url_of(cluster, broker), "at": at}
    for metric, value in counters(cluster, broker, hour).items():
        name, labels = _REQUESTS.get(metric, (metric, {}))
        yield head | {"metric": name, "labels": json.dumps(labels), "value": value}
    for error, value in _responses(cluster, broker, hour).items():
        yield head | {"metric": "produce_responses_total", "labels": json.dumps({"error": error}), "value": value}
    yield head | {"metric": "failed_produces_total", "labels": "{}", "value": _failed(cluster, broker, hour)}
    if not np.isnan(cluster.gauges["active_controllers"][broker]).all():
        before = float(cluster.unclean_elections[0])
        yield head | {"metric": "unclean_elections_total", "labels": "{}", "value": before}
    for topic, metric, value in _of_topics(cluster, broker, hour):
        if metric.endswith("_total"):
            yield head | {"metric": metric, "labels": json.dumps({"topic": topic}), "value": value}


def _of_controllers(cluster: Cluster) -> Iterator[dict[str, Any]]:
    for number, controller in enumerate(cluster.controllers, cluster.brokers):
        for n in range(SAMPLES if controller.answers else 0):
            head = {"cluster": cluster.name, "endpoint": url_of(cluster, number), "process_started_at": hour_at(0),
                    "at": EVALUATED + HOUR + READ_AFTER + n * timedelta(seconds=APART)}  # fmt: skip
            readings = {"active_controllers": controller.active[n], "open_file_descriptors": 400.0,
                        "max_file_descriptors": 100_000.0}  # fmt: skip
            yield from (head | {"metric": m, "labels": "{}", "value": value} for m, value in readings.items())


# Metadata


def _metadata(bench: Bench, clusters: list[Cluster]) -> dict[str, DataFrame]:
    topics, dirs = [], []
    offsets: list[dict[str, Any]] = []
    for cluster in clusters:
        if cluster.returns_metadata:
            topics += [_topic(cluster, topic) for topic in cluster.topics]
            offsets += _offsets(cluster)
            topics += _brokers(cluster)
        for broker in range(cluster.brokers):
            if cluster.answers[broker, NOW] or cluster.gauges["leaders"][broker, NOW] != 0:
                dirs += _log_dir(cluster, broker)
        dirs += _moves(cluster)
    read = commits_read(bench.spark, [cluster.name for cluster in clusters])
    none = {KafkaCommits.name(): rows_frame(bench.spark, [], KafkaCommits({}).schema())}
    times = "cluster string, topic string, partition int, offset bigint, record_at timestamp, earliest_at timestamp,"
    times += " latest_at timestamp, next_offset bigint, read_end bigint, resource string, gap string"
    none["kafka_record_times"] = rows_frame(bench.spark, [], times)
    sources = none | {
        "kafka_offsets": rows_frame(bench.spark, offsets, KafkaOffsets({}).schema()),
        "kafka_topics": rows_frame(bench.spark, topics, KafkaTopics({}).schema()),
        "kafka_groups": rows_frame(bench.spark, [], KafkaGroups({}).schema()),
        "kafka_log_dirs": rows_frame(bench.spark, dirs, KafkaLogDirs({}).schema()),
        "unlisted_groups": rows_frame(bench.spark, [], NO_GROUPS_UNLISTED),
        "known_ends": rows_frame(bench.spark, [], NO_KNOWN_ENDS),
        "known_commits": rows_frame(bench.spark, [], KNOWN_COMMITS),
    }
    sources["kafka_commits"] = sources["kafka_commits"].unionByName(read, allowMissingColumns=True)
    sources["positions"] = positions(sources, EVALUATED)
    return sources


def _topic(cluster: Cluster, topic: Topic) -> dict[str, Any]:
    spots = zip(topic.leaders, topic.replicas, topic.isr, strict=True)
    return {
        "cluster": cluster.name,
        "topic": topic.name,
        "partitions": [
            {
                "partition": n,
                "leader": None if n in topic.hidden else leader,
                "replicas": replicas,
                "isr": isr,
                "leader_error": "LISTENER_NOT_FOUND"
                if n in topic.hidden
                else None
                if leader is not None
                else "LEADER_NOT_AVAILABLE",
            }
            for n, (leader, replicas, isr) in enumerate(spots)
        ],
        "configs": {name: {"value": value, "source": "DEFAULT_CONFIG"} for name, value in topic.configs.items()},
        "observed_at": EVALUATED + HOUR + READ_AFTER,
        "resource": cluster.name,
    }


def _offsets(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Offsets of topics with simulated logs."""
    at = {"as_of": EVALUATED + HOUR, "read_at": EVALUATED + HOUR + READ_AFTER}
    for topic in cluster.topics:
        for partition, log in enumerate(topic.logs):
            known = log.known[NOW]
            ends = dict.fromkeys(("log_end_offset", "last_stable_offset", "recent_offset", "offset_at_to"), known.end)
            yield {"cluster": cluster.name, "kind": "log", "topic": topic.name, "partition": partition,
                   "log_start_offset": known.start, "offset_at_from": known.first, "resource": cluster.name,
                   } | ends | at  # fmt: skip


def _brokers(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Brokers that are listed or have replicas."""
    for broker in range(cluster.brokers):
        has_replicas = any(broker in replicas for topic in cluster.topics for replicas in topic.replicas)
        if has_replicas or broker not in cluster.unlisted:
            host = None if broker in cluster.unlisted else f"{cluster.name}-{broker}"
            yield {"cluster": cluster.name, "broker": broker, "host": host, "resource": cluster.name,
                   "observed_at": EVALUATED + HOUR + READ_AFTER}  # fmt: skip


def _log_dir(cluster: Cluster, broker: int) -> Iterator[dict[str, Any]]:
    used = float(cluster.used_bytes[broker, NOW])
    head = {"cluster": cluster.name, "broker": broker, "log_dir": LOG_DIR, "resource": cluster.name,
            "observed_at": EVALUATED + HOUR + READ_AFTER}  # fmt: skip
    whole = {"total_bytes": int(cluster.disk_bytes), "usable_bytes": int(cluster.disk_bytes - used)}
    yield head | {"kind": "log_dir"} | (whole if cluster.reports_disk_sizes else {})
    for topic in cluster.topics:
        if any(broker in each for each in topic.replicas):
            replica = {"topic": topic.name, "partition": 0, "size_bytes": int(used * topic.share), "offset_lag": 0}
            yield head | replica | {"kind": "replica", "is_future": False}


def _moves(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Rows of the partition reassignments in progress and of the replication throttles."""
    head = {"cluster": cluster.name, "resource": cluster.name, "observed_at": EVALUATED + HOUR + READ_AFTER}
    for broker in range(cluster.brokers):
        yield head | {"kind": "broker", "broker": broker} | _of_broker(cluster, broker, 0)
    for move in cluster.moves:
        left = move.left(0)
        if left is None or not cluster.reports_reassignments:
            continue
        replicas = next(t for t in cluster.topics if t.name == move.topic).replicas[move.partition]
        is_reported = bool(cluster.answers[move.target, NOW])
        sizes = {"partition_bytes": move.size_bytes, "copied_bytes": move.size_bytes - left if is_reported else None,
                 "left_bytes": left if is_reported else None}  # fmt: skip
        place = {"topic": move.topic, "partition": move.partition, "replicas": replicas, "adding": [move.target]}
        yield head | place | sizes | {"kind": "reassignment", "removing": []}


def _of_broker(cluster: Cluster, broker: int, hours_ago: int) -> dict[str, Any]:
    """Number of replicas that are being added to the broker, and its throttles as JSON."""
    if not cluster.reports_reassignments:
        return {"adding_replicas": None, "throttles": None}
    adding = sum(move.target == broker and move.left(hours_ago) is not None for move in cluster.moves)
    rates = cluster.throttles.get(broker, {}) if hours_ago <= cluster.throttled_hours else {}
    output = {name: {"value": value, "source": "dynamic_broker_config"} for name, value in rates.items()}
    is_reported = broker not in cluster.unlisted or hours_ago > 0
    return {"adding_replicas": adding, "throttles": json.dumps(output) if is_reported else None}


# The past


def remember(bench: Bench, clusters: list[Cluster]) -> None:
    """Writes the rows of the previous hours to the warehouse."""
    with bench.warehouse.begin() as connection:
        for day in range(-1, DAYS + 4):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": (EVALUATED - timedelta(day)).date()})
        tables = {
            "metrics.broker_hourly": [past(c)[lambda rows: rows["hour"] < EVALUATED] for c in clusters],
            "metrics.log_dir_hourly": [_disks_before(c) for c in clusters],
            "metrics.partition_hourly": [_partitions_before(c) for c in clusters],
            "inventory.topic_hourly": [_topics_before(c) for c in clusters],
            "inventory.broker_hourly": [_brokers_before(c) for c in clusters],
            "inventory.reassignment_hourly": [_moves_before(c) for c in clusters],
            "inventory.instance_hourly": [_instances(c) for c in clusters],
            "metrics.node_hourly": [_nodes(c) for c in clusters],
            "inventory.volume_hourly": [_volumes(c) for c in clusters],
            "metrics.volume_hourly": [_disk_reads(c) for c in clusters],
            "metrics.consumer_group_hourly": [_groups(c) for c in clusters],
            "metrics.jvm_app_hourly": [_applications(c) for c in clusters],
            "detect.detector_run": [_detector_runs(clusters)],
            "detect.evaluation": [_rogues(c) for c in clusters],
        }
        for table, frames in tables.items():
            copy(connection, table, *frames)


def copy(connection: sa.Connection, table: str, *frames: pd.DataFrame) -> None:
    """Inserts rows into a table, NaN as null; frames may be empty."""
    if not (output := [frame for frame in frames if not frame.empty]):
        return
    rows, text = pd.concat(output), io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False)
    pa.csv.write_csv(pa.Table.from_pandas(rows, preserve_index=False), text, options)
    raw: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    columns = ", ".join(f'"{name}"' for name in rows.columns)
    with raw.cursor().copy(f"copy {table} ({columns}) from stdin (format csv)".encode()) as to:
        to.write(text.getvalue())


def past(cluster: Cluster) -> pd.DataFrame:
    """The rows of metrics.broker_hourly, of every hour, as far as detectors read them.

    As in the app, a rate covers the time from the last reading, or from the process start, to this one. A gauge is the
    largest of its samples; the idle share of request handlers and under-replicated partitions are the smallest.
    """
    return pd.concat([_past_of(cluster, broker) for broker in range(cluster.brokers)])


def _past_of(cluster: Cluster, broker: int) -> pd.DataFrame:
    hours = np.arange(PAST + 1)
    answers = cluster.answers[broker]
    last = pd.Series(np.where(answers, hours, np.nan)).shift().ffill().to_numpy()
    since = np.where(hours - last <= LOOK_BACK, 3600.0 * (hours - last), np.nan)
    started = cluster.started[broker]
    covered = np.fmin(since, cluster.read_at - started)
    covered = np.where(np.isnan(covered), (SAMPLES - 1) * APART, covered) + (SAMPLES - 1) * APART
    rates = {name: _mean_since(rate[broker], hours - last) for name, rate in cluster.rates.items()}
    gauges = {name: gauge[broker] * (1.0 if name in COUNTS else SPREAD[-1]) for name, gauge in cluster.gauges.items()}
    flushes = np.where(rates["log_flushes_total"] > 0, rates["log_flushes_total"], np.nan)
    columns = {
        "samples": np.full(len(hours), float(SAMPLES)),
        "covered_seconds": covered,
        **{f"{name}_per_second": rates[f"{name}_total"] for name in _RATES},
        "log_flush_mean_ms": rates["log_flush_ms_total"] / flushes,
        "produce_p99_ms": gauges["produce_p99_ms"],
        "cpu_ratio": rates["cpu_seconds_total"] / cluster.vcpus[broker],
        "log_bytes": cluster.used_bytes[broker],
        **{name: gauges[name] for name in _SAME},
        "request_handler_idle_min_ratio": gauges["request_handler_idle_ratio"] / SPREAD[-1] * SPREAD[0],
        "under_replicated_partitions_max": gauges["under_replicated_partitions"],
        "produce_requests_per_second": rates["produce_requests"],
    }
    rows = pd.DataFrame({name: np.where(answers, values, np.nan) for name, values in columns.items()})
    rows["samples"] = rows["samples"].astype("Int64")
    if cluster.reports_errors:
        rates = {error: rate[broker] for error, rate in cluster.refused.items()}
        counted = [{error: rate[n] * 3600 for error, rate in rates.items() if rate[n]} for n in hours]
        rows["produce_errors"] = [
            json.dumps(output) if ok else None for output, ok in zip(counted, answers, strict=True)
        ]
    begun = pd.to_datetime(np.where(answers, np.floor(started), np.nan), unit="s", utc=True)
    key = {"hour": _hours(), "cluster": cluster.name, "endpoint": url_of(cluster, broker), "broker_id": broker,
           "instance_id": instance_of(cluster, broker), "process_started_at": begun}  # fmt: skip
    return rows.assign(**key)


_RATES = ("bytes_in", "bytes_out", "messages_in", "replication_bytes_in", "replication_bytes_out", "log_flushes")
_SAME = ("log_flush_p95_ms", "log_flush_p999_ms", "partitions", "leaders", "open_file_descriptors",
         "max_file_descriptors", "under_replicated_partitions", "under_min_isr_partitions", "reassigning_partitions",
         "active_controllers", "heap_used_bytes", "heap_max_bytes")  # fmt: skip


def _hours() -> pd.DatetimeIndex:
    return pd.date_range(hour_at(0), EVALUATED, freq="h")


def _mean_since(rate: np.ndarray, hours: np.ndarray) -> np.ndarray:
    """Rates over the hours since the last reading."""
    total = np.concatenate([[0.0], np.cumsum(rate)])
    back = np.where(hours <= LOOK_BACK, hours, 1).astype(int)
    place = np.arange(1, len(total))
    return np.asarray((total[place] - total[np.maximum(place - back, 0)]) / back)


def _disks_before(cluster: Cluster) -> pd.DataFrame:
    """Disk usage of eight days, or of four weeks for disks full enough that detectors read more."""
    frames = []
    for broker in range(cluster.brokers):
        is_full = cluster.used_bytes[broker, NOW] > 0.8 * cluster.disk_bytes
        hours = np.arange(max(0 if is_full else PAST - 8 * 24, cluster.disk_since), PAST)
        known = hours[: len(hours) if cluster.reports_disk_sizes else 0]
        used = cluster.used_bytes[broker, known].astype("int64")
        frames.append(pd.DataFrame({
            "hour": _hours()[known], "cluster": cluster.name, "broker_id": broker, "log_dir": LOG_DIR,
            "total_bytes": int(cluster.disk_bytes), "usable_bytes": int(cluster.disk_bytes) - used,
            "replicas": 10, "log_bytes": used, "observed_at": _hours()[known] + HOUR,
        }))  # fmt: skip
    return pd.concat(frames)


def _partitions_before(cluster: Cluster) -> pd.DataFrame:
    """Partitions of the previous hours, each led by its preferred leader, or by the first in-sync replica."""
    held = HELD_HOURS if sum(len(topic.before) for topic in cluster.topics) < 1000 else 1
    rows = [
        {"hour": hour, "cluster": cluster.name, "topic": topic.name, "partition": n,
         "leader": next((r for r in replicas if r not in topic.out_of_sync_before.get(n, ())), None),
         "replicas": len(replicas),
         "isr": len(replicas) - len(topic.out_of_sync_before.get(n, ())),
         "missing_brokers": json.dumps(topic.out_of_sync_before[n]) if n in topic.out_of_sync_before else None}
        for hour in (EVALUATED - n * HOUR for n in range(1, held + 1))
        for topic in cluster.topics
        if topic.begun <= hour + HOUR and not topic.logs
        for n, replicas in enumerate(topic.before)
    ]  # fmt: skip
    rows += [
        {"hour": EVALUATED - ago * HOUR, "cluster": cluster.name, "topic": topic.name, "partition": n,
         "leader": topic.before[n][0], "replicas": len(topic.before[n]), "isr": len(topic.before[n]),
         "log_start_offset": known.start, "log_end_offset": known.end, "log_end_offset_first": known.first,
         "offsets_at": EVALUATED - (ago - 1) * HOUR + READ_AFTER}
        for topic in cluster.topics
        for n, log in enumerate(topic.logs)
        for ago, known in enumerate(reversed(log.known[-KNOWN_HOURS:]))
        if ago
    ]  # fmt: skip
    offsets = ["log_start_offset", "log_end_offset", "log_end_offset_first"]
    columns = ["hour", "cluster", "topic", "partition", "leader", "replicas", "isr", "missing_brokers", *offsets,
               "offsets_at"]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(offsets, "Int64"))
    return frame if any(topic.logs for topic in cluster.topics) else frame.drop(columns=[*offsets, "offsets_at"])


def _topics_before(cluster: Cluster) -> pd.DataFrame:
    """Topics of a month ago and of the last hours."""
    shares = {EVALUATED - timedelta(days=30): cluster.partitions_before}
    shares |= {EVALUATED - n * HOUR: 1.0 for n in range(1, HELD_HOURS + 1)}
    rows = [
        {"hour": hour, "cluster": cluster.name, "topic": topic.name, "kind": "plain", "observed_at": hour + HOUR,
         "partitions": max(round(len(topic.before) * share), 1),
         "replication_factor": min(len(replicas) for replicas in topic.before),
         "leader_throttled_replicas": topic.configs.get("leader.replication.throttled.replicas")
         if EVALUATED - hour <= cluster.throttled_hours * HOUR else None}
        for hour, share in shares.items()
        for topic in cluster.topics
        if topic.begun <= hour + HOUR and not topic.logs
    ]  # fmt: skip
    rows += [
        {"hour": EVALUATED - ago * HOUR, "cluster": cluster.name, "topic": topic.name, "kind": "plain",
         "observed_at": EVALUATED - (ago - 1) * HOUR, "partitions": len(topic.before),
         "replication_factor": min(len(replicas) for replicas in topic.before),
         "cleanup_policy": configs["cleanup.policy"], "retention_ms": int(configs["retention.ms"]),
         "configs": json.dumps({name: {"value": value} for name, value in configs.items()})}
        for topic in cluster.topics
        if topic.logs
        for ago in [*range(1, KNOWN_HOURS), 30 * 24]
        for configs in [topic.settings(ago)]
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"retention_ms": "Int64"} if "retention_ms" in rows[-1] else {})


def _brokers_before(cluster: Cluster) -> pd.DataFrame:
    """Brokers of the previous hours, in which all were listed."""
    rows = [
        {"hour": EVALUATED - n * HOUR, "cluster": cluster.name, "broker_id": broker, "host": f"{cluster.name}-{broker}",
         "is_listed": True, "replicas": 10, "observed_at": EVALUATED - (n - 1) * HOUR} | _of_broker(cluster, broker, n)
        for n in range(1, HELD_HOURS + 1)
        for broker in range(cluster.brokers)
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"adding_replicas": "Int64"})


def _moves_before(cluster: Cluster) -> pd.DataFrame:
    rows = [
        {"hour": EVALUATED - n * HOUR, "cluster": cluster.name, "topic": move.topic, "partition": move.partition,
         "replicas": json.dumps([0, move.target]), "adding": json.dumps([move.target]), "removing": "[]",
         "partition_bytes": move.size_bytes, "copied_bytes": move.size_bytes - left, "left_bytes": left}
        for move in cluster.moves
        for n in range(1, HELD_HOURS + 1)
        if (left := move.left(n)) is not None
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _instances(cluster: Cluster) -> pd.DataFrame:
    return pd.DataFrame([
        {"hour": hour, "account": ACCOUNT, "region": cluster.region, "instance_id": instance_of(cluster, broker),
         "instance_type": "r5.2xlarge", "state": state, "vcpus": cluster.vcpus[broker],
         "memory_bytes": int(cluster.memory_bytes), "tags": "{}", "observed_at": hour + HOUR}
        for hour in _hours_of_ec2(cluster)
        for broker in range(cluster.brokers)
        if (state := cluster.machines.get(broker, "running") if hour == EVALUATED else "running")
    ])  # fmt: skip


def _hours_of_ec2(cluster: Cluster) -> list[datetime]:
    """Instances of the evaluated hour and of the previous one, in which all were running."""
    return [EVALUATED - HOUR, EVALUATED][: 1 + cluster.is_region_read]


def _nodes(cluster: Cluster) -> pd.DataFrame:
    """Rows of the evaluated hour, and of eight days if node exporter reports disk reads."""
    hours = np.arange(PAST - 8 * 24 if cluster.node_exporter_reports_reads else PAST, PAST + 1)
    reads = (
        cluster.read_bytes / 3600 if cluster.node_exporter_reports_reads else np.full(cluster.read_bytes.shape, np.nan)
    )
    return pd.concat([
        pd.DataFrame({"hour": _hours()[hours], "cluster": cluster.name, "endpoint": f"node-{broker}",
                      "busiest_disk": "nvme1n1", "instance_id": instance_of(cluster, broker),
                      "busiest_disk_ratio": cluster.busy_ratio, "disk_read_bytes_per_second": reads[broker, hours]})
        for broker in range(cluster.brokers)
    ])  # fmt: skip


def _volumes(cluster: Cluster) -> pd.DataFrame:
    rows = [
        {"hour": hour, "account": ACCOUNT, "region": cluster.region, "volume_id": f"vol-{cluster.name}-{broker}",
         "instance_id": instance_of(cluster, broker), "tags": "{}", "observed_at": hour + HOUR}
        for hour in _hours_of_ec2(cluster)
        for broker in range(cluster.brokers if cluster.has_volumes else 0)
        if hour < EVALUATED or cluster.machines.get(broker, "running") not in ("terminated", None)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _disk_reads(cluster: Cluster) -> pd.DataFrame:
    """Volumes of eight days and of the evaluated hour."""
    hours = np.arange(PAST - 8 * 24, PAST + 1)
    times = _hours()[hours]
    return pd.concat([
        pd.DataFrame({"hour": times, "account": ACCOUNT, "region": cluster.region, "known_until": times + HOUR,
                      "volume_id": f"vol-{cluster.name}-{broker}", "minutes_expected": 60,
                      "read_bytes": cluster.read_bytes[broker, hours],
                      "burst_balance_last_percent": cluster.balances[broker, hours]})
        for broker in range(cluster.brokers)
    ])  # fmt: skip


def _groups(cluster: Cluster) -> pd.DataFrame:
    """Lag of the cluster's slowest group over eight days."""
    hours = np.arange(PAST - 8 * 24, PAST)
    status = np.where(cluster.rewinds[hours], "rewind", "ok")
    return pd.DataFrame({"hour": _hours()[hours], "cluster": cluster.name, "group_id": "slowest", "status": status,
                         "lag_seconds_max": cluster.lag_seconds[hours]})  # fmt: skip


def _applications(cluster: Cluster) -> pd.DataFrame:
    """Streams applications of clusters in which one restores."""
    hours = np.flatnonzero(cluster.restores)
    return pd.DataFrame({"hour": _hours()[hours], "cluster": cluster.name, "app": "totals", "endpoint": "totals-1",
                         "records_to_restore": cluster.restores[hours]})  # fmt: skip


_ROGUE = "consumer_rogue"


def _detector_runs(clusters: list[Cluster]) -> pd.DataFrame:
    """Findings of earlier hours in which a rogue consumer was reported."""
    hours = np.flatnonzero(np.any([c.rogues for c in clusters], axis=0))
    return pd.DataFrame({"hour": _hours()[hours], "detector": _ROGUE, "status": "evaluated", "sql_checksum": "-",
                         "params": "{}", "firing": 1, "ok": 0, "unknown": 0, "seconds": 0.1,
                         "evaluated_at": _hours()[hours] + HOUR})  # fmt: skip


def _rogues(cluster: Cluster) -> pd.DataFrame:
    hours = np.flatnonzero(cluster.rogues)
    return pd.DataFrame({"hour": _hours()[hours], "detector": _ROGUE, "fingerprint": f"rogue of {cluster.name}",
                         "resource_name": cluster.name, "identity": json.dumps({"cluster": cluster.name}),
                         "status": "firing", "severity": "critical", "message": "-", "metrics": "{}",
                         "evaluated_at": _hours()[hours] + HOUR})  # fmt: skip
