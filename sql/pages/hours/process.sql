-- A process of an application, hour by hour: metrics, and the start time that restarts are found by.
select
  h.hour,
  m.heap_used_bytes,
  m.cpu_ratio,
  m.stream_threads_alive,
  m.heap_max_bytes,
  m.memory_limit_bytes,
  m.resident_bytes,
  m.rocksdb_measured_bytes,
  m.gc_seconds,
  m.threads,
  m.stream_threads_failed,
  m.records_processed,
  m.records_dropped,
  m.process_latency_max_ms,
  m.poll_latency_max_ms,
  m.open_file_descriptors,
  m.max_file_descriptors,
  m.streams_state,
  jsonb_build_object('restarted', m.process_started_at) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select m.* from metrics.jvm_app_hourly as m
  where
    m.hour = h.hour and m.cluster = :cluster
    -- The key of the table begins with hour, cluster, and app: the name from the config is looked up first.
    and m.app = any(array(
      select distinct a.app from metrics.jvm_app_hourly as a
      where
        a.hour > cast(:finish as timestamptz) - interval '24 hours' and a.hour <= cast(:finish as timestamptz)
        and a.cluster = :cluster and a.endpoint = :endpoint
    ))
    and m.endpoint = :endpoint
  order by m.endpoint
  limit 1
) as m on true
order by h.hour
