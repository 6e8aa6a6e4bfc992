/*
title: Memory and CPU before the failure
unit: percent
kind: lines
why: "Exhausted memory evicts the page cache, and CPU time goes into reading it back. CPU load alone is regular work."
*/
with termination as (
  select
    instance_id,
    started_at as until_at
  from metrics.scaling_activity_hourly
  where account = :account and region = :region and scaling_group = :instance_group and is_termination
  and cause ~* '(health[- ]?check|status check)'
  and hour > :hour - interval '24 hours' and hour <= :hour
  order by started_at desc
  limit 1
),

busiest as (
  select
    h.instance_id,
    h.hour + interval '1 hour' as until_at
  from metrics.instance_health_hourly as h
  left join metrics.instance_hourly as i using (hour, account, region, instance_id)
  where h.hour = :hour and h.account = :account and h.region = :region and h.instance_group = :instance_group
  order by h.failing_since asc nulls last, i.cpu_mean_percent desc nulls last
  limit 1
),

one as (
  select * from termination
  union all
  select * from busiest
  where not exists (select from termination)
)

select
  s.at,
  line.series,
  line.value
from one as o
inner join metrics.instance_sample as s on o.instance_id = s.instance_id
cross join lateral (
  values ('memory', s.memory_used_percent), ('CPU', s.cpu_percent), ('limit Memory limit', 85)
) as line (series, value)
where s.account = :account and s.region = :region and line.value is not null
and s.at >= o.until_at - interval '3 hours' and s.at < o.until_at
order by s.at, line.series
