"""Fills a warehouse as a large fleet leaves it: made by PostgreSQL itself, in seconds to minutes.

Its newest hour is whole: brokers, partitions, groups, topics, volumes, machines, applications and their stores.
Before it lies what rules look back on, and what people see of a year and more: findings, tickets, volumes once a day.
Most of it is healthy; of each kind some isn't, so that a rule has something to say and takes its long way.
"""

# ruff: noqa: E501 columns of SQL stand side by side with their values

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from streamwarden.base.catalog import APPS
from streamwarden.detectors import load_detectors

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Large:
    """How large the fleet is, and for how long it has been watched."""

    brokers: int = 8
    partitions: int = 100_000
    groups: int = 300
    volumes: int = 1_000
    applications: int = 500
    watched_hours: int = 24
    """Of instances and volumes: how many hours before the newest there are, it included."""
    days: int = 0
    """Of findings and tickets, and of volumes once a day."""


def fill(warehouse: sa.Engine, large: Large) -> None:
    """Writes it all into a migrated, empty warehouse."""
    _make_partitions(warehouse, large.days)
    for table, rows in _ROWS.items():
        _insert(warehouse, large, table, rows)
    with warehouse.begin() as connection:
        connection.execute(sa.text(_LOADS), {"apps": list(APPS), "hour": HOUR})
    if large.days:
        _fill_history(warehouse, large)
    with warehouse.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("analyze")  # as autovacuum has done with all but the newest hour


def _make_partitions(warehouse: sa.Engine, days: int) -> None:
    """Of each month a day, of the last weeks all: samples have one for each day, facts for each month."""
    months = {(HOUR - timedelta(days=back)).replace(day=1).date() for back in range(max(days, 60))}
    recent = {(HOUR - timedelta(days=back)).date() for back in range(-1, 35)}
    for day in sorted(months | recent):
        with warehouse.begin() as connection:
            connection.execute(sa.text("select public.ensure_day(:day)"), {"day": day})


def _insert(warehouse: sa.Engine, large: Large, table: str, rows: str) -> None:
    """Inserts `columns ← select`, in which the fleet's sizes stand as :brokers and so on, and the newest hour as :h."""
    values: Mapping[str, object] = {
        "h": f"timestamptz '{HOUR.isoformat()}'",
        "brokers": large.brokers, "groups": large.groups, "volumes": large.volumes, "days": large.days,
        "watched": large.watched_hours, "applications": large.applications, "topics": large.partitions // 10, "instances": _instances(large),
    }  # fmt: skip
    columns, query = rows.split("<-")
    statement = re.sub(r"(?<!:):([a-z]+)\b", lambda found: str(values[found[1]]), query)
    if columns.strip().startswith("hour,"):  # one hour is loaded after the other, and lies together
        made, conflict, how = statement.partition("on conflict")
        statement = f"{made} order by 1, 2 {conflict}{how}"
    with warehouse.begin() as connection:
        connection.exec_driver_sql(f"insert into {table} ({columns.strip()}) {statement}".replace("%", "%%"))


def _instances(large: Large) -> int:
    """Brokers' machines, then those of applications; two volumes each."""
    return max(large.brokers + large.applications, large.volumes // 2)


# A topic has ten partitions on ten brokers, a tenth of the topics are changelogs, and a group reads of each.
_TOPIC = """case when n % 10 = 0 then format('app-%s-store-%s-changelog', n / 10 % :applications, n / 10 / :applications)
  else format('team-%s.orders-%s.v1', n % 40, lpad(n::text, 6, '0')) end"""
_GROUP = "case when {n} < :applications then 'app-' || {n} else 'team.reader-' || {n} end"
_ENDPOINT = "format('http://broker-%s.kafka.example.com:8778/jolokia', b)"
_APP_ENDPOINT = "format('http://app-%s-%s.example.com:8778/jolokia', n, p)"
_CONFIGS = """jsonb_build_object(
  'cleanup.policy', jsonb_build_object('value', case when n % 10 = 0 then 'compact' else 'delete' end, 'source', 'DEFAULT_CONFIG'),
  'min.insync.replicas', jsonb_build_object('value', '2', 'source', 'STATIC_BROKER_CONFIG'),
  'retention.ms', jsonb_build_object('value', '604800000', 'source', 'DEFAULT_CONFIG'),
  'segment.bytes', jsonb_build_object('value', '1073741824', 'source', 'DEFAULT_CONFIG'))"""
_DAY = "generate_series(:h - interval '23 hours', :h, interval '1 hour') as h"
_WATCHED = "generate_series(:h - (:watched - 1) * interval '1 hour', :h, interval '1 hour') as h"
_WEEK = "generate_series(:h - interval '191 hours', :h, interval '1 hour') as h"
_MONTH = "generate_series(:h - interval '672 hours', :h, interval '1 hour') as h"
_ROWS = {
    "inventory.instance_hourly": f"""hour, account, region, instance_id, instance_type, state, name, application, owner,
      private_ip, launched_at, vcpus, memory_bytes, nitro, ebs_baseline_iops, ebs_maximum_iops,
      ebs_baseline_bytes_per_second, ebs_maximum_bytes_per_second, tags, observed_at <-
      select h, '123456789012', 'eu-central-1', 'i-' || lpad(n::text, 17, '0'), 'm5.2xlarge', 'running', 'node-' || n,
        case when n >= :brokers then 'app-' || (n - :brokers) % :applications end, 'team-' || n % 40,
        format('10.%s.%s.%s', n / 65536, n / 256 % 256, n % 256), h - interval '90 days', 8, 34359738368, true,
        12000, 18750, 264241152, 593750000, '{{}}', h
      from {_WATCHED} cross join generate_series(0, :instances - 1) as n""",
    "metrics.instance_hourly": f"""hour, account, region, instance_id, minutes_expected, minutes_present,
      cpu_mean_percent, cpu_max_percent, memory_used_mean_percent, memory_used_max_percent, disk_used_max_percent,
      ebs_io_balance_min_percent, ebs_byte_balance_min_percent, minutes_ebs_limited <-
      select h, '123456789012', 'eu-central-1', 'i-' || lpad(n::text, 17, '0'), 60, 60, 30, 60, 50, 60, 40, 99, 99, 0
      from {_WATCHED} cross join generate_series(0, :instances - 1) as n""",
    "inventory.volume_hourly": f"""hour, account, region, volume_id, volume_type, size_gib, provisioned_iops,
      provisioned_throughput_mib_s, state, multi_attach, instance_id, device, attached_at, created_at, name,
      application, owner, tags, observed_at <-
      select h, '123456789012', 'eu-central-1', 'vol-' || lpad(n::text, 17, '0'),
        case when n % 3 = 0 then 'gp2' else 'gp3' end, 500, case when n % 3 = 0 then 1500 else 3000 end,
        case when n % 3 > 0 then 125 end, 'in-use', false, 'i-' || lpad((n % :instances)::text, 17, '0'),
        '/dev/sd' || chr(102 + n / :instances), h - interval '90 days', h - interval '90 days', 'data-' || n,
        null, null, '{{}}', h
      from {_WATCHED} cross join generate_series(0, :volumes - 1) as n""",
    "metrics.volume_hourly": """hour, account, region, volume_id, known_until, minutes_expected, minutes_present,
      minutes_balance, iops_mean, iops_p95, iops_p99, iops_max, iops_now, busy_iops_p95, bytes_per_second_mean,
      bytes_per_second_p95, bytes_per_second_p99, bytes_per_second_max, bytes_per_second_now, read_bytes, write_bytes,
      queue_length_mean, queue_length_max, read_latency_ms, write_latency_ms, baseline_iops, burst_iops,
      baseline_bytes_per_second, burst_bytes_per_second, bucket_credits, burst_balance_min_percent,
      burst_balance_last_percent, modelled_balance_last_percent, credits_per_hour, hours_to_exhaustion, minutes_empty,
      minutes_at_iops_limit, minutes_at_throughput_limit, minutes_at_instance_limit, minutes_stalled,
      minutes_throttled, throttled_since, demand_iops_p95, demand_iops_p99, demand_bytes_per_second_p95,
      demand_bytes_per_second_p99, demand_hours, read_baseline_bytes_per_second, read_baseline_mad_bytes_per_second,
      read_baseline_hours, read_baseline_kind, minutes_draining, latency_p05_ms, latency_p25_ms, latency_p50_ms,
      latency_p75_ms <-
      select h, '123456789012', 'eu-central-1', 'vol-' || lpad(n::text, 17, '0'), h + interval '1 hour', 60, 60,
        case when g.gp2 then 60 end, i, i * 1.2, i * 1.3, i * 1.4, i, i * 1.3, i * 65536, i * 80000, i * 85000,
        i * 90000, i * 65536, i * 65536 * 1200, i * 65536 * 2400, 1, 4, 1.1, 1.3, case when g.gp2 then 1500 else 3000 end,
        3000, 131072000, 131072000, case when g.gp2 then 5400000 end, case when g.gp2 then 80 - g.sick * 80 end,
        case when g.gp2 then 81 - g.sick * 81 end, case when g.gp2 then 81 - g.sick * 81 end,
        case when g.gp2 then 100000 - g.sick * 200000 end, case when g.gp2 and g.sick = 1 then 0 end,
        case when g.gp2 then g.sick * 60 end, g.sick * 60, 0, 0, 0, g.sick * 60,
        case when g.sick = 1 then :h - interval '6 hours' end, i * 1.2, i * 1.3, i * 80000, i * 85000, 24,
        i * 20000, i * 2000, 672, 'hour_of_week', case when g.gp2 then g.sick * 60 end, 0.8, 1.0, 1.2, 1.4
      from generate_series(:h - greatest(191, :watched - 1) * interval '1 hour', :h, interval '1 hour') as h
      cross join generate_series(0, :volumes - 1) as n
      cross join lateral (
        select n % 3 = 0 as gp2, case when n % 300 = 3 and h > :h - interval '6 hours' then 1 else 0 end as sick
      ) as g
      cross join lateral (select 200.0 + n % 100 + g.sick * 1200 as i) as load
      where h > :h - :watched * interval '1 hour' or extract(hour from h) % 6 = 0""",
    "metrics.volume_sample": """account, region, volume_id, at, period_seconds, read_ops, write_ops, read_bytes,
      write_bytes, read_seconds, write_seconds, idle_seconds, queue_length, burst_balance_percent, iops_exceeded,
      throughput_exceeded, stalled <-
      select '123456789012', 'eu-central-1', 'vol-' || lpad(n::text, 17, '0'), at, 60, 4000 + n % 100, 8000,
        -- In the newest hour the first brokers' disks are read for a quarter of an hour as they never are.
        60 * case when n < 3 and at >= :h + interval '30 minutes' then 90e6 else 4e6 end, 12e8, 4, 9, 20, 1,
        case when n % 3 = 0 then 80 end, 0, 0, 0
      from generate_series(:h - interval '30 minutes', :h + interval '59 minutes', interval '1 minute') as at
      cross join generate_series(0, :volumes - 1) as n""",
    "metrics.instance_sample": """account, region, instance_id, at, period_seconds, cpu_percent, memory_used_percent,
      disk_used_percent, ebs_io_balance_percent, ebs_byte_balance_percent, ebs_iops_exceeded, ebs_throughput_exceeded <-
      select '123456789012', 'eu-central-1', 'i-' || lpad(n::text, 17, '0'), at, 300, 30, 50, 40, 99, 99, 0, 0
      from generate_series(:h, :h + interval '55 minutes', interval '5 minutes') as at
      cross join generate_series(0, :instances - 1) as n""",
    "metrics.instance_health_hourly": f"""hour, account, region, instance_id, instance_group, scaling_group, application, state,
      is_spot, observed_at, activities_known, minutes_checked, minutes_instance_failed, minutes_system_failed,
      minutes_volumes_failed, failing_since, is_burstable, cpu_credits, cpu_credits_most, cpu_credits_borrowed,
      cpu_credits_charged <-
      select h, '123456789012', 'eu-central-1', 'i-' || lpad(n::text, 17, '0'), 'group-' || n / 3, 'group-' || n / 3,
        'app-' || n / 3, 'running', false, h, true, 60, case when n % 500 = 7 then 60 else 0 end, 0, 0,
        case when n % 500 = 7 then h end, n % 5 = 1,
        case when n % 5 = 1 then case when n % 100 = 1 then 60 + 60 * extract(epoch from :h - h) / 3600 else 2000 end end,
        case when n % 5 = 1 then 2000 end, case when n % 5 = 1 then 0 end, case when n % 5 = 1 then 0 end
      from {_DAY} cross join generate_series(0, :instances - 1) as n""",
    "metrics.instance_network_hourly": f"""hour, account, region, instance_id, direction, instance_type,
      baseline_bytes_per_second, peak_bytes_per_second, minutes_expected, minutes_present, bytes_per_second_mean,
      bytes_per_second_p99, bytes_per_second_max, bytes_per_second_now, minutes_above_baseline, minutes_at_peak,
      minutes_above_lately, minutes_at_baseline_lately <-
      select h, '123456789012', 'eu-central-1', 'i-' || lpad(n::text, 17, '0'), d, 'm5.2xlarge', 312.5e6, 1250e6, 60, 60,
        1e8, 2e8, 2e8, 1e8, case when n % 100 = 3 then 60 else 0 end, 0, case when n % 100 = 3 then 15 else 0 end, 0
      from {_WEEK} cross join generate_series(0, :instances - 1) as n cross join unnest(array['in', 'out']) as d""",
    "metrics.scaling_activity_hourly": f"""hour, account, region, activity_id, scaling_group, instance_id, is_termination,
      cause, status, started_at <-
      select h, '123456789012', 'eu-central-1', format('%s at %s', n, h), 'group-' || n, 'i-' || lpad(n::text, 17, '0'), true,
        'an instance was taken out of service in response to ' || case when n = 1 then 'a user health-check'
          else 'a user request' end, 'Successful', h + interval '30 minutes'
      from {_DAY} cross join generate_series(0, 20) as n""",
    "metrics.node_hourly": f"""hour, cluster, endpoint, instance_id, booted_at, samples, covered_seconds, memory_bytes,
      memory_used_mean_percent, memory_used_max_percent, page_cache_bytes, load_1m_max, cpu_ratio, iowait_ratio,
      disk_read_bytes_per_second, disk_written_bytes_per_second, disk_reads_per_second, disk_writes_per_second,
      busiest_disk, busiest_disk_ratio, fullest_file_system, fullest_file_system_percent,
      fullest_file_system_available_bytes <-
      select h, 'orders-prod', 'http://node-' || n || ':9100/metrics', 'i-' || lpad(n::text, 17, '0'),
        h - interval '90 days', 4, 3600, 34359738368, 50, 60, 1.5e10, 3, 0.3, 0.02, 4e6, 2e7, 70, 130, 'nvme1n1', 0.2,
        '/var/lib/kafka', 40, 3e11
      from {_MONTH} cross join generate_series(0, :brokers - 1) as n""",
    "metrics.file_system_hourly": f"""hour, cluster, endpoint, mountpoint, device, fstype, instance_id, size_bytes,
      available_bytes, available_min_bytes, read_only <-
      select h, 'orders-prod', 'http://node-' || n || ':9100/metrics', m, '/dev/nvme1n1', 'xfs', 'i-' || lpad(n::text, 17, '0'),
        1e12, case when m = '/data' and n % 50 = 2 then 1e11 - 1e9 * extract(epoch from h - :h) / 3600 else 6e11 end, 6e11, false
      from {_MONTH} cross join generate_series(0, :brokers - 1) as n cross join unnest(array['/', '/data']) as m""",
    "metrics.broker_hourly": f"""hour, cluster, broker_id, endpoint, instance_id, process_started_at, samples,
      covered_seconds, bytes_in_per_second, bytes_out_per_second, messages_in_per_second,
      replication_bytes_in_per_second, replication_bytes_out_per_second, log_flushes_per_second, log_flush_mean_ms,
      log_flush_p95_ms, log_flush_p999_ms, produce_mean_ms, produce_median_ms, produce_p99_ms, fetch_consumer_mean_ms,
      fetch_consumer_median_ms, fetch_consumer_p99_ms, fetch_follower_mean_ms, fetch_follower_median_ms,
      fetch_follower_p99_ms, request_queue_max, request_handler_idle_min_ratio, active_controllers,
      under_replicated_partitions, under_replicated_partitions_max, under_min_isr_partitions, offline_partitions,
      partitions, leaders, log_bytes, open_file_descriptors, max_file_descriptors, cpu_ratio, heap_used_bytes,
      heap_max_bytes, produce_requests_per_second, fetch_consumer_requests_per_second,
      fetch_follower_requests_per_second, failed_produces, produce_errors, dead_cleaner_threads, uncleanable_partitions,
      cleaner_last_run_seconds <-
      select h, 'orders-prod', b, {_ENDPOINT}, 'i-' || lpad(b::text, 17, '0'), :h - interval '90 days', 4, 3600,
        2e7, 4e7, 2e4, 2e6, 2e6, 20, 4, 12, 40, 2, 1, 12 + b % 3, 100, 80, 500, 100, 80, 500, 5, 0.7,
        case when b = 0 then 1 else 0 end, 0, 0, 0, 0, :topics * 30 / :brokers, :topics * 10 / :brokers, 4e11,
        20000 + extract(epoch from h - :h) / 36000, 100000, 0.3, 3e9, 6e9, 900, 700, 900,
        3, jsonb_build_object('MESSAGE_TOO_LARGE', 5000, 'NOT_LEADER_OR_FOLLOWER', 10), 0,
        case when b = 0 then 1 else 0 end, 9
      from {_MONTH} cross join generate_series(0, :brokers - 1) as b""",
    "metrics.broker_sample": f"""hour, cluster, endpoint, metric, labels, at, kind, value, process_started_at <-
      select h, 'orders-prod', {_ENDPOINT}, format('metric_%s_total', n), '{{}}', h + s * interval '20 seconds',
        'counter', n, h
      from generate_series(:h - interval '1 hour', :h, interval '1 hour') as h
      cross join generate_series(1, 60) as n cross join generate_series(0, :brokers - 1) as b
      cross join generate_series(1, 4) as s
      union all
      select h, 'orders-prod', {_ENDPOINT}, 'client_fetch_bytes_per_second',
        format('{{"client": "%s-%s-1"}}', case when g % 50 = 7 then 'stranger' else 'reader' end, g), h, 'gauge',
        case when g % 2 = 0 then 2e6 else 1e3 end, h
      from generate_series(:h - interval '3 hours', :h, interval '1 hour') as h cross join generate_series(0, :groups - 1) as g cross join generate_series(0, :brokers - 1) as b""",
    "metrics.log_dir_hourly": """hour, cluster, broker_id, log_dir, total_bytes, usable_bytes, replicas, log_bytes,
      observed_at <-
      select h, 'orders-prod', b, '/var/lib/kafka/data', 1099511627776,
        (6e11 - case when b % 20 = 1 then 3e9 else 1e8 end * (168 + extract(epoch from h - :h) / 3600))::bigint,
        :topics * 30 / :brokers, 400000000000, h
      from generate_series(:h - interval '191 hours', :h, interval '1 hour') as h
      cross join generate_series(0, :brokers - 1) as b""",
    "inventory.broker_hourly": """hour, cluster, broker_id, host, is_listed, replicas, observed_at, adding_replicas,
      throttles <-
      select h, 'orders-prod', b, case when b < :brokers or h < :h then 'broker-' || b end, b < :brokers or h < :h,
        :topics * 30 / :brokers, h + interval '1 hour', case when b % 10 = 3 and h > :h - interval '6 hours' then 9 else 0 end, '{}'
      from generate_series(:h - interval '23 hours', :h, interval '1 hour') as h
      cross join generate_series(0, :brokers) as b  -- the last one is gone""",
    "inventory.reassignment_hourly": f"""hour, cluster, topic, partition, replicas, adding, removing, partition_bytes,
      copied_bytes, left_bytes, observed_at <-
      select h, 'orders-prod', {_TOPIC}, 0, jsonb_build_array(n, n + 1, n + 2, a.broker), jsonb_build_array(a.broker), '[]',
        1e10, 4e9, 6e9 - extract(epoch from h - :h) * 1e5, h + interval '1 hour'
      from generate_series(:h - interval '5 hours', :h, interval '1 hour') as h
      cross join generate_series(0, :topics - 1, 20) as n
      cross join lateral (select n / 20 * 10 % :brokers / 10 * 10 + 3 as broker) as a
      where a.broker < :brokers""",
    "inventory.topic_hourly": f"""hour, cluster, topic, partitions, replication_factor, kind, application_id,
      cleanup_policy, retention_ms, segment_bytes, configs, observed_at <-
      select h, 'orders-prod', {_TOPIC}, 10, 3, case when n % 10 = 0 then 'changelog' else 'plain' end,
        case when n % 10 = 0 then 'app-' || n / 10 % :applications end,
        case when n % 10 = 0 then 'compact' else 'delete' end, 604800000, 1073741824, {_CONFIGS}, h
      from (
        select * from {_DAY}
        union all select :h - days * interval '1 day' from generate_series(1, 30) as days
      ) as at (h)
      cross join generate_series(0, :topics - 1) as n
      on conflict do nothing""",
    "metrics.topic_hourly": f"""hour, cluster, topic, brokers, covered_seconds, counted_from, counted_to, bytes_in,
      bytes_out, messages_in, failed_produces, bytes_rejected, fetch_requests, produce_requests, log_bytes <-
      select h, 'orders-prod', {_TOPIC}, least(:brokers, 10), 3600, h, h + interval '1 hour',
        -- One group reads all of it; a tenth of the topics have another reader, which commits nothing.
        a.amount, a.amount * (1 + case when n % 10 = 3 then 1 else 0 end + case when n % 997 = 1 and h = :h then 20 else 0 end),
        a.messages, case when n % 1000 = 1 then 5 else 0 end, 0,
        -- A fetch of each partition for each message; of a topic of a thousand nobody waits for them.
        10 * a.messages * case when n % 1000 = 501 then 1000 else 1 end, a.messages, a.amount * 168
      from {_WEEK} cross join generate_series(0, :topics - 1) as n
      cross join lateral (
        select m.messages, m.messages * (1000 + 100 * (n % 100)) * case when n % 50 = 7 then 0.001 else 1 end as amount
        from (select 1e4 * (24 + extract(hour from h)) / (24 + extract(hour from :h)) as messages) as m
      ) as a""",
    "metrics.broker_topic_sample": f"""hour, cluster, endpoint, topic, at, bytes_in, bytes_out, messages_in,
      bytes_in_total, bytes_out_total, messages_in_total, log_bytes <-
      select h, 'orders-prod', {_ENDPOINT.replace("b)", "(n + i) % :brokers)")}, {_TOPIC}, h + interval '1 hour',
        1e6 + n, 2e6 + n, 1e4 + n, 1e12, 2e12, 1e9, 1e9
      from generate_series(:h - interval '1 hour', :h, interval '1 hour') as h
      cross join generate_series(0, :topics - 1) as n cross join generate_series(0, least(:brokers, 10) - 1) as i""",
    "metrics.replica_sample": f"""hour, cluster, topic, broker_id, log_dir, is_future, replicas, size_bytes,
      partition_bytes, partition_lags <-
      select h, 'orders-prod', {_TOPIC}, (n + i) % :brokers, '/var/lib/kafka/data', false, 3, 30000000 + n,
        jsonb_build_object(i, 10000000 + n, (i + 9) % 10, 10000000, (i + 8) % 10, 10000000), '{{}}'
      from (values (:h), (:h - interval '1 hour'), (:h - interval '24 hours')) as at (h)
      cross join generate_series(0, :topics - 1) as n cross join generate_series(0, least(:brokers, 10) - 1) as i""",
    "metrics.partition_hourly": f"""hour, cluster, topic, partition, leader, replicas, isr, log_start_offset,
      log_end_offset, log_end_offset_first, log_end_offset_last, last_stable_offset, offsets_at <-
      select h, 'orders-prod', {_TOPIC}, p, (n + p) % :brokers, 3, 3, 1000, e.log_end, e.log_end - 1000, e.log_end,
        e.log_end, h + interval '1 hour'
      from (
        select * from generate_series(:h - interval '6 hours', :h, interval '1 hour')
        union all select :h - weeks * interval '7 days' from generate_series(1, 4) as weeks
        union all select :h - days * interval '1 day' from generate_series(1, 3) as days
      ) as at (h)
      cross join generate_series(0, :topics - 1) as n cross join generate_series(0, 9) as p
      cross join lateral (select 5000000 + (extract(epoch from h - :h) / 3600)::bigint * 1000 as log_end) as e""",
    "metrics.consumer_partition_hourly": f"""hour, cluster, group_id, topic, partition, committed_offset, committed_at,
      log_end_offset, lag_records, lag_seconds, commits, records_consumed, consumed_seconds, moved_at, rewinds, status,
      lag_slope_per_second, client_id, host, still_seconds, silent_seconds, commit_gap_p95_seconds, is_assigned,
      lag_seconds_low, lag_seconds_high, arriving_per_second, reading_per_second_low, reading_per_second_high,
      reading_seconds <-
      select h, 'orders-prod', {_GROUP.format(n="(n % :groups)")}, {_TOPIC}, p, e.log_end - l.lag, h + interval '59 minutes',
        e.log_end, l.lag, case when l.lag > 10 then 7200 else 0.4 end, 720, 1000, 3595, h + interval '59 minutes', 0,
        case when l.lag > 10 then 'warn' else 'ok' end, 0.01, 'reader-' || n % :groups || '-' || p % 2,
        format('/10.%s.%s.%s', (:brokers + n % :groups) / 65536, (:brokers + n % :groups) / 256 % 256, (:brokers + n % :groups) % 256),
        5, 5, 6, true, 0.2, 1, 0.27, 0.27, 0.3, 3595
      from generate_series(:h - interval '5 hours', :h, interval '1 hour') as h
      cross join generate_series(0, :topics - 1) as n cross join generate_series(0, 9) as p
      cross join lateral (select 5000000 + (extract(epoch from h - :h) / 3600)::bigint * 1000 as log_end) as e
      cross join lateral (select case when n % 500 = 11 then 900000 else 5 end as lag) as l""",
    "inventory.consumer_group_hourly": f"""hour, cluster, group_id, protocol, state, assignor, members, observed_at <-
      select h, 'orders-prod', {_GROUP.format(n="n")}, 'classic', 'STABLE', 'range', 2, h
      from {_DAY} cross join generate_series(0, :groups - 1) as n""",
    "metrics.consumer_group_hourly": f"""hour, cluster, group_id, state, members, topics, partitions, lag_records,
      lag_records_max, lag_seconds_max, lag_unknown_partitions, commits, records_consumed, rebalances, status,
      worst_topic, worst_partition, busy_member_per_second <-
      select h, 'orders-prod', {_GROUP.format(n="n")}, 'STABLE', 2, :topics / :groups, 10 * :topics / :groups, 1000, 5,
        -- A third have caught up once.
        case when n % 3 = 0 and h = :h - interval '51 hours' then 3600 else 0.4 end, 0, 720,
        case when n % 50 = 9 then 10000 else 1000000 end, 0, 'ok', 'team-1.orders-000001.v1', 0,
        case when n % 3 = 0 and h = :h - interval '50 hours' then 400 end
      from {_MONTH} cross join generate_series(0, :groups - 1) as n""",
    "metrics.group_step_hourly": f"""hour, cluster, group_id, generation, began_at, members, gone, come, poll_interval_ms,
      session_timeout_ms <-
      select :h, 'orders-prod', {_GROUP.format(n="n")}, s, :h + s * interval '7 minutes', 2,
        '[{{"client_id": "reader-1", "host": "/10.0.0.1", "assignment": {{"team-1.orders-000001.v1": [0]}}}}]'::jsonb,
        '[]'::jsonb, 300000, 45000
      from generate_series(0, :groups - 1, 10) as n cross join generate_series(1, 8) as s""",
    "inventory.consumer_member_hourly": f"""hour, cluster, group_id, member_id, client_id, host, assignment <-
      select h, 'orders-prod', {_GROUP.format(n="g")}, format('reader-%s-%s-00000000', g, m), format('reader-%s-%s', g, m),
        format('/10.%s.%s.%s', (:brokers + g) / 65536, (:brokers + g) / 256 % 256, (:brokers + g) % 256), a.assignment
      from {_DAY} cross join generate_series(0, :groups - 1) as g cross join generate_series(0, 1) as m
      cross join lateral (
        select jsonb_object_agg({_TOPIC}, to_jsonb(array[m, m + 2, m + 4, m + 6, m + 8])) as assignment
        from generate_series(g, :topics - 1, :groups) as n
      ) as a""",
    "metrics.jvm_app_hourly": f"""hour, cluster, app, endpoint, instance_id, application_id, process_started_at, samples,
      memory_limit_bytes, heap_max_bytes, heap_used_bytes, heap_used_after_gc_bytes, non_heap_used_bytes, direct_bytes,
      threads, thread_stack_bytes, gc_seconds, covered_seconds, cpu_ratio, open_file_descriptors, max_file_descriptors,
      stream_threads_alive, stream_threads_failed, store_instances, rocksdb_measured_bytes, rocksdb_expected_bytes,
      rocksdb_shared_cache, heap_survived_bytes, application_stores, rocksdb_expected_max_bytes, rocksdb_shared_bytes,
      resident_bytes, poll_latency_max_ms, process_latency_mean_ms, process_latency_max_ms, records_processed,
      records_dropped, records_to_restore, record_latency_ms, poll_ratio, cpu_seconds, producer_wait_seconds <-
      select h, 'orders-prod', 'app-' || n, {_APP_ENDPOINT}, 'i-' || lpad((:brokers + n)::text, 17, '0'), 'app-' || n,
        :h - interval '90 days', 4, 8589934592, 4294967296, 2e9, 1.5e9, 2e8, 1e8, 60, 6e7, 12, 3600, 0.3, 900, 65536,
        case when n % 100 = 7 and h = :h then 3 else 4 end, case when n % 100 = 7 and h = :h then 1 else 0 end, 30,
        1e9 + case when n % 50 = 3 then 4e6 * (336 + extract(epoch from h - :h) / 3600) else 0 end, 1.5e9, false, 1.4e9,
        3, 2e9, null, 5e9, 100, 2, 40, 1e7, 0, 0,
        case when n % 50 = 9 then 600 else 1 end * case when n % 50 = 8 and h = :h then 20 else 1 end, 0.2, 4320, 2
      from generate_series(:h - interval '335 hours', :h, interval '1 hour') as h
      cross join generate_series(0, :applications - 1) as n cross join generate_series(0, 1) as p""",
    "metrics.state_store_memory_hourly": f"""hour, cluster, app, endpoint, store, kind, tasks, segments, memtable_bytes,
      block_cache_usage_bytes, block_cache_capacity_bytes, table_readers_bytes, sst_bytes, keys, expected_bytes <-
      select h, 'orders-prod', 'app-' || n, {_APP_ENDPOINT}, 'store-' || s, 'rocksdb-state', 10, 10, 3e7, 4e8, 5e8, 1e7,
        1e10 + case when n % 50 = 3 then 1e8 * (336 + extract(epoch from h - :h) / 3600) else 0 end, 1e7, 5e8
      from generate_series(:h - interval '335 hours', :h, interval '1 hour') as h
      cross join generate_series(0, :applications - 1) as n cross join generate_series(0, 1) as p
      cross join generate_series(0, 2) as s""",
    "metrics.stream_node_hourly": f"""hour, cluster, app, endpoint, subtopology, node, topics, holds_back, readings,
      age_min_ms, age_mean_ms, age_max_ms, ages_ms <-
      select :h, 'orders-prod', 'app-' || n, {_APP_ENDPOINT}, '0', node, case when node = 'source' then jsonb_build_array({_TOPIC}) end,
        false, 300, 5, late * 1000, late * 9000, (select jsonb_agg(late * 1000 + r) from generate_series(1, 300) as r)
      from generate_series(0, :applications - 1) as n cross join generate_series(0, 1) as p
      cross join unnest(array['source', 'sink', 'other-sink']) as node
      cross join lateral (select case when n % 50 = 9 then 9 else 1 end as late) as l""",
    "metrics.client_hourly": f"""hour, cluster, app, endpoint, kind, client_id, covered_seconds, records, bytes, record_errors,
      buffer_exhausted, requests, batch_mean_bytes, queue_mean_ms, compression_ratio <-
      select h, 'orders-prod', 'app-' || n, {_APP_ENDPOINT}, kind, format('app-%s-%s-%s', n, kind, t), 3600, 1e6, 1e8,
        case when n % 50 = 5 then 5e4 else 0 end, 0, 1e5, 1000, 2, 0.8
      from {_DAY} cross join generate_series(0, :applications - 1) as n cross join generate_series(0, 1) as p
      cross join generate_series(1, 4) as t cross join unnest(array['producer', 'consumer']) as kind""",
    "metrics.client_topic_hourly": f"""hour, cluster, app, endpoint, kind, client_id, topic, covered_seconds, records, bytes,
      record_errors <-
      select h, 'orders-prod', 'app-' || a, format('http://app-%s-%s.example.com:8778/jolokia', a, p), kind,
        format('app-%s-%s-%s', a, kind, t), {_TOPIC}, 3600, 1e5, 1e7, case when a % 50 = 5 then 5e3 else 0 end
      from {_DAY} cross join generate_series(0, :applications - 1) as a cross join generate_series(0, 1) as p
      cross join generate_series(1, 4) as t cross join unnest(array['producer', 'consumer']) as kind
      cross join generate_series(0, 9) as n""",
    "metrics.state_store_hourly": f"""hour, cluster, topic, application_id, store, format, windowed, records, tombstones,
      unreadable_values, values_profiled, values_total, versions, bytes, first_at, last_at, schemas <-
      select h, 'orders-prod', format('app-%s-store-%s-changelog', n, s), 'app-' || n, 'store-' || s, 'json', false,
        1000, 10, 0, 990, 990, 1, 1000000, h, h + interval '1 hour', '[]'
      from {_DAY} cross join generate_series(0, :applications - 1) as n cross join generate_series(0, 1) as s""",
    "detect.coverage": f"""hour, app, source, resource_name, status, asked_at <-
      select h, 'consumer_groups', 'kafka_groups', 'orders-prod ' || {_GROUP.format(n="n")}, 'answered', h
      from {_DAY} cross join generate_series(0, :groups - 1) as n
      union all
      select h, 'ebs_volumes', 'cloudwatch', 'vol-' || lpad(n::text, 17, '0'), 'answered', h
      from {_DAY} cross join generate_series(0, :volumes - 1) as n""",
}  # fmt: skip
_LOADS = """
    insert into detect.load (hour, app, status, rows, started_at, finished_at)
    select h, app, 'loaded', '{"metrics.all": 1000}', h + interval '70 minutes', h + interval '72 minutes'
    from generate_series(:hour - interval '672 hours', :hour, interval '1 hour') as h
    cross join unnest(cast(:apps as text[])) as app"""

# The key columns of every kind of thing.
_IDENTITY = """jsonb_build_object('account', '123456789012', 'region', 'eu-central-1',
  'volume_id', 'vol-' || lpad(n::text, 17, '0'), 'instance_id', 'i-' || lpad(n::text, 17, '0'),
  'cluster', 'orders-prod', 'broker_id', n::text, 'topic', 'app-1-store-0-changelog', 'group_id', 'app-' || n::text,
  'application_id', 'app-' || n::text, 'endpoint', 'http://app-1-0.example.com:8778/jolokia')"""

# Findings: what is wrong each hour; what is healthy, a volume or so, each hour of the newest day and once a week before.
_HISTORY = {
    "inventory.volume_hourly": """hour, account, region, volume_id, volume_type, size_gib, provisioned_iops,
      provisioned_throughput_mib_s, state, instance_id, tags, observed_at <-
      select :h - d * interval '1 day', '123456789012', 'eu-central-1', 'vol-' || lpad(n::text, 17, '0'),
        case when n % 3 = 0 then 'gp2' else 'gp3' end, case when d > n % 700 then 400 else 500 end,
        case when n % 3 = 0 then 1500 else 3000 end, case when n % 3 > 0 then 125 end, 'in-use',
        'i-' || lpad((n % :instances)::text, 17, '0'), '{}', :h - d * interval '1 day'
      from generate_series(:days, 1, -1) as d cross join generate_series(0, :volumes - 1) as n""",
    "detect.detector_run": """hour, detector, status, sql_checksum, params, firing, ok, unknown, seconds, evaluated_at <-
      select h, detector, 'evaluated', 'checksum', '{}', 20, 1000, 5, 1, h
      from detect.detector
      cross join generate_series(:h - :days * interval '1 day', :h, interval '1 hour') as h""",
    "detect.evaluation": f"""hour, detector, fingerprint, resource_name, identity, status, severity, message, metrics,
      evaluated_at, resource, reason, actions, commands, key_metrics <-
      select a.hour, a.detector, encode(sha256(convert_to(a.detector || a.n, 'UTF8')), 'hex'), 'thing ' || a.n,
        {_IDENTITY.replace("n::", "a.n::")}, s.status,
        case when s.status = 'firing' then (array['critical', 'warning', 'info'])[1 + a.n % 3] end,
        repeat('It is slower than it should be, by a figure and another. ', 3),
        json_build_object('a_bytes', a.n, 'b_seconds', a.n, 'c_percent', 12.5), a.hour, d.header ->> 'about' || ':' || a.n, 'slow',
        repeat('Do this, then that. ', 5), '["one --line=to-paste"]', '["a_bytes", "b_seconds"]'
      from (
        -- Of each rule 12 things each hour, of which five are in alarm every third month and three for good.
        select d.detector, h.hour, n
        from detect.detector as d
        cross join generate_series(:h - :days * interval '1 day', :h, interval '1 hour') as h (hour)
        cross join generate_series(0, 11) as n
        union all
        select 'ebs_volume_starving', :h - weeks * interval '7 days', n
        from generate_series(0, :days / 7) as weeks
        cross join generate_series(12, :volumes - 1) as n
        union all
        select 'ebs_volume_starving', :h - hours * interval '1 hour', n
        from generate_series(1, 23) as hours cross join generate_series(12, :volumes - 1) as n
      ) as a
      inner join detect.detector as d using (detector)
      cross join lateral (
        select case
          when a.n < 3 or (a.n < 8 and extract(month from a.hour)::integer % 3 = 1) then 'firing'
          when a.n = 11 then 'unknown' else 'ok' end as status
      ) as s""",
    "tickets.ticket": f"""fingerprint, detector, resource_name, identity, severity, title, state, opened_hour,
      last_firing_hour, closed_hour, close_reason, resource <-
      select encode(sha256(convert_to(d.detector || n, 'UTF8')), 'hex'), d.detector, 'thing ' || n,
        {_IDENTITY}, (array['critical', 'warning', 'info'])[1 + n % 3], d.title || ': thing ' || n,
        case when back = 0 then 'open' else 'closed' end, :h - back * interval '30 days' - interval '4 days',
        :h - back * interval '30 days', case when back > 0 then :h - back * interval '30 days' + interval '21 days' end,
        case when back > 0 then 'healthy' end, d.header ->> 'about' || ':' || n
      from detect.detector as d cross join generate_series(0, 7) as n cross join generate_series(0, :days / 30) as back""",
    "tickets.issue": """ticket_id, tracker, external_key, external_url, state <-
      select ticket_id, 'roundup', 'issue' || ticket_id, 'https://tracker.example.com/issue' || ticket_id, state
      from tickets.ticket""",
}  # fmt: skip


def _fill_history(warehouse: sa.Engine, large: Large) -> None:
    with warehouse.begin() as connection:
        for detector in load_detectors().values():
            connection.execute(
                sa.text("""
                    insert into detect.detector values
                      (:id, :title, :severity, 'stable', 'platform', jsonb_build_object('about', cast(:about as text)), 'checksum',
                       :hour)"""),
                {
                    "id": detector.id,
                    "title": detector.title,
                    "severity": detector.severity,
                    "resource_kind": detector.resource_kind,
                    "hour": HOUR,
                },
            )
    for table, rows in _HISTORY.items():
        rows = rows if table != "inventory.volume_hourly" else f"{rows} on conflict do nothing"
        _insert(warehouse, large, table, rows)
