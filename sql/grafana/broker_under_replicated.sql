-- Under-replicated partitions of each broker, maximum of the hour.
select
  b.hour as time,
  'broker ' || coalesce(b.broker_id::text, b.endpoint) as metric,
  b.under_replicated_partitions_max as value
from metrics.broker_hourly as b
where
  b.cluster = :cluster and b.under_replicated_partitions_max is not null
  and b.hour >= cast(:start as timestamptz) and b.hour < cast(:finish as timestamptz)
order by b.hour, metric
