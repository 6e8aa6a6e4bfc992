-- A topic, hour by hour: metrics, and the settings and schema versions that changes are found by.
select
  h.hour,
  m.bytes_in,
  m.bytes_out,
  m.log_bytes,
  m.messages_in,
  m.covered_seconds,
  m.failed_produces,
  m.bytes_rejected,
  m.produce_requests,
  m.fetch_requests,
  jsonb_build_object(
    'partitions', t.partitions, 'replication_factor', t.replication_factor, 'retention_ms', t.retention_ms,
    'cleanup_policy', t.cleanup_policy, 'min_insync_replicas', t.configs -> 'min.insync.replicas' ->> 'value',
    'schema_version_of_values', s.version
  ) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.topic_hourly as m
  where
    m.hour = h.hour
    and m.cluster = :cluster
    and m.topic = :topic
) as m on true
left join lateral (
  select * from inventory.topic_hourly as t
  where t.hour = h.hour and t.cluster = :cluster and t.topic = :topic
) as t on true
left join lateral (
  select max(s.version) as version from inventory.schema_hourly as s
  where s.hour = h.hour and s.cluster = :cluster and s.subject = cast(:topic as text) || '-value'
) as s on true
order by h.hour
