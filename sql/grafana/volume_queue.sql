-- Queue length and latencies of a volume.
select
  v.hour as time,
  v.queue_length_mean,
  v.read_latency_ms,
  v.write_latency_ms
from metrics.volume_hourly as v
where
  v.volume_id = :volume
  and v.hour >= cast(:start as timestamptz) and v.hour < cast(:finish as timestamptz)
order by v.hour
