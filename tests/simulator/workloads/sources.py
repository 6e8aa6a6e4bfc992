"""Responses of AdminClient, logs, group metadata, and JMX for each cluster in its evaluated hour, as source rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streamwarden.base.config import Config, JmxEndpoint, KafkaCluster
from streamwarden.base.hours import HOUR

from spark_apps.apps import brokers, consumer_groups, jvm_apps
from spark_apps.apps.consumer_groups.positions import positions
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources.kafka_commits import KafkaCommits
from spark_apps.sources.kafka_groups import KafkaGroups
from spark_apps.sources.kafka_log_dirs import KafkaLogDirs
from spark_apps.sources.kafka_topics import KafkaTopics
from tests.simulator.frames import (
    EARLIER_COUNTERS,
    KNOWN_BROKERS,
    KNOWN_COMMITS,
    MEMBERS,
    NO_GROUPS_UNLISTED,
    commits_read,
    null_filled,
    rows_frame,
)
from tests.simulator.scenario import EVALUATED
from tests.simulator.workloads.process_lifetimes import (
    COMMIT_EVERY,
    GIB,
    MEMORY,
    MIB,
    MINUTE,
    NOW,
    SECOND,
    Consumer,
    Group,
    Life,
    Member,
    Process,
    Producer,
    Topic,
    Way,
    Work,
    now,
    until,
)

JMX_AT, OFFSETS_AT = 2 * MINUTE, 3 * MINUTE
"""Delay of a run's reads after the end of its hour."""
SAMPLES = 2
PROCESSES = 2
"""Processes over which the tasks of an application with record ages are spread."""
LOOK_BACK = consumer_groups.LOOK_BACK / HOUR
DIRECTORY = "/var/lib/kafka"
CLIENT_FETCHES = "client_fetch_bytes_per_second"
Rows = list[dict[str, Any]]


def config_of(lives: Sequence[Life]) -> Config:
    """The config: brokers and processes of all clusters."""
    endpoints = [
        JmxEndpoint(role="broker", cluster=life.cluster, url=broker_url(life, broker), broker_id=broker,
                    instance_id=host(life, broker))
        for life in lives for broker in life.brokers
    ]  # fmt: skip
    endpoints += [
        JmxEndpoint(role="app", cluster=life.cluster, app=process.app, url=process_url(life, process),
                    memory_limit_bytes=8 * GIB, instance_id=machine_of(life, process))
        for life in lives for process in life.processes
    ]  # fmt: skip
    endpoints += [
        JmxEndpoint(role="node", cluster=life.cluster, protocol="prometheus", url=node_url(life, process),
                    instance_id=machine)
        for life in lives for process in life.processes if (machine := machine_of(life, process))
    ]  # fmt: skip
    return Config(
        kafka=[KafkaCluster(name=life.cluster, bootstrap_servers="127.0.0.1:1") for life in lives], jmx=endpoints
    )


def broker_url(life: Life, broker: int) -> str:
    return f"http://{host(life, broker)}:8778/jolokia"


def host(life: Life, broker: int) -> str:
    return f"i-{life.cluster.replace('@', '-')}-{broker}"


def process_url(life: Life, process: Process) -> str:
    return f"http://{process.app}-{process.number}.{life.cluster.replace('@', '-')}:8778/jolokia"


def machine_of(life: Life, process: Process) -> str | None:
    """Each process has a host of its own; None: no node exporter."""
    output = process.disk or (process.work and process.work.machine)
    return f"i-{life.cluster.replace('@', '-')}-{process.app}-{process.number}" if output else None


def node_url(life: Life, process: Process) -> str:
    return f"http://{machine_of(life, process)}:9100/metrics"


def topics_and_groups(spark: SparkSession, lives: Sequence[Life], folder: Path) -> dict[str, DataFrame]:
    """Frames of the app consumer_groups."""
    offsets: Rows = []
    commits: Rows = []
    times: Rows = []
    ends: Rows = []
    known: Rows = []
    for life in lives:
        clock = {"cluster": life.cluster, "as_of": life.at(NOW), "read_at": life.at(NOW + OFFSETS_AT)}
        for topic in life.topics.values():
            for partition in range(topic.partitions):
                if partition != topic.leaderless:
                    offsets.append(clock | _log(topic, partition))
                ends.append(_known_end(life, topic, partition))
                for group in life.groups.values():
                    if group.is_listed(NOW):
                        found, written, time = _commits(life, topic, group, partition)
                        known += _known_commit(life, topic, group, partition)
                        offsets += [clock | row for row in found]
                        commits += written
                        times += time
    exact = {"earliest_at": f.col("record_at"), "latest_at": f.col("record_at"),
             "next_offset": f.lit(None).cast("bigint"), "read_end": f.lit(None).cast("bigint")}  # fmt: skip
    read = commits_read(spark, [life.cluster for life in lives])
    output = null_filled(spark, folder / "commits", commits, generation="int", members=MEMBERS, resource="string")
    sources = {
        "kafka_topics": rows_frame(spark, [row for life in lives for row in _topics(life)], KafkaTopics({}).schema()),
        "kafka_groups": rows_frame(spark, [row for life in lives for row in _groups(life)], KafkaGroups({}).schema()),
        "kafka_log_dirs": rows_frame(spark, [row for life in lives for row in _logs(life)], KafkaLogDirs({}).schema()),
        "unlisted_groups": rows_frame(spark, [], NO_GROUPS_UNLISTED),
        "kafka_offsets": null_filled(spark, folder / "offsets", offsets, resource="string"),
        "kafka_commits": output.unionByName(read, allowMissingColumns=True).unionByName(
            _generations(spark, lives), allowMissingColumns=True
        ),
        "kafka_record_times": null_filled(spark, folder / "times", times, resource="string").withColumns(exact),
        "known_ends": null_filled(spark, folder / "ends", ends),
        "known_commits": rows_frame(spark, known, KNOWN_COMMITS),
    }
    sources["positions"] = positions(sources, EVALUATED)
    return consumer_groups.transform(sources, EVALUATED, Config())


def _topics(life: Life) -> Iterator[dict[str, Any]]:
    head = {"cluster": life.cluster, "observed_at": life.at(NOW), "resource_name": life.cluster}
    for topic in life.topics.values():
        where = list(topic.brokers)
        yield head | {
            "topic": topic.name,
            "partitions": [
                {
                    "partition": p,
                    "leader": None if p == topic.leaderless else where[p % len(where)],
                    "replicas": where,
                    "isr": where,
                }
                for p in range(topic.partitions)
            ],
            "configs": settings(topic, NOW),
        }
    for broker, rack in life.racks.items():
        yield head | {"broker": broker, "host": f"{life.cluster}-{broker}", "rack": rack}


def settings(topic: Topic, t: float) -> dict[str, dict[str, str]]:
    """Topic configs as in a DescribeConfigs response."""
    return {name: {"value": value, "source": "dynamic_topic_config"} for name, value in topic.settings(t).items()}


def _groups(life: Life) -> Iterator[dict[str, Any]]:
    for group in life.groups.values():
        if group.is_listed(NOW):
            members = members_of(life, group, NOW + OFFSETS_AT)
            yield {
                "cluster": life.cluster, "group_id": group.name, "protocol": "classic", "resource_name": life.cluster,
                "state": "STABLE" if members else "EMPTY", "members": members, "observed_at": life.at(NOW),
            }  # fmt: skip


def members_of(life: Life, group: Group, t: float) -> Rows:
    """Members of a group at a time, with round-robin assignments."""
    if not group.born <= t < group.died:
        return []
    return [
        {"member_id": f"{group.client}-{n}", "client_id": client, "host": "10.0.0.9", "assignment": partitions}
        for n, (client, partitions) in enumerate(group.assignments(life.topics))
    ]  # fmt: skip


def _logs(life: Life) -> Iterator[dict[str, Any]]:
    head = {"cluster": life.cluster, "log_dir": DIRECTORY, "observed_at": life.at(NOW), "resource_name": life.cluster}
    for broker in life.brokers:
        yield head | {"kind": "log_dir", "broker": broker, "total_bytes": 4000 * GIB, "usable_bytes": 2000 * GIB}
    for topic in life.topics.values():
        for broker in topic.brokers:
            for partition in range(topic.partitions):
                size = int(topic.held(NOW) * topic.share(partition))
                yield head | {
                    "kind": "replica", "broker": broker, "topic": topic.name, "partition": partition,
                    "size_bytes": size, "offset_lag": 0, "is_future": False,
                }  # fmt: skip


def _log(topic: Topic, partition: int) -> dict[str, Any]:
    now = NOW + OFFSETS_AT
    return {
        "kind": "log",
        "topic": topic.name,
        "partition": partition,
        "log_start_offset": topic.start(now, partition),
        "log_end_offset": int(topic.end(now, partition)),
        "last_stable_offset": topic.last_stable(partition, now),
        "offset_at_from": int(topic.end(NOW - 1, partition)),
        "offset_at_to": int(topic.end(NOW, partition)),
        "recent_offset": int(topic.end(NOW - MINUTE, partition)),
    }


def _known_end(life: Life, topic: Topic, partition: int) -> dict[str, Any]:
    """End offset of the log when the previous hour was read."""
    seen = NOW - 1 + OFFSETS_AT
    at = {"cluster": life.cluster, "topic": topic.name, "partition": partition}
    return at | {"log_end_offset": int(topic.end(seen, partition)), "known_at": life.at(seen)}


def _known_commit(life: Life, topic: Topic, group: Group, partition: int) -> Rows:
    """The time of the last commit of a partition, as stored by the previous hour."""
    offset, at = group.committed(topic, partition, NOW - 1), group.committed_at(NOW - 1, topic.name)
    if offset is None or at is None or at < NOW - life.known:
        return []
    place = {"cluster": life.cluster, "group_id": group.name, "topic": topic.name, "partition": partition}
    return [place | {"known_offset": offset, "known_committed_at": life.at(at)}]


def _commits(life: Life, topic: Topic, group: Group, partition: int) -> tuple[Rows, Rows, Rows]:
    """Present commits of the group, its commits of the hour, and the time of the first uncommitted record."""
    place = {"group_id": group.name, "topic": topic.name, "partition": partition}
    now = group.committed(topic, partition, NOW + OFFSETS_AT)
    if now is None:
        return [], [], []
    found = [place | {"kind": "committed", "committed_offset": now}]
    moments = set()
    t = NOW - SECOND
    while t > NOW - 1 - LOOK_BACK:
        at = group.committed_at(t)
        if at is not None and at > NOW - 1 - LOOK_BACK and topic.name in group.topics:
            moments.add(at)
        t -= max(COMMIT_EVERY, group.commit_every)
    written: Rows = [
        {"cluster": life.cluster, "kind": "commit"} | place | {
            "committed_offset": group.committed(topic, partition, at), "committed_at": life.at(at),
            "log_partition": 0, "log_offset": n * topic.partitions + partition, "written_at": life.at(at),
        }
        for n, at in enumerate(sorted(moments))
        if n == 0 or not _stands(group, topic, partition, at)
    ]  # fmt: skip
    last = int(written[-1]["committed_offset"]) if written else now
    waits = last < topic.end(NOW + OFFSETS_AT, partition)
    first = {"cluster": life.cluster, "topic": topic.name, "partition": partition, "offset": last}
    return found, written, [first | {"record_at": life.at(float(topic.time_of(last, partition)))}] if waits else []


def _stands(group: Group, topic: Topic, partition: int, t: float) -> bool:
    """A group that is stuck commits nothing."""
    return (topic.name, partition) in group.own_paths and group.committed(topic, partition, t) == group.committed(
        topic, partition, t - COMMIT_EVERY
    )


def _generations(spark: SparkSession, lives: Sequence[Life]) -> DataFrame:
    """Group metadata records with members, as far as they are read."""
    rows: Rows = [
        {
            "cluster": life.cluster, "kind": "group", "group_id": group.name, "generation": number,
            "written_at": life.at(each.began), "log_partition": 0, "log_offset": number,
            "members": each.members and [_member_of(group, member) for member in each.members],
        }
        for life in lives for group in life.groups.values() for number, each in enumerate(group.generations, 1)
        if NOW - 1 - LOOK_BACK < each.began < NOW
    ]  # fmt: skip
    return rows_frame(spark, rows, KafkaCommits({}).schema())


def _member_of(group: Group, member: Member) -> dict[str, Any]:
    timeouts = {"poll_interval_ms": group.poll_interval, "session_timeout_ms": group.session_timeout}
    output = {"member_id": member.member_id, "client_id": member.client, "host": member.host}
    return output | {name: round(t / SECOND * 1000) for name, t in timeouts.items()} | {"assignment": member.assignment}


def broker_counters(spark: SparkSession, lives: Sequence[Life], config: Config, folder: Path) -> dict[str, DataFrame]:
    """Frames of the app brokers from the counters of this run and of the previous one."""
    now: Rows = []
    before: Rows = []
    for life in lives:
        for broker in life.brokers:
            for rows, t in ((before, NOW - 1 + JMX_AT), (now, NOW + JMX_AT)):
                key = {"cluster": life.cluster, "endpoint": broker_url(life, broker), "at": life.at(t),
                       "process_started_at": life.at(-24)}  # fmt: skip
                rows += [key | {"metric": metric, "labels": json.dumps(labels), "value": value}
                         for metric, labels, value in _broker(life, broker, t)]  # fmt: skip
    kind = f.when(f.col("metric").endswith("_total"), "counter").otherwise("gauge")
    sources = {
        "jmx": null_filled(spark, folder / "now", now).withColumns({"kind": kind, "resource": f.col("endpoint")}),
        "earlier_counters": null_filled(spark, folder / "before", before)
        .filter("metric like '%_total'")
        .drop("gap", "process_started_at"),
        "known_brokers": rows_frame(spark, [], KNOWN_BROKERS),
    }
    frames = brokers.transform(sources, EVALUATED, config)
    frames["metrics.broker_sample"] = frames["metrics.broker_sample"].filter(f.col("metric") == CLIENT_FETCHES)
    frames["metrics.broker_topic_sample"] = frames["metrics.broker_topic_sample"].limit(0)
    return frames


def _broker(life: Life, broker: int, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """Counters of a broker since its start, and its gauges: an equal share of the traffic of each topic."""
    for client, rate in life.clients.items():
        yield CLIENT_FETCHES, {"client": client, "user": ""}, rate / len(life.brokers)
    totals = dict.fromkeys(("bytes_in_total", "bytes_out_total", "messages_in_total", "fetch_requests_total"), 0.0)
    partitions = 0
    for topic in life.topics.values():
        if broker not in topic.brokers or topic.made > t:
            continue
        share = 1 / len(topic.brokers)
        partitions += topic.partitions
        counters = {
            "bytes_in_total": float(topic.bytes(t)) * share,
            "bytes_out_total": float(life.sent(topic, t)) * share,
            "messages_in_total": topic.end(t) * topic.partitions * share,
            "fetch_requests_total": life.fetched(topic, t) * share,
        }
        for name, value in counters.items():
            totals[name] += value
            yield name, {"topic": topic.name}, value
        yield "log_bytes", {"topic": topic.name}, topic.held(t)
    followed = totals["bytes_in_total"] * (len(life.brokers) - 1)
    whole = totals | {
        "replication_bytes_out_total": followed, "replication_bytes_in_total": followed,
        "partitions": float(partitions), "leaders": partitions / len(life.brokers), "under_replicated_partitions": 0.0,
        "request_handler_idle_ratio": life.handlers_idle,
    }  # fmt: skip
    others = len(life.brokers) - 1
    yield "requests_total", {"request": "FetchFollower"}, others * life.follower_fetches_until(t)
    yield from ((name, {}, value) for name, value in whole.items())


def processes(spark: SparkSession, lives: Sequence[Life], config: Config, folder: Path) -> dict[str, DataFrame]:
    """Frames of the app jvm_apps from the processes' MBeans."""
    rows: Rows = []
    for life in lives:
        for process in life.processes:
            now_and_again = [NOW + JMX_AT + n * 30 * SECOND for n in range(SAMPLES)]
            for t in [NOW - 1 + n / 12 for n in range(13)] if process.is_archived else now_and_again:
                if t >= process.silent_from:
                    continue
                head = {"cluster": life.cluster, "role": "app", "app": process.app,
                        "endpoint": process_url(life, process), "at": life.at(t),
                        "process_started_at": life.at(process.started(t))}  # fmt: skip
                rows += [head | one for one in _readings(_beans(process, t))]
                head |= {"role": "node", "app": None, "endpoint": node_url(life, process)}
                if process.work and process.work.machine:
                    rows += [head | one for one in _readings(_machine(process, process.work, t))]
                if process.disk:
                    rows += [head | one for one in _readings(_file_system(*process.disk))]
    jmx = null_filled(spark, folder / "jmx", rows).withColumns({"resource": f.col("endpoint")})
    sources = {"jmx": jmx, "earlier_counters": driver_rows(spark, _counted_before(lives), EARLIER_COUNTERS)}
    return jvm_apps.transform(sources, EVALUATED, config)


def _counted_before(lives: Sequence[Life]) -> list[tuple[Any, ...]]:
    """Counters of an hour ago, of processes with counters."""
    then = NOW - 1 + JMX_AT
    return [
        (life.cluster, endpoint, one["metric"], one["labels"], life.at(then), one["value"])
        for life in lives
        for process in life.processes
        if process.reads or process.producers or process.consumers
        for endpoint, beans in (
            (process_url(life, process), _beans(process, then)),
            (node_url(life, process), _machine(process, process.work, then) if process.work else ()),
        )
        for one in _readings(beans)
        if one["kind"] == "counter"
    ]


def _readings(beans: Iterable[tuple[str, dict[str, str], float]]) -> Rows:
    return [
        {"metric": metric, "labels": json.dumps(labels, sort_keys=True), "value": value,
         "kind": "counter" if metric.endswith("_total") else "gauge"}
        for metric, labels, value in beans
    ]  # fmt: skip


def _beans(process: Process, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    alive, failed = process.alive(t)
    whole = {
        "physical_memory_bytes": float(MEMORY), "processors": 4.0, "heap_max_bytes": 2.0 * GIB,
        "heap_used_bytes": 1.0 * GIB, "non_heap_used_bytes": 120.0 * MIB, "threads": 60.0,
    }  # fmt: skip
    yield from ((name, {}, value) for name, value in whole.items())
    for producer in process.producers:
        yield from _produced(producer, t)
    for consumer in process.consumers:
        yield from _consumed(consumer, t)
    if process.application_id is None:
        return
    yield "streams_info", {"application_id": process.application_id}, 1.0
    yield "streams_state", {"state": process.state(t)}, 1.0
    if alive is not None:
        yield "stream_threads_alive", {}, float(alive)
    if process.to_restore:
        since = (t - NOW - JMX_AT) / SECOND
        yield "records_to_restore", {}, process.to_restore - process.restores_per_second * since
    if failed is not None:
        yield "stream_threads_failed", {}, float(failed)
    if process.latency_ms is not None:
        yield "process_latency_mean_ms", {"thread": "1"}, process.latency_ms
        yield "poll_ratio", {"thread": "1"}, process.poll_ratio
    if process.reads:
        yield "records_processed_total", {}, process.processed(t)
    if process.work:
        yield from _work(process, process.work, t)
    if process.way:
        yield from _ages(process, process.way, t)
    for store in process.stores:
        tasks = int(store.tasks[NOW])
        for task in range(tasks):
            labels = {"kind": store.kind, "store": store.name, "task": f"{process.number}_{task}"}
            yield "sst_bytes", labels, float(store.size[NOW]) / tasks
            yield "keys", labels, float(store.keys[NOW]) / tasks
            yield "memtable_bytes", labels, 8.0 * MIB
            yield "block_cache_capacity_bytes", labels, 50.0 * MIB
            yield "block_cache_usage_bytes", labels, 20.0 * MIB + task * MIB
            yield "table_readers_bytes", labels, 200_000.0


def _produced(producer: Producer, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """Total counters since the start, overall and for its topic."""
    client = {"client": producer.client}
    sent, lost = producer.records * t, until(producer.gives_up, t, float)
    yield "producer_records_total", client, sent
    yield "producer_record_errors_total", client, lost
    yield "producer_buffer_exhausted_total", client, until(producer.has_no_room_for, t, float)
    yield "producer_topic_records_total", client | {"topic": producer.topic}, sent
    yield "producer_topic_record_errors_total", client | {"topic": producer.topic}, lost


def _consumed(consumer: Consumer, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """Total counters since the start."""
    client = {"client": consumer.client}
    yield "consumer_fetches_total", client, consumer.fetches(t)
    yield "consumer_records_total", client, consumer.records(t)
    yield "consumer_bytes_total", client, consumer.bytes(t)
    yield "consumer_network_in_bytes_total", client, consumer.received(t)


def _ages(process: Process, way: Way, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """Record ages of each task, at the source node and at the terminal node."""
    if way.reports_topics:
        yield "reads_topic", {"node": "source", "topic": way.topic.name}, 1.0
    for partition in range(process.number, way.topic.partitions, PROCESSES):
        task = f"0_{partition}"
        if way.holds_back:
            yield "holds_back", {"node": "windows", "task": task}, 1.0
        ages = way.ages(partition, t)
        for node, of_node in zip(("source", "sink"), ages or (), strict=False):
            for metric, age in zip(("min", "mean", "max"), of_node, strict=True):
                yield f"record_age_{metric}_ms", {"node": node, "task": task}, age


def _work(process: Process, work: Work, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """Work, waits, and CPU of its stream threads, by metrics of Kafka and the JVM."""
    stopped = until(work.collecting, t, lambda hours: hours * 3600)
    used = until(work.cpu, t, process.processed) / 1000 + work.overhead * t * 3600 + 2 * stopped
    yield "cpu_seconds_total", {}, used
    yield "gc_seconds_total", {"collector": "G1 Young Generation"}, stopped
    yield "system_cpu_ratio", {}, 0.95 if work.machine == "full" else work.seen_cpu
    yield "producer_wait_seconds_total", {}, until(work.sending, t, process.processed) / 1000
    if work.exposes_latency:
        yield "process_latency_mean_ms", {"thread": "1"}, work.latency(t)
        yield "poll_ratio", {"thread": "1"}, 1 - process.busy(NOW)
    if work.disk:
        labels = {"kind": "key_value", "store": "prices", "task": f"0_{process.number}"}
        yield "sst_bytes", labels, 1.0 * GIB
        yield "memtable_bytes", labels, 8.0 * MIB
        yield "block_cache_usage_bytes", labels, 20.0 * MIB
        yield "block_cache_capacity_bytes", labels, 50.0 * MIB
        yield "table_readers_bytes", labels, 200_000.0
    if work.pool:
        waiting = now(work.pool, t)
        yield "pool_connections", {}, 2.0
        yield "pool_connections_in_use", {}, 2.0 if waiting else 0.0
        yield "pool_threads_waiting", {}, waiting
    if work.has_limit:
        # From then on throttled in each CFS period in which a thread is runnable.
        wanted = 1 - (1 - process.busy(NOW)) ** process.alive(t)[0]
        share = [(since, wanted if stretch > 1 else 0.0) for since, stretch in work.stretched]
        yield "cpu_periods_total", {}, t * 36_000
        yield "throttled_periods_total", {}, until(share, t, lambda hours: hours * 36_000)


def _machine(process: Process, work: Work, t: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """Node exporter readings of its host with four CPUs and one disk."""
    used = (process.processed(NOW) - process.processed(NOW - 1)) * now(work.cpu, NOW) / 3_600_000 + work.overhead
    others = {"calm": 0.1, "full": 3.8 - used, "stolen": 0.0}[work.machine or "calm"]
    stolen = used * (now(work.stretched, NOW) - 1) if work.machine == "stolen" else 0.0
    modes = {"user": used + others, "steal": stolen, "iowait": 0.0, "idle": 4 - used - others - stolen}
    for mode, processors in modes.items():
        yield "machine_cpu_seconds_total", {"mode": mode}, processors * t * 3600
    records = (process.processed(NOW) - process.processed(NOW - 1)) / process.alive(t)[0]
    reading = min(records * now(work.disk, NOW) / 3_600_000, 1.0) if work.disk else 0.0
    busy = 1 - (1 - reading) ** process.alive(t)[0] * 0.99
    yield "disk_busy_seconds_total", {"device": "nvme1n1"}, busy * t * 3600


def _file_system(size: float, available: float) -> Iterator[tuple[str, dict[str, str], float]]:
    """The file system of its stores, by node exporter of its host."""
    of = {"mountpoint": "/data", "device": "/dev/nvme1n1", "fstype": "xfs"}
    yield "file_system_bytes", of, size
    yield "file_system_available_bytes", of, available
    yield "file_system_read_only", of, 0.0
