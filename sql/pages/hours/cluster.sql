-- A cluster, hour by hour: sums and worst values of its brokers, and the number of brokers.
select
  h.hour,
  m.bytes_in_per_second,
  m.bytes_out_per_second,
  m.under_replicated_partitions,
  m.messages_in_per_second,
  m.offline_partitions,
  m.partitions,
  m.log_bytes,
  m.log_flush_p95_ms_max,
  m.cpu_ratio_max,
  m.brokers,
  jsonb_build_object('brokers', m.known_brokers) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select
    sum(b.bytes_in_per_second) as bytes_in_per_second,
    sum(b.bytes_out_per_second) as bytes_out_per_second,
    sum(b.under_replicated_partitions_max) as under_replicated_partitions,
    sum(b.messages_in_per_second) as messages_in_per_second,
    max(b.offline_partitions) as offline_partitions,
    sum(b.partitions) as partitions,
    sum(b.log_bytes) as log_bytes,
    max(b.log_flush_p95_ms) as log_flush_p95_ms_max,
    max(b.cpu_ratio) as cpu_ratio_max,
    nullif(count(b.samples), 0) as brokers,
    nullif(count(*), 0) as known_brokers
  from metrics.broker_hourly as b
  where b.hour = h.hour and b.cluster = :cluster
) as m on true
order by h.hour
