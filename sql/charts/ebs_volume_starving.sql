/*
title: Volume I/O against its limits, and burst balance
unit: percent
kind: lines
why: "A line at 100 % is at its limit: the burst while burst balance is left, the baseline afterwards. Demand above 100 % is throttled."
*/
with volume as (
  select *
  from metrics.volume_hourly
  left join inventory.volume_hourly using (hour, account, region, volume_id)
  where hour = :hour and account = :account and region = :region and volume_id = :volume_id
),

sample as (
  select
    s.*,
    (s.read_ops + s.write_ops) / s.period_seconds as iops,
    (s.read_bytes + s.write_bytes) / s.period_seconds as bytes_per_second,
    count(s.burst_balance_percent) over (order by s.at) as balances
  from volume as v
  inner join metrics.volume_sample as s
    on v.account = s.account and v.region = s.region and v.volume_id = s.volume_id
  where s.at >= v.hour - interval '12 hours' and s.at < v.hour + interval '1 hour'
),

-- BurstBalance has fewer data points than other metrics: the last value holds until the next. A volume above its baseline
-- still has credits.
limited as (
  select
    *,
    case when is_empty then baseline_iops else burst_iops end as iops_limit,
    case when is_empty then baseline_bytes_per_second else burst_bytes_per_second end as bytes_per_second_limit
  from (
    select
      s.at,
      s.iops,
      s.bytes_per_second,
      s.burst_balance_percent,
      v.baseline_iops,
      v.burst_iops,
      v.baseline_bytes_per_second,
      v.burst_bytes_per_second,
      coalesce(max(s.burst_balance_percent) over (partition by s.balances) <= 1, false)
      and s.iops <= 1.1 * v.baseline_iops
      and s.bytes_per_second <= 1.1 * v.baseline_bytes_per_second as is_empty
    from sample as s
    cross join volume as v
  ) as reading
),

-- I/O of all volumes of the instance, at times with data points of each volume.
of_instance as (
  select
    s.at,
    100 * greatest(
      sum((s.read_ops + s.write_ops) / s.period_seconds) / i.ebs_baseline_iops,
      sum((s.read_bytes + s.write_bytes) / s.period_seconds) / i.ebs_baseline_bytes_per_second
    ) as value
  from volume as v
  inner join inventory.instance_hourly as i using (hour, account, region, instance_id)
  inner join (
    select
      *,
      count(*) over (partition by hour, account, region, instance_id) as volumes
    from inventory.volume_hourly
    where hour = :hour
  ) as o using (hour, account, region, instance_id)
  inner join metrics.volume_sample as s
    on o.account = s.account and o.region = s.region and o.volume_id = s.volume_id
  where s.at >= v.hour - interval '12 hours' and s.at < v.hour + interval '1 hour'
  group by s.at, i.ebs_baseline_iops, i.ebs_baseline_bytes_per_second, o.volumes
  having count(s.read_ops + s.write_ops) = o.volumes
)

select
  at,
  'IOPS' as series,
  100 * iops / iops_limit as value
from limited
where iops is not null
union all
select
  at,
  'Throughput' as series,
  100 * bytes_per_second / bytes_per_second_limit as value
from limited
where bytes_per_second is not null
union all
select
  at,
  'Instance, all volumes' as series,
  value
from of_instance
union all
select
  at,
  'Burst balance' as series,
  burst_balance_percent as value
from limited
where burst_balance_percent is not null
union all
select
  v.known_until + edge.hours * interval '1 hour' as at,
  'Burst balance, forecast' as series,
  edge.value
from volume as v
cross join lateral (values (0.0, v.burst_balance_last_percent), (v.hours_to_exhaustion, 0.0)) as edge (hours, value)
where v.hours_to_exhaustion > 0 and v.hours_to_exhaustion < 24
union all
-- Demand of several times the limit would squeeze the other lines: beyond 200 % its legend has the value.
select
  edge.at,
  'Demand (95th percentile)'
  || case when d.percent > 200 then format(': %s %%, drawn at 200 %%', round(d.percent)) else '' end as series,
  least(d.percent, 200) as value
from volume as v
cross join lateral (values (v.hour), (v.known_until)) as edge (at)
cross join (select * from limited order by at desc limit 1) as l
cross join lateral (
  select
    100 * greatest(v.demand_iops_p95 / l.iops_limit, v.demand_bytes_per_second_p95 / l.bytes_per_second_limit) as percent
) as d
where v.demand_iops_p95 is not null
union all
select
  at,
  'limit Throttle limit (100 %)' as series,
  100 as value
from limited
order by at, series
