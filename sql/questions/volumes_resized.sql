/*
title: Which volumes were changed, and did it help
subject: hosts
description: >
  Changes of type, size, or limits of EBS volumes, with throttled minutes per day before and after.
params:
  days: {type: days, description: Look-back that ends with the newest evaluated hour, default: 30}
columns:
  volume_id: EBS volume id
  changed_hour: First hour with the new configuration (UTC)
  old_configuration: Type, size, provisioned IOPS and throughput before
  new_configuration: The same after
  throttled_minutes_per_day_before: Throttled minutes per day, over up to 7 days before
  throttled_minutes_per_day_after: The same, over up to 7 days after
  hours_after: Hours with data since the change, up to 7 days
  usd_per_month_change: Change of the list price; null if not known
  has_helped: Whether throttling has fallen to less than a tenth; null if it was not throttled before, or less than 24 h are known
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Each period of a configuration, next to the one before it. Attachment is no change of the volume.
change as (
  select
    s.*,
    lag(s.volume_type) over periods as old_type,
    lag(s.size_gib) over periods as old_size_gib,
    lag(s.provisioned_iops) over periods as old_iops,
    lag(s.provisioned_throughput_mib_s) over periods as old_throughput_mib_s,
    lag(s.valid_from) over periods as old_valid_from
  from inventory.volume_stretch as s
  window periods as (partition by s.account, s.region, s.volume_id order by s.valid_from)
),

-- Throttled minutes of the week before and the week after each change.
compared as (
  select
    c.*,
    b.throttled_minutes_per_day as before_minutes,
    a.throttled_minutes_per_day as after_minutes,
    a.known_hours
  from newest as n
  inner join change as c on n.hour - :days < c.valid_from
  cross join lateral (
    select 24.0 * sum(v.minutes_throttled) / nullif(count(v.minutes_throttled), 0) as throttled_minutes_per_day
    from metrics.volume_hourly as v
    where v.account = c.account and v.region = c.region and v.volume_id = c.volume_id
    and v.hour >= c.valid_from - interval '7 days' and v.hour < c.valid_from
  ) as b
  cross join lateral (
    select
      24.0 * sum(v.minutes_throttled) / nullif(count(v.minutes_throttled), 0) as throttled_minutes_per_day,
      count(v.minutes_throttled) as known_hours
    from metrics.volume_hourly as v
    where v.account = c.account and v.region = c.region and v.volume_id = c.volume_id
    and v.hour >= c.valid_from and v.hour < c.valid_from + interval '7 days'
  ) as a
  where
    c.old_type is not null
    and (c.volume_type, c.size_gib, c.provisioned_iops, c.provisioned_throughput_mib_s)
    is distinct from (c.old_type, c.old_size_gib, c.old_iops, c.old_throughput_mib_s)
)

select
  volume_id,
  valid_from as changed_hour,
  concat_ws(', ', old_type, old_size_gib || ' GiB', old_iops || ' IOPS', old_throughput_mib_s || ' MiB/s')
    as old_configuration,
  concat_ws(', ', volume_type, size_gib || ' GiB', provisioned_iops || ' IOPS', provisioned_throughput_mib_s || ' MiB/s')
    as new_configuration,
  before_minutes as throttled_minutes_per_day_before,
  after_minutes as throttled_minutes_per_day_after,
  known_hours as hours_after,
  inventory.ebs_usd_per_month(region, volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s)
  - inventory.ebs_usd_per_month(region, old_type, old_size_gib, old_iops, old_throughput_mib_s) as usd_per_month_change,
  case when before_minutes > 0 and known_hours >= 24 then after_minutes < 0.1 * before_minutes end as has_helped
from compared
order by valid_from desc, volume_id asc
