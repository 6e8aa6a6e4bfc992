-- EBS volumes in the newest gathered hour: configuration, load, and burst credits.
create or replace view public.volumes as
select
  i.account,  -- AWS account id
  i.region,  -- AWS region
  i.volume_id,  -- EBS volume id
  i.name,  -- Tag Name
  i.application,  -- Tag application
  i.volume_type,  -- gp2, gp3, io1, io2, st1, sc1
  i.size_gib,  -- Size in GiB
  i.instance_id,  -- Instance that it is attached to; null: detached
  m.iops_mean,  -- Operations per second, mean
  m.iops_p99,  -- Operations per second, 99th percentile of the minutes
  m.baseline_iops,  -- Baseline IOPS, sustained without credits
  m.burst_balance_last_percent,  -- Latest BurstBalance; null: no bucket, or not known
  m.hours_to_exhaustion,  -- Hours until its burst credits are used up at this load; null: not draining, or not known
  m.minutes_throttled,  -- Minutes of the hour in which a limit was exceeded
  m.throttled_since,  -- When throttling began (UTC)
  m.minutes_present,  -- Minutes with known load; null: CloudWatch did not respond
  i.hour  -- Start of the hour (UTC)
from inventory.volume_hourly as i
left join metrics.volume_hourly as m
  on i.hour = m.hour and i.account = m.account and i.region = m.region and i.volume_id = m.volume_id
where i.hour = (select max(hour) from inventory.volume_hourly)
order by m.hours_to_exhaustion asc nulls last, i.volume_id asc;
