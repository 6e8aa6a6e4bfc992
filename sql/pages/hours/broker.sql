-- A broker, hour by hour: metrics, and the start time that restarts are found by. A broker without an id has its endpoint.
select
  h.hour,
  m.bytes_in_per_second,
  m.log_flush_p95_ms,
  m.under_replicated_partitions_max,
  m.bytes_out_per_second,
  m.messages_in_per_second,
  m.produce_p99_ms,
  m.fetch_consumer_p99_ms,
  m.request_handler_idle_min_ratio,
  m.request_queue_max,
  m.offline_partitions,
  m.partitions,
  m.leaders,
  m.log_bytes,
  m.cpu_ratio,
  m.heap_used_bytes,
  m.heap_max_bytes,
  m.open_file_descriptors,
  m.max_file_descriptors,
  jsonb_build_object('restarted', m.process_started_at) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.broker_hourly as m
  where m.hour = h.hour and m.cluster = :cluster and coalesce(cast(m.broker_id as text), m.endpoint) = :broker_id
  order by m.endpoint
  limit 1
) as m on true
order by h.hour
