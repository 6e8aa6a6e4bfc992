-- A state store, hour by hour: metrics of its changelog, and the schema versions that changes are found by.
select
  h.hour,
  m.records,
  m.tombstones,
  m.unreadable_values,
  m.values_total,
  m.format,
  t.log_bytes,
  jsonb_build_object('versions', m.versions) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.state_store_hourly as m
  where
    m.hour = h.hour
    and m.cluster = :cluster
    and m.topic = :topic
) as m on true
left join lateral (
  select t.log_bytes from metrics.topic_hourly as t
  where t.hour = h.hour and t.cluster = :cluster and t.topic = :topic
) as t on true
order by h.hour
