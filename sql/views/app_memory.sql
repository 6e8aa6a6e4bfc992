-- Memory of the applications in the newest gathered hour, split into heap, RocksDB and rest, against what there is.
create or replace view public.app_memory as
select
  a.cluster,  -- Kafka cluster
  a.app,  -- Application
  a.endpoint,  -- Address of its JMX agent
  a.instance_id,  -- EC2 instance it runs on
  a.memory_limit_bytes,  -- Memory of its container or machine
  a.heap_max_bytes,  -- Heap limit
  a.heap_used_after_gc_bytes,  -- Heap in use after the last collection
  a.rocksdb_measured_bytes,  -- RocksDB as it reports itself
  a.rocksdb_expected_bytes,  -- What RocksDB may grow to by configuration
  coalesce(a.non_heap_used_bytes, 0) + coalesce(a.direct_bytes, 0) + coalesce(a.thread_stack_bytes, 0) as rest_bytes,  -- Metaspace, code, direct buffers, stacks; what isn't known counts 0
  a.store_instances,  -- State-store instances
  a.stream_threads_alive,  -- Living stream threads
  a.stream_threads_failed,  -- Failed stream threads
  a.samples,  -- Times it answered; null: never
  a.hour  -- The hour (UTC)
from metrics.jvm_app_hourly as a
where a.hour = (select max(hour) from metrics.jvm_app_hourly)
order by a.app, a.endpoint;
