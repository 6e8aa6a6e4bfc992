-- Burst balance of a volume in percent, minimum of the hour; nothing for volumes without a burst bucket.
select
  v.hour as time,
  v.burst_balance_min_percent
from metrics.volume_hourly as v
where
  v.volume_id = :volume
  and v.hour >= cast(:start as timestamptz) and v.hour < cast(:finish as timestamptz)
order by v.hour
