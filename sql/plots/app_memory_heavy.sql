/*
title: Memory of the process against its limit
unit: bytes
kind: stacked
why: "What the process holds and what it may grow to; what is beyond the line doesn't fit. Rest: classes, code, stacks."
*/
select
  part.label,
  part.series,
  part.value
from metrics.jvm_app_hourly as a
inner join metrics.process_memory(cast(:hour as timestamptz)) as m using (cluster, endpoint)
cross join lateral (
  values
  ('holds now', 'heap', a.heap_used_bytes),
  ('holds now', 'off-heap (RocksDB)', a.rocksdb_measured_bytes),
  ('holds now', 'rest', m.rest_bytes),
  ('may grow to', 'heap', a.heap_max_bytes),
  ('may grow to', 'off-heap (RocksDB)', nullif(m.off_heap_bytes, 0)),
  ('may grow to', 'rest', m.rest_bytes),
  ('holds now', 'limit memory', m.limit_bytes),
  ('may grow to', 'limit memory', m.limit_bytes)
) as part (label, series, value)
where
  a.hour = cast(:hour as timestamptz) and a.samples > 0 and part.value is not null
  and a.cluster = :cluster and a.endpoint = :endpoint
