-- Changes of type, size, or limits of EBS volumes, with their effect: throttled minutes per day in the 7 days before and after, and the change of the list price.
create or replace view public.volume_changes as
with change as (
  select
    s.*,
    lag(s.volume_type) over periods as old_volume_type,
    lag(s.size_gib) over periods as old_size_gib,
    lag(s.provisioned_iops) over periods as old_provisioned_iops,
    lag(s.provisioned_throughput_mib_s) over periods as old_provisioned_throughput_mib_s
  from inventory.volume_configuration as s
  window periods as (partition by s.account, s.region, s.volume_id order by s.valid_from)
)

select
  c.account,  -- AWS account id
  c.region,  -- AWS region
  c.volume_id,  -- EBS volume id
  c.valid_from as changed_hour,  -- First hour with the new configuration (UTC)
  c.old_volume_type,  -- Type before
  c.volume_type,  -- Type after
  c.old_size_gib,  -- Size before, in GiB
  c.size_gib,  -- Size after, in GiB
  c.old_provisioned_iops,  -- Provisioned IOPS before; null: not provisioned
  c.provisioned_iops,  -- Provisioned IOPS after
  c.old_provisioned_throughput_mib_s,  -- Provisioned throughput before, in MiB/s; null: not provisioned
  c.provisioned_throughput_mib_s,  -- Provisioned throughput after, in MiB/s
  b.throttled_minutes_per_day as old_throttled_minutes_per_day,  -- Throttled minutes per day in the 7 days before; null: not known
  a.throttled_minutes_per_day,  -- Throttled minutes per day in the 7 days after; null: not known
  a.known_hours,  -- Hours with data in the 7 days after
  inventory.ebs_usd_per_month(c.region, c.volume_type, c.size_gib, c.provisioned_iops, c.provisioned_throughput_mib_s)
  - inventory.ebs_usd_per_month(
    c.region, c.old_volume_type, c.old_size_gib, c.old_provisioned_iops, c.old_provisioned_throughput_mib_s
  ) as usd_per_month_change,  -- Change of the list price, in USD per month; null: not known
  case
    when b.throttled_minutes_per_day > 0 and a.known_hours >= 24
      then a.throttled_minutes_per_day < 0.1 * b.throttled_minutes_per_day
  end as has_helped  -- Whether throttling fell to less than a tenth; null: it was not throttled before, or less than 24 h are known
from change as c
cross join lateral (
  select 24.0 * sum(v.minutes_throttled) / nullif(count(v.minutes_throttled), 0) as throttled_minutes_per_day
  from metrics.volume_hourly as v
  where
    v.account = c.account and v.region = c.region and v.volume_id = c.volume_id
    and v.hour >= c.valid_from - interval '7 days' and v.hour < c.valid_from
) as b
cross join lateral (
  select
    24.0 * sum(v.minutes_throttled) / nullif(count(v.minutes_throttled), 0) as throttled_minutes_per_day,
    count(v.minutes_throttled) as known_hours
  from metrics.volume_hourly as v
  where
    v.account = c.account and v.region = c.region and v.volume_id = c.volume_id
    and v.hour >= c.valid_from and v.hour < c.valid_from + interval '7 days'
) as a
where
  c.old_volume_type is not null
  and (c.volume_type, c.size_gib, c.provisioned_iops, c.provisioned_throughput_mib_s)
  is distinct from (c.old_volume_type, c.old_size_gib, c.old_provisioned_iops, c.old_provisioned_throughput_mib_s)
order by c.valid_from desc, c.volume_id asc;
