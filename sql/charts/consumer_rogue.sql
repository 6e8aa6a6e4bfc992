/*
title: Disk reads of the brokers' volumes against their baseline
unit: bytes/s
kind: lines
below: {title: "Lag of the groups furthest behind, at the end of each hour", unit: seconds}
why: |
  Above: disk reads stay near the dashed baseline while the page cache serves consumers. Higher reads come from disk.
  Below: a group with a lag above the dashed line (page cache) reads from disk and may explain them. If there is none, a
  consumer that commits no offsets reads from disk.
*/
with span as (
  select
    :hour - interval '5 hours' as first_hour,
    :hour + interval '1 hour' as until
),

broker_volume as (
  select distinct
    v.account,
    v.region,
    v.volume_id
  from metrics.broker_hourly as b
  inner join inventory.volume_hourly as v on b.hour = v.hour and b.instance_id = v.instance_id
  where b.hour = :hour and b.cluster = :cluster
),

minute as (
  select
    s.at,
    v.volume_id,
    m.read_baseline_bytes_per_second as baseline,
    s.read_bytes / s.period_seconds as rate
  from broker_volume as v
  cross join span
  inner join metrics.volume_sample as s
    on v.account = s.account and v.region = s.region and v.volume_id = s.volume_id
  left join metrics.volume_hourly as m
    on date_trunc('hour', s.at, 'UTC') = m.hour
    and v.account = m.account and v.region = m.region and v.volume_id = m.volume_id
  where s.at >= span.first_hour and s.at < span.until and s.read_bytes is not null
),

group_lag as (
  select
    p.hour,
    p.group_id,
    least(p.hour + interval '1 hour', max(o.offsets_at)) as at,
    max(p.lag_seconds) as lag_seconds
  from metrics.consumer_partition_hourly as p
  cross join span
  left join metrics.partition_hourly as o using (hour, cluster, topic, partition)
  where p.hour >= span.first_hour and p.hour < span.until and p.cluster = :cluster
  group by p.hour, p.group_id
)

select
  minute.at,
  minute.volume_id as series,
  minute.rate as value,
  false as is_below
from minute
-- More than three lines are hard to distinguish.
inner join (select volume_id from minute group by volume_id order by max(rate) desc, volume_id asc limit 3) as loudest
  on minute.volume_id = loudest.volume_id
union all
select
  at,
  'All volumes together' as series,
  sum(rate) as value,
  false as is_below
from minute
group by at
having count(*) > 1
union all
select
  at,
  'limit Baseline, all volumes' as series,
  sum(baseline) as value,
  false as is_below
from minute
group by at
having count(baseline) = count(*)
union all
select
  group_lag.at,
  format('group %s', group_lag.group_id) as series,
  group_lag.lag_seconds as value,
  true as is_below
from group_lag
inner join (
  select group_id from group_lag group by group_id order by max(lag_seconds) desc nulls last, group_id asc limit 3
) as furthest
  on group_lag.group_id = furthest.group_id
union all
-- Findings about several readers of the cluster have the same page cache.
select distinct
  e.hour + edge.passed as at,
  'limit page cache age' as series,
  cast(e.metrics ->> 'page_cache_holds_seconds' as double precision) as value,
  true as is_below
from detect.evaluation as e
cross join span
cross join (values (interval '0 minutes'), (interval '59 minutes')) as edge (passed)
where e.hour >= span.first_hour and e.hour < span.until
and e.detector = 'consumer_rogue' and e.identity ->> 'cluster' = :cluster
and e.metrics ->> 'page_cache_holds_seconds' is not null
order by at, series
