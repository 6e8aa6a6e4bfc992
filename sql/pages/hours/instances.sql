-- Interchangeable instances, hour by hour: how many there are, and how many failed a status check.
select
  h.hour,
  m.instances,
  m.instances_failing,
  m.minutes_instance_failed,
  m.minutes_system_failed,
  jsonb_build_object('instances', m.instances) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select
    nullif(count(*), 0) as instances,
    count(*) filter (where i.failing_since is not null) as instances_failing,
    sum(i.minutes_instance_failed) as minutes_instance_failed,
    sum(i.minutes_system_failed) as minutes_system_failed
  from metrics.instance_health_hourly as i
  where
    i.hour = h.hour and i.account = :account and i.region = :region and i.instance_group = :instance_group
) as m on true
order by h.hour
