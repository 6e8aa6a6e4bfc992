-- Memory of applications in the newest gathered hour: heap, RocksDB, and the rest, against the memory limit.
create or replace view public.app_memory as
select
  a.cluster,  -- Kafka cluster
  a.app,  -- Application
  a.endpoint,  -- Address of its JMX endpoint
  a.instance_id,  -- EC2 instance that it runs on
  a.memory_limit_bytes,  -- Memory limit of its container or host
  a.heap_max_bytes,  -- Heap limit
  a.heap_used_after_gc_bytes,  -- Heap in use after the last collection
  a.rocksdb_measured_bytes,  -- Memory that RocksDB reports
  a.rocksdb_expected_bytes,  -- Maximum of RocksDB's memory by configuration
  coalesce(a.non_heap_used_bytes, 0) + coalesce(a.direct_bytes, 0) + coalesce(a.thread_stack_bytes, 0) as rest_bytes,  -- Metaspace, code cache, direct buffers, and thread stacks; unknown values count as 0
  a.store_instances,  -- State store instances
  a.stream_threads_alive,  -- Live stream threads
  a.stream_threads_failed,  -- Failed stream threads
  a.samples,  -- Successful scrapes; null: none
  a.hour  -- Start of the hour (UTC)
from metrics.jvm_app_hourly as a
where a.hour = (select max(hour) from metrics.jvm_app_hourly)
order by a.app, a.endpoint;
