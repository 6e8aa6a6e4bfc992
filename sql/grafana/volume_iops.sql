-- IOPS of a volume with its limits.
select
  v.hour as time,
  v.iops_mean,
  v.iops_p99,
  v.baseline_iops,
  v.burst_iops
from metrics.volume_hourly as v
where
  v.volume_id = :volume
  and v.hour >= cast(:start as timestamptz) and v.hour < cast(:finish as timestamptz)
order by v.hour
