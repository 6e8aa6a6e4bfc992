-- Throughput of a volume with its limits, in bytes per second.
select
  v.hour as time,
  v.bytes_per_second_mean,
  v.bytes_per_second_p99,
  v.baseline_bytes_per_second,
  v.burst_bytes_per_second
from metrics.volume_hourly as v
where
  v.volume_id = :volume
  and v.hour >= cast(:start as timestamptz) and v.hour < cast(:finish as timestamptz)
order by v.hour
