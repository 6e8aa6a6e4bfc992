-- Produce latency (p99) of each broker, in milliseconds.
select
  b.hour as time,
  'broker ' || coalesce(b.broker_id::text, b.endpoint) as metric,
  b.produce_p99_ms as value
from metrics.broker_hourly as b
where
  b.cluster = :cluster and b.produce_p99_ms is not null
  and b.hour >= cast(:start as timestamptz) and b.hour < cast(:finish as timestamptz)
order by b.hour, metric
