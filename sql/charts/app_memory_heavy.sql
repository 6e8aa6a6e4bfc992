/*
title: Memory of the fullest process against its limit
unit: bytes
kind: stacked
why: "Current and maximum memory of the process; a bar above the line does not fit. Other: classes, code, and stacks."
*/
select
  part.label,
  part.series,
  part.value
from (
  select *
  from metrics.jvm_app_hourly
  inner join metrics.process_memory(:hour) using (cluster, endpoint)
  where hour = :hour and samples > 0 and cluster = :cluster and coalesce(application_id, app) = :application_id
  order by greatest(total_bytes / limit_bytes, host_total_bytes / host_memory_bytes) desc nulls last, endpoint
  limit 1
) as a
cross join lateral (
  values
  ('now', 'heap', a.heap_used_bytes),
  ('now', 'off-heap (RocksDB)', a.rocksdb_measured_bytes),
  ('now', 'other', a.rest_bytes),
  ('may grow to', 'heap', a.heap_max_bytes),
  ('may grow to', 'off-heap (RocksDB)', nullif(a.off_heap_bytes, 0)),
  ('may grow to', 'other', a.rest_bytes),
  ('now', 'limit Memory limit', a.limit_bytes),
  ('may grow to', 'limit Memory limit', a.limit_bytes)
) as part (label, series, value)
where part.value is not null
