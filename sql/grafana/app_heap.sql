-- Heap in use after garbage collection, of each process of an application, in bytes.
select
  a.hour as time,
  a.endpoint as metric,
  a.heap_used_after_gc_bytes as value
from metrics.jvm_app_hourly as a
where
  a.cluster = :cluster and a.app = :application
  and a.hour >= cast(:start as timestamptz) and a.hour < cast(:finish as timestamptz)
order by a.hour, a.endpoint
