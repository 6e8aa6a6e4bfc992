"""What an hour of a large cluster takes in the warehouse: 8 brokers, 10,000 topics, 100,000 partitions, 300 groups.

Every column is filled but for those that are null while all is well; there are no findings in it.
`python -m tests.bench.size` writes the table of docs/deploy.md from the same figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import sqlalchemy as sa
from streamwarden.base.config import Warehouse
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.base.warehouse import engine
from streamwarden.store.housekeeping import retention_days
from streamwarden.store.migrate import migrate

from tests.bench.metric import Metric
from tests.conftest import a_database

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
LIMIT_MB = 100
TOPICS, GROUPS, VOLUMES = 10_000, 300, 100
DEPLOY = PROJECT_ROOT / "docs" / "deploy.md"
BEGIN, END = "<!-- Made by `python -m tests.bench.size`. -->\n", "<!-- End of it. -->\n"
# 10 partitions a topic, 3 replicas each, one group that reads it; names and addresses as long as they are in the field.
_CONFIGS = ", ".join(
    f"'{name}', jsonb_build_object('value', '{value}', 'source', 'DEFAULT_CONFIG')"
    for name, value in {
        "cleanup.policy": "delete", "compression.type": "producer", "delete.retention.ms": 86400000,
        "file.delete.delay.ms": 60000, "flush.messages": 9223372036854775807, "flush.ms": 9223372036854775807,
        "index.interval.bytes": 4096, "local.retention.bytes": -2, "local.retention.ms": -2,
        "max.compaction.lag.ms": 9223372036854775807, "max.message.bytes": 1048588,
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": 3600000, "message.timestamp.before.max.ms": 9223372036854775807,
        "min.cleanable.dirty.ratio": 0.5, "min.compaction.lag.ms": 0, "min.insync.replicas": 2, "preallocate": "false",
        "remote.storage.enable": "false", "retention.bytes": -1, "retention.ms": 604800000, "segment.bytes": 1073741824,
        "segment.index.bytes": 10485760, "segment.jitter.ms": 0, "segment.ms": 604800000,
        "unclean.leader.election.enable": "false",
    }.items()
)  # fmt: skip
_TOPIC = "format('team-%s.orders-%s.v1', n % 40, lpad(n::text, 5, '0'))"
_ENDPOINT = "format('http://broker-%s.kafka.example.com:8778/jolokia', b)"
_SELDOM = "case when n % 10 = 0 then 1 end"
"""A counter that a broker has of a topic only once there was something to count."""
_PARTS = f"""(select {_TOPIC} as topic, p, n, n * 10 + p as i
  from generate_series(1, :topics) as n cross join generate_series(0, 9) as p) as part"""
_ROWS = {
    "inventory.topic_hourly": f"""(hour, cluster, topic, partitions, replication_factor, kind, cleanup_policy,
          retention_ms, segment_bytes, configs, observed_at, application_id, leader_throttled_replicas,
          follower_throttled_replicas, one_rack_partitions)
        select h, 'orders-prod', {_TOPIC}, 10, 2, 'plain', 'delete', 604800000, 1073741824,
          jsonb_build_object({_CONFIGS}), h, null, null, null, 0 from generate_series(1, :topics) as n""",
    "inventory.consumer_group_hourly": """(hour, cluster, group_id, protocol, state, assignor, members, observed_at)
        select h, 'orders-prod', format('team-%s.reader-%s', n % 40, n), 'classic', 'STABLE', 'range', 4, h
        from generate_series(1, :groups) as n""",
    "metrics.partition_hourly": f"""(hour, cluster, topic, partition, leader, replicas, isr, log_start_offset,
          log_end_offset, log_end_offset_first, log_end_offset_last, last_stable_offset, offsets_at, missing_brokers,
          leader_error)
        select h, 'orders-prod', topic, p, i % 8, 3, 3, i, 1000000 + i, 900000 + i, 1000000 + i, 1000000 + i, h,
          null::jsonb, null
        from {_PARTS}""",
    "metrics.consumer_partition_hourly": f"""(hour, cluster, group_id, topic, partition, committed_offset, committed_at,
          log_end_offset, lag_records, lag_seconds, commits, records_consumed, consumed_seconds, moved_at, rewinds,
          status, lag_slope_per_second, client_id, host, still_seconds, silent_seconds, commit_gap_p95_seconds,
          is_assigned, lag_seconds_low, lag_seconds_high, arriving_per_second, reading_per_second_low,
          reading_per_second_high, reading_seconds, waiting_records)
        select h, 'orders-prod', format('team-%s.reader-%s', n % 40, n % :groups), topic, p, 1000000 + i, h,
          1000000 + i, 5, 0.4, 720, 100000, 3595, h, 0, 'ok', 0.01, format('reader-%s-1', n % :groups), '/10.0.0.5',
          1.5, 1.5, 5.2, true, 0.2, 0.6, 28.1, 27.9, 28.3, 3595, 0 from {_PARTS}""",
    "metrics.replica_sample": f"""(hour, cluster, topic, broker_id, log_dir, is_future, replicas, size_bytes,
          partition_bytes, partition_lags)
        select h, 'orders-prod', topic, (i + r) % 8, '/var/lib/kafka/data', false, count(*), sum(1000000 + i),
          jsonb_object_agg(p, 1000000 + i), '{{}}'::jsonb
        from {_PARTS} cross join generate_series(0, 2) as r group by topic, (i + r) % 8""",
    "metrics.topic_hourly": f"""(hour, cluster, topic, brokers, covered_seconds, counted_from, counted_to, bytes_in,
          bytes_out, messages_in, log_bytes, failed_produces, bytes_rejected, fetch_requests, produce_requests,
          remote_fetch_bytes)
        select h, 'orders-prod', {_TOPIC}, 8, 3600, h, h, 1e9 + n, 2e9 + n, 1e6 + n, 1e10 + n, 0, 0, 8e5 + n, 4e5 + n,
          null::float8
        from generate_series(1, :topics) as n""",
    "metrics.broker_topic_sample": f"""(hour, cluster, endpoint, topic, at, bytes_in, bytes_out, messages_in,
          bytes_in_total, bytes_out_total, messages_in_total, log_bytes, failed_produces, bytes_rejected,
          failed_produces_total, bytes_rejected_total, fetch_requests, produce_requests, fetch_requests_total,
          produce_requests_total, segments, remote_fetch_bytes, remote_fetch_bytes_total)
        select h, 'orders-prod', {_ENDPOINT}, {_TOPIC}, h, 1e8 + n, 2e8 + n, 1e5 + n, 1e12 + n, 2e12 + n, 1e9 + n,
          1e9 + n, {_SELDOM}, {_SELDOM}, {_SELDOM}, {_SELDOM}, 1e5 + n, 5e4 + n, 1e8 + n, 5e7 + n, n,
          null::float8, null::float8
        from generate_series(1, :topics) as n cross join generate_series(1, 8) as b""",
    "metrics.broker_sample": f"""(hour, cluster, endpoint, metric, labels, at, kind, value, process_started_at)
        select h, 'orders-prod', {_ENDPOINT}, format('metric_%s_total', n), '{{}}', h + s * interval '20 s', 'counter',
          n, h
        from generate_series(1, 60) as n cross join generate_series(1, 8) as b cross join generate_series(1, 4) as s""",
    "detect.coverage": """(hour, app, source, resource_name, status, queried_at, message)
        select h, 'consumer_groups', 'kafka_groups', format('orders-prod team-%s.reader-%s', n % 40, n), 'complete', h,
          null::float8
        from generate_series(1, :groups) as n""",
    "metrics.volume_sample": """(account, region, volume_id, at, period_seconds, read_ops, write_ops, read_bytes,
          write_bytes, read_seconds, write_seconds, idle_seconds, queue_length, burst_balance_percent, iops_exceeded,
          throughput_exceeded, stalled)
        select '123456789012', 'eu-central-1', 'vol-' || lpad(n::text, 17, '0'), h + m * interval '1 minute', 60,
          4000 + n % 100, 8000, 4e6 + n, 12e8, 4, 9, 20, 1, 80.5, 0, 0, 0
        from generate_series(1, :volumes) as n cross join generate_series(0, 59) as m""",
}  # fmt: skip
_BESIDE = ("metrics.volume_sample",)
"""Tables that are no part of the cluster's hour."""
HOURS = {"metrics.volume_sample": 24}
"""Keys that don't begin with the hour: an index whose pages are split by later hours is larger than after one."""
_SIZE = "select coalesce(sum(bytes), 0) from public.partitions where table_name = :name"


@dataclass(frozen=True)
class Filled:
    """A table's hour."""

    rows: int
    bytes: int
    """With indexes."""


@dataclass(frozen=True)
class Resource:
    """What a row of the docs' table is about, and what the warehouse holds of it."""

    name: str
    rhythm: str
    rows_a_day: int
    tables: tuple[str, ...]
    """Each has so many rows of one of it."""

    def bytes_each(self, hour: dict[str, Filled]) -> float:
        """Of its row in each of the tables."""
        return sum(hour[table].bytes / hour[table].rows for table in self.tables)


RESOURCES = (
    Resource("volume", "a row a minute", 1440, ("metrics.volume_sample",)),
    Resource("topic and broker: what JMX counts", "a row an hour", 24, ("metrics.broker_topic_sample",)),
    Resource("topic and broker: its replicas", "a row an hour", 24, ("metrics.replica_sample",)),
    Resource("topic, with its configs", "two rows an hour", 24, ("inventory.topic_hourly", "metrics.topic_hourly")),
    Resource("partition", "a row an hour", 24, ("metrics.partition_hourly",)),
    Resource("group and partition it reads", "a row an hour", 24, ("metrics.consumer_partition_hourly",)),
)


def measure() -> list[Metric]:
    """Megabytes, by table and in all."""
    hour = an_hour()
    megabytes = {table: filled.bytes / 1e6 for table, filled in hour.items()}
    cluster = sum(size for table, size in megabytes.items() if table not in _BESIDE)
    return [
        Metric("an hour of 100,000 partitions in the warehouse", cluster, "MB", LIMIT_MB),
        *(Metric(f"  {table}", size, "MB") for table, size in megabytes.items() if size > 1 and table not in _BESIDE),
        Metric(f"a day of {VOLUMES} volumes by the minute", megabytes["metrics.volume_sample"], "MB"),
    ]


def an_hour() -> dict[str, Filled]:
    """Its tables, in a warehouse of its own."""
    with a_database() as url:
        migrate(engine(url))
        return {table: fill(engine(url), table) for table in _ROWS}


def fill(warehouse: sa.Engine, table: str, share: float = 1.0) -> Filled:
    """Writes a share of a table's hour, or hours."""
    schema, name = table.split(".")
    inspector = sa.inspect(warehouse)
    listed, columns = _columns(table), {column["name"] for column in inspector.get_columns(name, schema)}
    if columns != set(listed):
        raise AssertionError(f"{table}: {sorted(columns ^ set(listed))} are in the table or listed here, not both")
    sizes = {"topics": round(TOPICS * share), "groups": round(GROUPS * share), "volumes": round(VOLUMES * share)}
    rows = re.sub(
        r"(?<!:):([a-z]+)\b", lambda found: str(sizes[found[1]]), _ROWS[table].replace("select", "select distinct", 1)
    )
    key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    order = ", ".join(str(listed.index(column) + 1) for column in key)  # as a load does
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        before, written = connection.execute(sa.text(_SIZE), {"name": table}).scalar_one(), 0
        for number in range(HOURS.get(table, 1)):
            hour = HOUR.replace(hour=0) + timedelta(hours=number)
            of_hour = re.sub(r"\bh\b", f"timestamptz '{hour.isoformat()}'", rows)
            done = connection.exec_driver_sql(f"insert into {table} {of_hour} order by {order}".replace("%", "%%"))
            written += done.rowcount
        after = connection.execute(sa.text(_SIZE), {"name": table}).scalar_one()
    return Filled(written, int(after - before))


def _columns(table: str) -> list[str]:
    rows = _ROWS[table]
    return [column.strip() for column in rows[1 : rows.index(")")].split(",")]


def documented(hour: dict[str, Filled]) -> str:
    """The table of docs/deploy.md, and what follows from it."""
    lines = ["| per | a day | with the default retention |", "|---|---|---|"]
    settings = Warehouse()
    for resource in RESOURCES:
        each, days = resource.bytes_each(hour), {table: retention_days(settings, table) for table in resource.tables}
        kept = max(days.values())
        a_day = each * resource.rows_a_day
        lines.append(
            f"| {resource.name} ({resource.rhythm}, {_size(each)}) | {_size(a_day)} |"
            f" {_size(a_day * kept)} in {kept} days |"
        )
    group = RESOURCES[-1]
    kept = retention_days(settings, group.tables[0])
    held = 10_000 * group.bytes_each(hour) * group.rows_a_day * kept
    return "\n".join(lines) + (
        f"\n\n10,000 group-partitions are {_size(held)} in {kept} days: lower `warehouse.fact_retention_days`, "
        f"or of one table alone\n`warehouse.retention_days: {{{group.tables[0]}: 90}}`, before you buy disks.\n"
    )


def _size(number: float) -> str:
    """With two digits, or three where the first is small."""
    units = [(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB")]
    one, unit = next(((one, unit) for (one, unit), (more, _) in pairwise(units) if number < more), units[-1])
    return f"{number / one:.0f} {unit}" if number / one >= 10 else f"{number / one:.1f} {unit}"


def main() -> None:
    """Writes them between the marks."""
    head, _, rest = DEPLOY.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    DEPLOY.write_text(f"{head}{BEGIN}{documented(an_hour())}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
