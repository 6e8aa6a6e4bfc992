-- Log flush time (p95) of each broker, in milliseconds.
select
  b.hour as time,
  'broker ' || coalesce(b.broker_id::text, b.endpoint) as metric,
  b.log_flush_p95_ms as value
from metrics.broker_hourly as b
where
  b.cluster = :cluster and b.log_flush_p95_ms is not null
  and b.hour >= cast(:start as timestamptz) and b.hour < cast(:finish as timestamptz)
order by b.hour, metric
