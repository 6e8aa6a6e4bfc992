-- An EC2 instance, hour by hour: metrics, and the settings that changes are found by.
select
  h.hour,
  m.cpu_mean_percent,
  m.memory_used_mean_percent,
  m.ebs_byte_balance_min_percent,
  m.cpu_max_percent,
  m.memory_used_max_percent,
  m.disk_used_max_percent,
  m.ebs_io_balance_min_percent,
  m.minutes_ebs_limited,
  jsonb_build_object('instance_type', i.instance_type, 'launched', i.launched_at, 'state', i.state) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.instance_hourly as m
  where
    m.hour = h.hour
    and m.account = :account
    and m.region = :region
    and m.instance_id = :instance_id
) as m on true
left join lateral (
  select * from inventory.instance_hourly as i
  where i.hour = h.hour and i.account = :account and i.region = :region and i.instance_id = :instance_id
) as i on true
order by h.hour
