/*
title: What the volume does of what it can, and what is left in its bucket
unit: percent
kind: lines
why: "At 100 % a limit binds. An empty bucket lowers the limit to the baseline: the load is cut off where the bucket ends."
*/
with volume as (
  select
    *,
    cast(:hour as timestamptz) as hour_start
  from metrics.volume_hourly
  where hour = cast(:hour as timestamptz) and account = :account and region = :region and volume_id = :volume_id
),

sample as (
  select
    s.at,
    100 * (s.read_ops + s.write_ops) / s.period_seconds / v.burst_iops as iops_percent,
    100 * (s.read_bytes + s.write_bytes) / s.period_seconds / v.burst_bytes_per_second as throughput_percent,
    s.burst_balance_percent
  from volume as v
  inner join metrics.volume_sample as s
    on v.account = s.account and v.region = s.region and v.volume_id = s.volume_id
  where s.at >= v.hour_start - interval '12 hours' and s.at < v.hour_start + interval '1 hour'
)

select
  at,
  'IOPS' as series,
  iops_percent as value
from sample
where iops_percent is not null
union all
select
  at,
  'throughput' as series,
  throughput_percent as value
from sample
where throughput_percent is not null
union all
select
  at,
  'bucket' as series,
  burst_balance_percent as value
from sample
where burst_balance_percent is not null
union all
select
  v.known_until + edge.hours * interval '1 hour' as at,
  'bucket forecast' as series,
  edge.value
from volume as v
cross join lateral (values (0.0, v.burst_balance_last_percent), (v.hours_to_exhaustion, 0.0)) as edge (hours, value)
where v.hours_to_exhaustion > 0 and v.hours_to_exhaustion < 24
union all
select
  sample.at,
  'limit baseline IOPS' as series,
  100 * v.baseline_iops / v.burst_iops as value
from volume as v
cross join sample
where v.baseline_iops < v.burst_iops
order by at
