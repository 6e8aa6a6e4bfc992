-- Idle ratio of the request handler threads of each broker, minimum of the hour.
select
  b.hour as time,
  'broker ' || coalesce(b.broker_id::text, b.endpoint) as metric,
  b.request_handler_idle_min_ratio as value
from metrics.broker_hourly as b
where
  b.cluster = :cluster and b.request_handler_idle_min_ratio is not null
  and b.hour >= cast(:start as timestamptz) and b.hour < cast(:finish as timestamptz)
order by b.hour, metric
