-- A host, hour by hour: metrics of its node exporter, and the boot time that restarts are found by.
select
  h.hour,
  m.cpu_ratio,
  m.memory_used_mean_percent,
  m.fullest_file_system_percent,
  m.iowait_ratio,
  m.load_1m_max,
  m.page_cache_bytes,
  m.memory_bytes,
  m.disk_read_bytes_per_second,
  m.disk_written_bytes_per_second,
  m.busiest_disk,
  m.busiest_disk_ratio,
  m.fullest_file_system,
  m.fullest_file_system_available_bytes,
  m.steal_ratio,
  jsonb_build_object('restarted', m.booted_at) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.node_hourly as m
  where
    m.hour = h.hour
    and m.cluster = :cluster
    and m.endpoint = :endpoint
) as m on true
order by h.hour
