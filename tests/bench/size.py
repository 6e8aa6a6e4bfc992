"""What an hour of a large cluster takes in the warehouse: 8 brokers, 10,000 topics, 100,000 partitions, 300 groups."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import sqlalchemy as sa
from streamwarden.base.warehouse import engine
from streamwarden.store.migrate import migrate

from tests.bench.figure import Figure
from tests.conftest import a_database

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
LIMIT_MB = 120
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
_PARTS = f"""(select {_TOPIC} as topic, p, n, n * 10 + p as i
  from generate_series(1, 10000) as n cross join generate_series(0, 9) as p) as part"""
_ROWS = {
    "inventory.topic_hourly": f"""(hour, cluster, topic, partitions, replication_factor, kind, cleanup_policy,
          retention_ms, segment_bytes, configs, observed_at)
        select h, 'orders-prod', {_TOPIC}, 10, 2, 'plain', 'delete', 604800000, 1073741824,
          jsonb_build_object({_CONFIGS}), h from generate_series(1, 10000) as n""",
    "inventory.consumer_group_hourly": """(hour, cluster, group_id, protocol, state, assignor, members, observed_at)
        select h, 'orders-prod', format('team-%s.reader-%s', n % 40, n), 'classic', 'STABLE', 'range', 4, h
        from generate_series(1, 300) as n""",
    "metrics.partition_hourly": f"""(hour, cluster, topic, partition, leader, replicas, isr, log_start_offset,
          log_end_offset, log_end_offset_first, log_end_offset_last, last_stable_offset, offsets_at)
        select h, 'orders-prod', topic, p, i % 8, 3, 3, i, 1000000 + i, 900000 + i, 1000000 + i, 1000000 + i, h
        from {_PARTS}""",
    "metrics.consumer_partition_hourly": f"""(hour, cluster, group_id, topic, partition, committed_offset, committed_at,
          log_end_offset, lag_records, lag_seconds, commits, records_consumed, consumed_seconds, moved_at, rewinds,
          status, lag_slope_per_second, client_id, host)
        select h, 'orders-prod', format('team-%s.reader-%s', n % 40, n % 300), topic, p, 1000000 + i, h, 1000000 + i, 5,
          0.4, 720, 100000, 3595, h, 0, 'ok', 0.01, format('reader-%s-1', n % 300), '/10.0.0.5' from {_PARTS}""",
    "metrics.replica_sample": f"""(hour, cluster, topic, broker_id, log_dir, is_future, replicas, size_bytes,
          partition_bytes, partition_lags)
        select h, 'orders-prod', topic, (i + r) % 8, '/var/lib/kafka/data', false, count(*), sum(1000000 + i),
          jsonb_object_agg(p, 1000000 + i), '{{}}'::jsonb
        from {_PARTS} cross join generate_series(0, 2) as r group by topic, (i + r) % 8""",
    "metrics.topic_hourly": f"""(hour, cluster, topic, brokers, covered_seconds, counted_from, counted_to, bytes_in,
          bytes_out, messages_in, log_bytes)
        select h, 'orders-prod', {_TOPIC}, 8, 3600, h, h, 1e9 + n, 2e9 + n, 1e6 + n, 1e10 + n
        from generate_series(1, 10000) as n""",
    "metrics.broker_topic_sample": f"""(hour, cluster, endpoint, topic, at, bytes_in, bytes_out, messages_in,
          bytes_in_total, bytes_out_total, messages_in_total, log_bytes)
        select h, 'orders-prod', {_ENDPOINT}, {_TOPIC}, h, 1e8 + n, 2e8 + n, 1e5 + n, 1e12 + n, 2e12 + n, 1e9 + n,
          1e9 + n
        from generate_series(1, 10000) as n cross join generate_series(1, 8) as b""",
    "metrics.broker_sample": f"""(hour, cluster, endpoint, metric, labels, at, kind, value, process_started_at)
        select h, 'orders-prod', {_ENDPOINT}, format('metric_%s_total', n), '{{}}', h + s * interval '20 s', 'counter',
          n, h
        from generate_series(1, 60) as n cross join generate_series(1, 8) as b cross join generate_series(1, 4) as s""",
    "detect.coverage": """(hour, app, source, resource, status, asked_at)
        select h, 'consumer_groups', 'kafka_groups', format('orders-prod team-%s.reader-%s', n % 40, n), 'answered', h
        from generate_series(1, 300) as n""",
}  # fmt: skip
_SIZE = sa.text("""
    select table_name, sum(bytes) / 1e6 from public.partitions where bytes > 0 group by table_name order by 2 desc""")


def measure() -> list[Figure]:
    """Megabytes, by table and in all."""
    with a_database() as url:
        migrate(engine(url))
        sizes = {table: fill(engine(url), table) for table in _ROWS}
    largest = [Figure(f"  {table}", megabytes, "MB") for table, megabytes in sizes.items() if megabytes > 1]
    return [Figure("an hour of 100,000 partitions in the warehouse", sum(sizes.values()), "MB", LIMIT_MB), *largest]


def fill(warehouse: sa.Engine, table: str) -> float:
    """Writes the hour of a table; returns the megabytes that it takes, with indexes."""
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        before = dict(connection.execute(_SIZE).tuples().all()).get(table, 0)
        rows = re.sub(r"\bh\b", f"timestamptz '{HOUR.isoformat()}'", _ROWS[table]).replace(
            "select", "select distinct", 1
        )
        key = sa.inspect(warehouse).get_pk_constraint(table.split(".")[1], schema=table.split(".")[0])
        columns = [name.strip() for name in rows[1 : rows.index(")")].split(",")]
        order = ", ".join(str(columns.index(name) + 1) for name in key["constrained_columns"])  # as a load does
        connection.exec_driver_sql(f"insert into {table} {rows} order by {order}".replace("%", "%%"))
        return float(dict(connection.execute(_SIZE).tuples().all())[table] - before)
