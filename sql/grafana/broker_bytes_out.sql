-- Bytes that consumers fetched from each broker per second.
select
  b.hour as time,
  'broker ' || coalesce(b.broker_id::text, b.endpoint) as metric,
  b.bytes_out_per_second as value
from metrics.broker_hourly as b
where
  b.cluster = :cluster and b.bytes_out_per_second is not null
  and b.hour >= cast(:start as timestamptz) and b.hour < cast(:finish as timestamptz)
order by b.hour, metric
