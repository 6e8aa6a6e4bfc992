/*
title: Which volumes were throttled
subject: hosts
description: >
  EBS volumes by throttled minutes, with burst balance and demand.
params:
  hours: {type: hours, description: Look-back that ends with the newest gathered hour, default: 24}
columns:
  volume_id: EBS volume id
  name: Tag Name
  application: Tag application
  volume_type: Volume type
  size_gib: Size in GiB
  minutes_throttled: Minutes in which a limit was exceeded
  lowest_burst_balance_percent: Lowest burst balance; null if there is no bucket, or not known
  demand_iops_p99: Largest demand in IOPS, 99th percentile
  baseline_iops: IOPS sustained without credits
  hours: Hours with data
  last_throttled_hour: Newest hour with throttling (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Load of each volume over the look-back.
load as (
  select
    m.account,
    m.region,
    m.volume_id,
    sum(m.minutes_throttled) as minutes_throttled,
    min(m.burst_balance_min_percent) as lowest_burst_balance_percent,
    max(m.demand_iops_p99) as demand_iops_p99,
    (array_agg(m.baseline_iops order by m.hour desc))[1] as baseline_iops,
    count(m.minutes_present) as hours,
    max(m.hour) filter (where m.minutes_throttled > 0) as last_throttled_hour
  from newest as n
  inner join metrics.volume_hourly as m on n.hour - :hours < m.hour and n.hour >= m.hour
  group by m.account, m.region, m.volume_id
)

select
  l.volume_id,
  v.name,
  v.application,
  v.volume_type,
  v.size_gib,
  l.minutes_throttled,
  l.lowest_burst_balance_percent,
  l.demand_iops_p99,
  l.baseline_iops,
  l.hours,
  l.last_throttled_hour
from load as l
left join inventory.volume_hourly as v
  on v.hour = (select hour from newest) and l.account = v.account and l.region = v.region and l.volume_id = v.volume_id
where l.minutes_throttled > 0
order by l.minutes_throttled desc, l.volume_id asc
