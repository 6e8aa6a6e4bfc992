/*
title: Memory of the process against its limit
unit: bytes
kind: stacked
why: "Left what it holds, right what it may grow to. What is above the line doesn't fit."
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
  where a.hour = cast(:hour as timestamptz) and a.cluster = :cluster and a.app = :app and a.endpoint = :endpoint
)

select
  part.label,
  part.series,
  part.value
from process
cross join lateral (
  values
  ('holds now', 'heap', heap_used_bytes),
  ('holds now', 'off-heap (RocksDB)', coalesce(rocksdb_measured_bytes, 0)),
  ('holds now', 'rest (classes, code, stacks, buffers)', rest_bytes),
  ('may grow to', 'heap', heap_max_bytes),
  ('may grow to', 'off-heap (RocksDB)', coalesce(greatest(rocksdb_measured_bytes, rocksdb_expected_bytes), 0)),
  ('may grow to', 'rest (classes, code, stacks, buffers)', rest_bytes),
  ('may grow to', 'limit memory', memory_bytes)
) as part (label, series, value)
where part.value is not null
