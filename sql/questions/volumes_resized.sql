/*
title: Which volumes were changed, and did it help
subject: hosts
description: >
  Changes of type, size, or limits of EBS volumes, with throttled minutes per day before and after.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 30}
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
)

select
  c.volume_id,
  c.changed_hour,
  concat_ws(
    ', ', c.old_volume_type, c.old_size_gib || ' GiB', c.old_provisioned_iops || ' IOPS',
    c.old_provisioned_throughput_mib_s || ' MiB/s'
  ) as old_configuration,
  concat_ws(
    ', ', c.volume_type, c.size_gib || ' GiB', c.provisioned_iops || ' IOPS', c.provisioned_throughput_mib_s || ' MiB/s'
  ) as new_configuration,
  c.old_throttled_minutes_per_day as throttled_minutes_per_day_before,
  c.throttled_minutes_per_day as throttled_minutes_per_day_after,
  c.known_hours as hours_after,
  c.usd_per_month_change,
  c.has_helped
from newest as n
inner join public.volume_changes as c on n.hour - :days < c.changed_hour
order by c.changed_hour desc, c.volume_id asc
