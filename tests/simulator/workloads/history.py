"""Rows of the hours before the evaluated one.

The apps run for the evaluated hour only, because forty days and more per cluster would take them hours. The rows that
detectors read are computed here as the apps would: from the same cumulated records, bytes, and positions as the sources
of the evaluated hour, at the times of the runs. Constant rows (topics and their configs) are copied from the app's
output of the evaluated hour to each day since the topic was created. Rows per partition are written for each day, for
the hours that detectors read hour by hour, and for all hours of a week in which a group read with much lag.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from streamwarden.base.hours import HOUR

from tests.simulator.bench import Bench
from tests.simulator.cluster_sources import copy
from tests.simulator.scenario import EVALUATED
from tests.simulator.volume_kinds import ACCOUNT, REGION
from tests.simulator.workloads.process_lifetimes import (
    COMMIT_EVERY,
    DAY,
    GIB,
    MEMORY,
    NEVER,
    NOW,
    SECOND,
    Group,
    Life,
    Member,
    Process,
    Topic,
)
from tests.simulator.workloads.sources import JMX_AT, OFFSETS_AT, broker_url, host, members_of, process_url, settings

Members = tuple[Member, ...] | None
WEEK = 7 * DAY
LATELY = (1, 2, 3, 4, 5, 6, 23, 24, 25, 26)
"""Hours before the evaluated one that detectors read hour by hour."""
COLD = 1.0
"""Lag in hours from which on a group may have read records that were not in the page cache."""


def write(bench: Bench, lives: Sequence[Life]) -> None:
    """Writes all previous hours, and the instances of the evaluated hour."""
    with bench.warehouse.begin() as connection:
        first = EVALUATED - timedelta(hours=max(life.known for life in lives))
        days = {first.replace(day=1), EVALUATED}
        while max(days - {EVALUATED}) < EVALUATED - timedelta(days=31):
            days.add((max(days - {EVALUATED}) + timedelta(days=32)).replace(day=1))
        for day in sorted(days):
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day.date()})
        for table, rows in TABLES.items():
            copy(connection, table, *(frame.dropna(axis=1, how="all") for life in lives for frame in rows(life)))
        connection.exec_driver_sql(_LIFE)
        copy(connection, "pg_temp.life", *(_topics(life).dropna(axis=1, how="all") for life in lives))
        connection.exec_driver_sql(_COPY_BACK, {"hour": EVALUATED})
        connection.exec_driver_sql("analyze")


_LIFE = """
    create temp table life (cluster text, topic text, days int, until timestamptz, configs jsonb, grown_at timestamptz,
      partitions int) on commit drop"""
_COPY_BACK = """
    insert into inventory.topic_hourly
      (hour, cluster, topic, partitions, replication_factor, kind, application_id, cleanup_policy, retention_ms,
       segment_bytes, configs, observed_at)
    select
      then_.hour, t.cluster, t.topic, case when then_.hour < l.grown_at then l.partitions else t.partitions end,
      t.replication_factor, t.kind, t.application_id, t.cleanup_policy,
      t.retention_ms, t.segment_bytes, case when then_.hour < l.until then l.configs else t.configs end, then_.hour
    from inventory.topic_hourly as t
    inner join life as l using (cluster, topic)
    cross join generate_series(1, l.days) as n (ago)
    cross join lateral (select t.hour - make_interval(days => n.ago) as hour) as then_
    where t.hour = %(hour)s"""


def _topics(life: Life) -> pd.DataFrame:
    """Topics by day since their creation, with their configs before a change."""
    rows = []
    for topic in life.topics.values():
        until, old = (life.at(topic.configs_before[0]), settings(topic, 0)) if topic.configs_before else (None, None)
        grown_at, count = topic.partitions_before or (None, None)
        grown = (life.at(grown_at) if grown_at is not None else None, count)
        days = int(min(life.known, NOW - max(topic.made, 0)) // DAY)
        rows.append((life.cluster, topic.name, days, until, json.dumps(old) if old else None, *grown))
    columns = ["cluster", "topic", "days", "until", "configs", "grown_at", "partitions"]
    return pd.DataFrame(rows, columns=columns).astype({"partitions": "Int64"})


def _ends(life: Life, most: float = NEVER) -> np.ndarray:
    """Ends of the previous hours, in hours since the start of the simulation."""
    return np.arange(NOW - 1, NOW - min(life.known, most) - 1, -1)


def _asked(life: Life) -> np.ndarray:
    """Ends of the hours with rows per partition: see the module. For uneven partitions, those of two weeks."""
    ago = {*range(DAY, life.known, DAY), *LATELY}
    if any(topic.shares is not None for topic in life.topics.values()):
        ago |= {*range(1, 2 * WEEK)}
    week = np.arange(1, WEEK + 1)
    for group in life.groups.values():
        late = np.maximum(*((NOW - week + d) - group.read_up_to(NOW - week + d) for d in (0, 1e-5))) > COLD
        back = np.diff(group.read_up_to(NOW - np.arange(WEEK + 2)), prepend=0)[1:] > 0
        ago |= {int(n) + d for n in week[late | back[: len(week)]] for d in (-1, 0, 1) if n + d > 0}
    return NOW - np.array(sorted(n for n in ago if n <= life.known), float)


def _moments(life: Life, moments: Any) -> pd.Series:
    """The times of these hours in the warehouse."""
    since = pd.to_timedelta(np.asarray(moments, float) * 3600, unit="s").round("s")
    return pd.Series(pd.Timestamp(life.at(0)) + since)


def _hours(life: Life, ends: Any) -> pd.Series:
    return _moments(life, np.asarray(ends, float) - 1)


def _topic_hours(life: Life) -> Iterator[pd.DataFrame]:
    for topic in life.topics.values():
        ends = _ends(life)
        ends = ends[ends > topic.made]
        to, start = ends + JMX_AT, ends - 1 + JMX_AT
        yield pd.DataFrame(
            {
                "hour": _hours(life, ends), "cluster": life.cluster, "topic": topic.name, "brokers": len(topic.brokers),
                "covered_seconds": 3600.0,
                "counted_from": _moments(life, start), "counted_to": _moments(life, to),
                "bytes_in": topic.bytes(to) - topic.bytes(start),
                "bytes_out": life.sent(topic, to) - life.sent(topic, start),
                "messages_in": (topic.end(to) - topic.end(start)) * topic.partitions,
                "log_bytes": topic.held(NOW) * len(topic.brokers),
            }
        )  # fmt: skip


def _partition_hours(life: Life) -> Iterator[pd.DataFrame]:
    for topic in life.topics.values():
        ends = _asked(life)
        ends = ends[ends > topic.made]
        now = ends + OFFSETS_AT
        partition = np.repeat(np.arange(topic.partitions), len(ends))
        stable = (
            [topic.last_stable(p, float(t)) for p in range(topic.partitions) for t in now] if topic.stable else None
        )
        each = range(topic.partitions) if topic.shares is not None else (None,)
        logs = [pd.DataFrame(_log_hours(life, topic, one, ends)) for one in each]
        rows = pd.concat(logs * (topic.partitions // len(logs)), ignore_index=True)
        yield rows.assign(
            cluster=life.cluster, topic=topic.name, partition=partition,
            leader=np.array(topic.brokers)[partition % len(topic.brokers)],
            replicas=len(topic.brokers), isr=len(topic.brokers),
            last_stable_offset=stable if stable else rows["log_end_offset"],
        )  # fmt: skip


def _log_hours(life: Life, topic: Topic, partition: int | None, ends: np.ndarray) -> dict[str, Any]:
    """The log of a partition, or of the mean one, at the ends of these hours."""
    now = ends + OFFSETS_AT
    end = topic.end(now, partition).astype(int)
    return {
        "hour": _hours(life, ends), "log_start_offset": [topic.start(float(t), partition) for t in now],
        "log_end_offset": end, "log_end_offset_first": topic.end(ends - 1, partition).astype(int),
        "log_end_offset_last": topic.end(ends, partition).astype(int),
        "last_stable_offset": end, "offsets_at": _moments(life, now),
    }  # fmt: skip


def _place(topic: Topic, group: Group, partition: int, end: float) -> dict[str, Any] | None:
    """Committed offset of a partition at the end of an hour, and records read in the hour."""
    offset = group.committed(topic, partition, end)
    at = group.committed_at(end, topic.name)
    if offset is None or at is None:
        return None
    log_end = int(topic.end(end, partition))
    read = np.array([group.read_of(topic.name, partition, t) for t in np.linspace(end - 1, end, 13)])
    steps = topic.end(read, partition)
    moved = np.diff(np.minimum(steps, topic.last_stable(partition, end)) if group.stops_at_open else steps)
    lag = max(log_end - max(offset, topic.start(end, partition)), 0) if offset <= log_end else None
    commits = 0 if at < end - 1 or topic.name in group.left else max(1, round(1 / max(group.commit_every, 1 / 12)))
    return {
        "committed_offset": offset,
        "committed_at": at,
        "log_end_offset": log_end,
        "lag_records": lag,
        "lag_seconds": None if lag is None else max(end - topic.time_of(offset, partition), 0) * 3600 if lag else 0.0,
        "commits": commits,
        "records_consumed": int(np.maximum(moved, 0).sum()) if commits else 0,
        "consumed_seconds": 3300.0 if commits > 1 else None,
        "commit_gap_p95_seconds": max(group.commit_every, COMMIT_EVERY) * 3600 if commits > 1 else None,
        "rewinds": int((moved < 0).sum()),
        "arriving_per_second": (log_end - topic.end(end - 1, partition)) / 3600,
    }


def _places(life: Life, group: Group) -> Iterator[dict[str, Any]]:
    """Rows per partition; partitions differ only by open transactions, uneven traffic, or a position of their own."""
    for name in (*group.topics, *group.left):
        topic = life.topics[name]
        for end in map(float, _asked(life)):
            if end <= topic.made or not group.is_listed(end):
                continue
            for partition in range(topic.partitions):
                of_its_own = {(name, partition - 1), (name, partition)} & {*group.own_paths}
                if partition == 0 or topic.shares is not None or of_its_own or (topic.stable and group.stops_at_open):
                    place = _place(topic, group, partition, end)
                if place:
                    yield {"end": end, "topic": name, "partition": partition} | place


def _consumer_partition_hours(life: Life) -> Iterator[pd.DataFrame]:
    for group in life.groups.values():
        rows = pd.DataFrame(_places(life, group))
        if len(rows):
            has_members = (rows["end"] >= group.born) & (rows["end"] < group.died)
            yield rows.drop(columns="end").assign(
                hour=_hours(life, rows["end"]), cluster=life.cluster, group_id=group.name,
                lag_records=rows["lag_records"].astype("Int64"),
                committed_at=_moments(life, rows["committed_at"].where(rows["committed_at"] >= NOW - life.known)),
                client_id=pd.Series(group.client, rows.index).where(has_members & rows["topic"].isin(group.topics)),
            )  # fmt: skip


def _consumer_group_hours(life: Life) -> Iterator[pd.DataFrame]:
    """One partition represents all partitions of each topic, because they are equal."""
    for group in life.groups.values():
        ends = np.array([t for t in _ends(life) if group.is_listed(t)], float)
        there = {
            "hour": _hours(life, ends), "cluster": life.cluster, "group_id": group.name,
            "members": np.where(ends < group.died, group.members, 0), "lag_unknown_partitions": 0, "rebalances": 0,
        }  # fmt: skip
        every = _steady(life, group, ends)
        yield pd.DataFrame(there | every)


def _steady(life: Life, group: Group, ends: np.ndarray) -> dict[str, Any]:
    """Lag and commits of a group at the end of each hour."""
    count = sum(life.topics[name].partitions for name in (*group.topics, *group.left) if name not in group.silent_on)
    if not group.commit_every:
        none = np.zeros(len(ends), int)
        return {"topics": none, "partitions": none, "commits": none}
    lag, seconds, consumed = (np.zeros(len(ends)) for _ in range(3))
    rewound = np.zeros(len(ends), bool)
    at = np.array([group.committed_at(t) or 0.0 for t in ends])
    for name in group.topics:
        topic = life.topics[name]
        if name in group.silent_on:
            continue
        offset = topic.end(group.read_up_to(at))
        if name in group.offsets:
            offset = np.full(len(ends), group.offsets[name])
        behind = np.maximum(topic.end(ends) - offset, 0)
        late = (ends - topic.time_of(offset)) * 3600
        seconds = np.maximum(seconds, np.where(behind > 0, np.maximum(late, 0), 0))
        lag += behind * topic.partitions
        steps = np.diff(topic.end(group.read_up_to(ends[:, None] - np.linspace(1, 0, 13))), axis=1)
        consumed += np.maximum(steps, 0).sum(axis=1) * topic.partitions
        rewound |= (steps < 0).any(axis=1) & (late > 60)
    alive = (ends >= group.born) & (ends < group.died + SECOND)
    per_hour = max(1, round(1 / max(group.commit_every, 1 / 12)))
    return {
        "topics": len(group.topics), "partitions": count,
        "lag_records": lag.astype(int), "lag_seconds_max": seconds,
        "commits": np.where(alive, per_hour * count, 0), "records_consumed": consumed.astype(int),
        "busy_member_per_second": np.where(seconds >= 4500, consumed / 3600 / max(group.members, 1), np.nan),
        "status": np.where(rewound, "rewind", np.where(seconds < 60, "ok", np.where(alive, "warn", "stop"))),
    }  # fmt: skip


def _steps(life: Life) -> Iterator[pd.DataFrame]:
    """Rows of the hour before the evaluated one."""
    for group in life.groups.values():
        rows = [
            {"hour": life.at(NOW - 2), "cluster": life.cluster, "group_id": group.name, "generation": number,
             "began_at": life.at(now.began), "members": None if now.members is None else len(now.members),
             "gone": _not_in(before.members, now.members, "client", "host", "assignment"),
             "come": _not_in(now.members, before.members, "client", "host"),
             "poll_interval_ms": round(group.poll_interval / SECOND * 1000) if now.members else None,
             "session_timeout_ms": round(group.session_timeout / SECOND * 1000) if now.members else None}
            for number, (before, now) in enumerate(pairwise(group.generations), 2)
            if NOW - 2 <= now.began < NOW - 1
        ]  # fmt: skip
        if rows:
            yield pd.DataFrame(rows).astype(
                dict.fromkeys(("members", "poll_interval_ms", "session_timeout_ms"), "Int64")
            )


def _not_in(of: Members, than: Members, *names: str) -> str | None:
    """JSON of the members of `of` whose ids are not in `than`, with these attributes; None if either is unknown."""
    if of is None or than is None:
        return None
    known = {member.member_id for member in than}
    output = [{name: getattr(member, name) for name in names} for member in of if member.member_id not in known]
    return json.dumps(
        [{{"client": "client_id"}.get(name, name): value for name, value in one.items()} for one in output]
    )


def _members(life: Life) -> Iterator[pd.DataFrame]:
    rows = [
        {"hour": life.at(float(end)) - HOUR, "cluster": life.cluster, "group_id": group.name,
         "member_id": member["member_id"], "client_id": member["client_id"], "host": member["host"],
         "assignment": json.dumps(member["assignment"])}
        for group in life.groups.values()
        for end in NOW - np.array(LATELY)
        if group.is_listed(end)
        for member in members_of(life, group, float(end) + OFFSETS_AT)
    ]  # fmt: skip
    yield pd.DataFrame(rows)


def _broker_hours(life: Life) -> Iterator[pd.DataFrame]:
    ends = _ends(life, WEEK)
    for broker in life.brokers:
        of = [topic for topic in life.topics.values() if broker in topic.brokers]
        shares, none = [(t, 1 / len(t.brokers) / 3600) for t in of], np.zeros(len(ends))
        read = sum(((t.bytes(ends) - t.bytes(ends - 1)) * share for t, share in shares), none)
        sent = sum(((life.sent(t, ends) - life.sent(t, ends - 1)) * share for t, share in shares), none)
        yield pd.DataFrame(
            {
                "hour": _hours(life, ends), "cluster": life.cluster, "broker_id": broker,
                "endpoint": broker_url(life, broker), "instance_id": host(life, broker),
                "process_started_at": life.at(-24.0), "samples": 2, "covered_seconds": 3600.0,
                "bytes_in_per_second": read, "bytes_out_per_second": sent, "under_replicated_partitions_max": 0,
                "replication_bytes_out_per_second": read * (len(life.brokers) - 1), "partitions": 1,
            }
        )  # fmt: skip


def _volume_hours(life: Life) -> Iterator[pd.DataFrame]:
    """Volumes of a week and of the evaluated hour; the app ebs_volumes is scored in another part."""
    ends = np.concatenate([[NOW], _ends(life, WEEK)])
    cold = life.cold(np.array(ends - 1, int)) / len(life.brokers)
    for broker in life.brokers:
        noise = life.draws.lognormal(0, 0.2, len(ends))
        yield pd.DataFrame(
            {
                "hour": _hours(life, ends), "account": ACCOUNT, "region": REGION,
                "volume_id": f"vol-{host(life, broker)}",
                "known_until": _moments(life, ends), "minutes_expected": 60, "minutes_present": 60,
                "read_bytes": life.other_reads * 3600 * noise + cold,
            }
        )  # fmt: skip


def _volumes(life: Life) -> Iterator[pd.DataFrame]:
    yield pd.DataFrame(
        [
            {"hour": EVALUATED, "account": ACCOUNT, "region": REGION, "volume_id": f"vol-{host(life, broker)}",
             "volume_type": "gp3", "size_gib": 4000, "state": "in-use", "instance_id": host(life, broker),
             "tags": "{}", "observed_at": EVALUATED}
            for broker in life.brokers
        ]
    )  # fmt: skip


def _instances(life: Life) -> Iterator[pd.DataFrame]:
    yield pd.DataFrame(
        [
            {"hour": EVALUATED, "account": ACCOUNT, "region": REGION, "instance_id": host(life, broker),
             "instance_type": "r5.xlarge", "state": "running", "memory_bytes": MEMORY, "tags": "{}",
             "observed_at": EVALUATED}
            for broker in life.brokers
        ]
    )  # fmt: skip


def _process_hours(life: Life) -> Iterator[pd.DataFrame]:
    """Hourly rows for eight days, or for two weeks if latency is exposed; one row per day before."""
    for process in life.processes:
        days = 14 if process.latency_ms or process.work else 8
        ends = [*_ends(life, days * DAY), *range(NOW - (days + 1) * DAY, NOW - life.known, -DAY)]
        rows = []
        for end in ends:
            t = float(end) + JMX_AT
            is_there, (alive, failed) = process.starts[0] <= t < process.silent_from, process.alive(t)
            if t < process.starts[0]:
                continue
            rows.append(
                {"hour": life.at(float(end)) - HOUR, "cluster": life.cluster, "app": process.app,
                 "endpoint": process_url(life, process), "application_id": process.application_id if is_there else None,
                 "process_started_at": life.at(process.started(t)) if is_there else None,
                 "samples": "2" if is_there else None, "threads": 60 if is_there else None,
                 "heap_max_bytes": 2 * GIB if is_there else None,
                 "record_latency_ms": _latency(life, process, t) if is_there else None,
                 "records_processed": process.processed(t) - process.processed(t - 1) if is_there else None,
                 "poll_ratio": process.poll_ratio if is_there and process.latency_ms else None,
                 "streams_state": process.state(t) if is_there and process.application_id else None,
                 "stream_threads_alive": str(alive) if is_there and alive is not None else None,
                 "stream_threads_failed": str(failed) if is_there and failed is not None else None,
                 "restored_records_per_second": next(
                     (rate for at, rate in process.restored if end - 1 < at <= end), None
                 )}
            )  # fmt: skip
        yield pd.DataFrame(rows)


def _latency(life: Life, process: Process, t: float) -> float | None:
    if process.work:
        return process.work.latency(t) * life.draws.lognormal(0, 0.1) if process.work.exposes_latency else None
    return process.latency_ms


def _store_hours(life: Life) -> Iterator[pd.DataFrame]:
    ends = _ends(life, WEEK + 2 * DAY)
    for process in life.processes:
        for store in process.stores:
            there = ends[(store.tasks[ends] > 0) & (ends > process.starts[0])]
            yield pd.DataFrame(
                {
                    "hour": _hours(life, there), "cluster": life.cluster, "app": process.app,
                    "endpoint": process_url(life, process), "store": store.name, "kind": store.kind,
                    "tasks": store.tasks[there].astype(int), "segments": 1 if store.kind == "key_value" else 3,
                    "sst_bytes": store.size[there], "keys": store.keys[there],
                }
            )  # fmt: skip


TABLES: dict[str, Callable[[Life], Iterator[pd.DataFrame]]] = {
    "metrics.topic_hourly": _topic_hours,
    "metrics.partition_hourly": _partition_hours,
    "metrics.consumer_partition_hourly": _consumer_partition_hours,
    "metrics.consumer_group_hourly": _consumer_group_hours,
    "metrics.group_step_hourly": _steps,
    "inventory.consumer_member_hourly": _members,
    "metrics.broker_hourly": _broker_hours,
    "metrics.volume_hourly": _volume_hours,
    "inventory.volume_hourly": _volumes,
    "inventory.instance_hourly": _instances,
    "metrics.jvm_app_hourly": _process_hours,
    "metrics.state_store_memory_hourly": _store_hours,
}
