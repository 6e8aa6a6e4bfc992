/*
title: Memory of the process against its limit
unit: bytes
kind: stacked
why: "What the process holds and what it may grow to; what is beyond the line doesn't fit. Rest: classes, code, stacks."
*/
with process as (
  select
    a.*,
    coalesce(a.non_heap_used_bytes, 0) + coalesce(a.thread_stack_bytes, 0) + coalesce(a.direct_bytes, 0) as rest_bytes,
    least(
      a.memory_limit_bytes,
      (
        select max(i.memory_bytes) from inventory.instance_hourly as i
        where i.hour = a.hour and i.instance_id = a.instance_id
      )
    ) as memory_bytes
  from metrics.jvm_app_hourly as a
  where
    a.hour = cast(:hour as timestamptz) and a.samples > 0
    and a.cluster = :cluster and a.app = :app and a.endpoint = :endpoint
)

select
  part.label,
  part.series,
  part.value
from process
cross join lateral (
  values
  ('holds now', 'heap', heap_used_bytes),
  ('holds now', 'off-heap (RocksDB)', rocksdb_measured_bytes),
  ('holds now', 'rest', rest_bytes),
  ('may grow to', 'heap', heap_max_bytes),
  ('may grow to', 'off-heap (RocksDB)', greatest(rocksdb_measured_bytes, rocksdb_expected_bytes)),
  ('may grow to', 'rest', rest_bytes),
  ('holds now', 'limit memory', memory_bytes),
  ('may grow to', 'limit memory', memory_bytes)
) as part (label, series, value)
where part.value is not null
