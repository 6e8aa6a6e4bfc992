-- An application, hour by hour: sums and worst values of its processes, the newest start, and the number of processes.
select
  h.hour,
  m.records_processed,
  m.heap_used_bytes,
  m.stream_threads_alive,
  m.process_latency_max_ms,
  m.records_dropped,
  m.records_to_restore,
  m.cpu_ratio_max,
  m.gc_seconds,
  m.rocksdb_measured_bytes,
  m.stream_threads_failed,
  m.store_instances,
  m.processes,
  jsonb_build_object('restarted', m.started_at, 'processes', m.processes) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select
    sum(m.records_processed) as records_processed,
    sum(m.heap_used_bytes) as heap_used_bytes,
    sum(m.stream_threads_alive) as stream_threads_alive,
    max(m.process_latency_max_ms) as process_latency_max_ms,
    sum(m.records_dropped) as records_dropped,
    sum(m.records_to_restore) as records_to_restore,
    max(m.cpu_ratio) as cpu_ratio_max,
    sum(m.gc_seconds) as gc_seconds,
    sum(m.rocksdb_measured_bytes) as rocksdb_measured_bytes,
    sum(m.stream_threads_failed) as stream_threads_failed,
    sum(m.store_instances) as store_instances,
    nullif(count(m.samples), 0) as processes,
    max(m.process_started_at) as started_at
  from metrics.jvm_app_hourly as m
  where
    m.hour = h.hour and m.cluster = :cluster
    -- The key of the table begins with hour, cluster, and app: the name from the config is looked up first.
    and m.app = any(array(
      select distinct a.app from metrics.jvm_app_hourly as a
      where
        a.hour > cast(:finish as timestamptz) - interval '24 hours' and a.hour <= cast(:finish as timestamptz)
        and a.cluster = :cluster and coalesce(a.application_id, a.app) = :application_id
    ))
    and coalesce(m.application_id, m.app) = :application_id
) as m on true
order by h.hour
