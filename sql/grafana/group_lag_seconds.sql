-- Lag in seconds of the ten consumer groups of a cluster that were furthest behind in a time range.
with lag as (
  select
    p.hour,
    p.group_id,
    max(p.lag_seconds) as lag_seconds
  from metrics.consumer_partition_hourly as p
  where
    p.cluster = :cluster and p.lag_seconds is not null
    and p.hour >= cast(:start as timestamptz) and p.hour < cast(:finish as timestamptz)
  group by p.hour, p.group_id
),

worst as (
  select l.group_id
  from lag as l
  group by l.group_id
  order by max(l.lag_seconds) desc, l.group_id asc
  limit 10
)

select
  l.hour as time,
  l.group_id as metric,
  l.lag_seconds as value
from lag as l
inner join worst as w on l.group_id = w.group_id
order by l.hour, l.group_id
