-- Minutes of the hour in which a limit of a volume was exceeded.
select
  v.hour as time,
  v.minutes_throttled::double precision as minutes_throttled
from metrics.volume_hourly as v
where
  v.volume_id = :volume
  and v.hour >= cast(:start as timestamptz) and v.hour < cast(:finish as timestamptz)
order by v.hour
