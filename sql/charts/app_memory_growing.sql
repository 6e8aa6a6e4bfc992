/*
title: Process memory by part
unit: bytes
kind: lines
why: "Since the start of the process, at most a week: total (resident or host memory) and the parts that JMX reports. Other growth is native memory."
*/
select
  a.hour as at,
  part.series,
  part.value
from metrics.jvm_app_hourly as a
inner join metrics.jvm_app_hourly as p
  on a.cluster = p.cluster and a.endpoint = p.endpoint and p.hour = :hour
  and a.hour >= p.process_started_at
left join metrics.node_hourly as n on a.hour = n.hour and a.instance_id = n.instance_id
cross join lateral (
  values
  ('total', coalesce(a.resident_bytes, n.memory_bytes * n.memory_used_mean_percent / 100)),
  ('heap after GC', a.heap_used_after_gc_bytes),
  ('RocksDB', a.rocksdb_measured_bytes),
  ('threads', a.thread_stack_bytes),
  ('direct buffers', a.direct_bytes)
) as part (series, value)
where a.hour > :hour - interval '7 days' and a.hour <= :hour
and a.cluster = :cluster and a.endpoint = :endpoint and part.value is not null
order by a.hour, part.series
