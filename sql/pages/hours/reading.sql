-- A group on one topic, hour by hour: its lag, and how far it advanced.
select
  h.hour,
  m.lag_records,
  m.lag_seconds_max,
  m.records_consumed,
  m.commits,
  m.partitions,
  m.lag_unknown_partitions,
  cast(null as jsonb) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select
    sum(p.lag_records) as lag_records,
    max(p.lag_seconds) as lag_seconds_max,
    sum(p.records_consumed) as records_consumed,
    sum(p.commits) as commits,
    nullif(count(*), 0) as partitions,
    count(*) filter (where p.lag_records is null) as lag_unknown_partitions
  from metrics.consumer_partition_hourly as p
  where p.hour = h.hour and p.cluster = :cluster and p.group_id = :group_id and p.topic = :topic
) as m on true
order by h.hour
