/*
title: Application needs more memory than there is
severity: critical
owner: platform
maturity: stable
reads: [metrics.jvm_app_hourly, inventory.instance_hourly, metrics.instance_hourly, metrics.node_hourly]
identity: [cluster, app, endpoint]
params:
  heavy_percent: {default: 85, unit: "%", why: "above it the page cache is gone and the kernel kills; 70 % is healthy"}
  split_ratio: {default: 2, unit: ratio, why: "a heap twice as large as what is live in it starves RocksDB"}
  heap_headroom_ratio: {default: 1.5, unit: ratio, why: "heap to set, over what is live after a collection"}
  heap_floor_bytes: {default: 268435456, unit: bytes, why: "no advice below 256 MiB of heap"}
  failure_percent: {default: 100, unit: "%", why: "when an instance dies the others take its stores and must still fit"}
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. Look at the split below: heap, off-heap (RocksDB), rest.
  2. Heap far above what is live after a collection: set -Xmx to the figure in the advice.
  3. RocksDB too large: give all stores one block cache and one write buffer manager (RocksDBConfigSetter) of the size in
     the advice; or spread the partitions over more instances; or take a larger type.
  4. Restart one process, wait until its stores are restored, then the next.
  5. Only a warning, that the death of one instance would be too much for the others: add an instance before one dies.
blind_spots: |
  RocksDB's write buffers aren't in JMX: set rocksdb_write_buffer_bytes and rocksdb_write_buffers of the endpoint where
  the application sets them. Stacks count 1 MiB a thread. Off-heap memory that neither RocksDB nor direct buffers take
  (JNI, malloc's arenas) shows only in the system's memory, which needs the CloudWatch agent or node exporter. What is live in a heap whose
  old generation hasn't been collected is an upper bound. Processes that aren't configured aren't counted; of standbys,
  which make a failure cheaper, nothing is known.
*/
with node as (
  select
    instance_id,
    max(memory_bytes) as memory_bytes,
    max(memory_used_mean_percent) as memory_used_mean_percent
  from metrics.node_hourly
  where hour = cast(:hour as timestamptz) and instance_id is not null
  group by instance_id
),

-- The system's memory in use by the CloudWatch agent, else by node exporter.
instance as (
  select
    coalesce(i.instance_id, n.instance_id) as instance_id,
    coalesce(max(i.memory_bytes), max(n.memory_bytes)) as memory_bytes,
    coalesce(max(m.memory_used_mean_percent), max(n.memory_used_mean_percent)) as system_memory_used_percent
  from (select * from inventory.instance_hourly where hour = cast(:hour as timestamptz)) as i
  left join metrics.instance_hourly as m
    on i.hour = m.hour and i.account = m.account and i.region = m.region and i.instance_id = m.instance_id
  full join node as n on i.instance_id = n.instance_id
  group by coalesce(i.instance_id, n.instance_id)
),

-- What it may grow to: RocksDB by measurement where that is already more than its configuration lets expect.
grown as (
  select
    a.*,
    coalesce(a.non_heap_used_bytes, 0) + coalesce(a.thread_stack_bytes, 0) + coalesce(a.direct_bytes, 0) as rest_bytes,
    case when a.store_instances > 0 then greatest(a.rocksdb_measured_bytes, a.rocksdb_expected_bytes) else 0 end
      as off_heap_bytes,
    i.system_memory_used_percent,
    least(a.memory_limit_bytes, i.memory_bytes) as memory_bytes,
    -- A container's limit is its own; the machine's memory is shared by all JVMs on it.
    coalesce(i.memory_bytes <= a.memory_limit_bytes * 1.1, false) as on_whole_machine
  from metrics.jvm_app_hourly as a
  left join instance as i on a.instance_id = i.instance_id
  where a.hour = cast(:hour as timestamptz)
),

-- After the worst single failure the stores of all instances lie on one fewer. A shared cache doesn't grow with them.
failing as (
  select
    *,
    case
      when rocksdb_shared_cache then off_heap_bytes
      when instances > 1 and store_instances > 0
        then off_heap_bytes * ceil(all_store_instances::numeric / (instances - 1)) / store_instances
    end as off_heap_after_failure_bytes
  from (
    select
      *,
      count(*) over (partition by cluster, application_id) as instances,
      sum(store_instances) over (partition by cluster, application_id) as all_store_instances
    from grown
  ) as g
),

summed as (
  select
    *,
    heap_max_bytes + off_heap_bytes + rest_bytes as total_bytes,
    case when application_id is not null then heap_max_bytes + off_heap_after_failure_bytes + rest_bytes end
      as total_after_failure_bytes,
    case
      when on_whole_machine
        then
          coalesce(sum(heap_max_bytes + off_heap_bytes + rest_bytes) over (partition by instance_id, on_whole_machine), 0)
          - coalesce(heap_max_bytes + off_heap_bytes + rest_bytes, 0)
      else 0
    end as neighbours_bytes,
    memory_bytes * :heavy_percent / 100 as budget_bytes,
    least(
      heap_max_bytes,
      greatest(
        :heap_floor_bytes,
        ceil(:heap_headroom_ratio * coalesce(heap_used_after_gc_bytes, heap_max_bytes) / 67108864) * 67108864
      )
    ) as heap_to_set_bytes
  from failing
),

judged as (
  select
    *,
    100 * (total_bytes + neighbours_bytes) / memory_bytes as total_percent,
    total_bytes + neighbours_bytes > budget_bytes as outgrows,
    coalesce(total_after_failure_bytes + neighbours_bytes > memory_bytes * :failure_percent / 100, false)
      as outgrows_after_failure,
    coalesce(system_memory_used_percent > :heavy_percent, false) as system_is_full,
    total_bytes + neighbours_bytes > budget_bytes
    and heap_max_bytes >= :split_ratio * heap_used_after_gc_bytes
    and off_heap_bytes > 0 as badly_split,
    budget_bytes - neighbours_bytes - heap_to_set_bytes - rest_bytes as off_heap_room_bytes
  from summed
),

-- In GiB, for the sentences.
worded as (
  select
    *,
    round((memory_bytes / 1073741824)::numeric, 1) as memory_gib,
    round((total_bytes / 1073741824)::numeric, 1) as total_gib,
    round((total_after_failure_bytes / 1073741824)::numeric, 1) as total_after_failure_gib,
    round((heap_max_bytes / 1073741824)::numeric, 1) as heap_gib,
    round((off_heap_bytes / 1073741824)::numeric, 1) as off_heap_gib,
    round((rest_bytes / 1073741824)::numeric, 1) as rest_gib,
    round((neighbours_bytes / 1073741824)::numeric, 1) as neighbours_gib,
    round((heap_to_set_bytes / 1048576)::numeric) as heap_to_set_mib,
    round((off_heap_room_bytes / 1048576)::numeric) as room_mib,
    round(
      ((heap_to_set_bytes + off_heap_bytes + rest_bytes + neighbours_bytes) * 100 / :heavy_percent / 1073741824)::numeric,
      1
    ) as memory_needed_gib
  from judged
)

select
  format('%s/%s on %s', cluster, app, coalesce(instance_id, substring(endpoint from '://([^/]+)'), endpoint))
    as resource,
  case
    when samples is null or memory_bytes is null or total_bytes is null then 'skip'
    when outgrows or system_is_full or outgrows_after_failure then 'alarm'
    else 'ok'
  end as status,
  case when outgrows or system_is_full then 'critical' when outgrows_after_failure then 'warning' end as severity,
  case
    when samples is null then 'It did not answer over JMX.'
    when memory_bytes is null then 'The memory of its machine is not known.'
    when total_bytes is null then 'Its heap limit or the memory of its RocksDB stores is not known.'
    when outgrows
      then format(
        'It may grow to %s GiB (heap %s, RocksDB %s, rest %s)%s: %s %% of %s GiB%s.',
        total_gib, heap_gib, off_heap_gib, rest_gib,
        case when neighbours_bytes > 0 then format(', other JVMs there to %s GiB', neighbours_gib) end,
        round(total_percent::numeric), memory_gib,
        case
          when badly_split
            then format(
              '; the heap is %s times what is live in it',
              round((heap_max_bytes / nullif(heap_used_after_gc_bytes, 0))::numeric)
            )
        end
      )
    when system_is_full
      then format(
        '%s %% of the system''s memory are in use; the application may grow to %s of %s GiB.',
        round(system_memory_used_percent::numeric), total_gib, memory_gib
      )
    when outgrows_after_failure
      then format(
        'It fits now with %s of %s GiB, but when one of the %s instances of %s dies it may grow to %s GiB.',
        total_gib, memory_gib, instances, application_id, total_after_failure_gib
      )
    else format(
      'It fits: it may grow to %s GiB (heap %s, RocksDB %s, rest %s), %s %% of %s GiB.',
      total_gib, heap_gib, off_heap_gib, rest_gib, round(total_percent::numeric), memory_gib
    )
  end as reason,
  case
    when outgrows_after_failure and not outgrows
      then format(
        'Run %s instances instead of %s, or give all stores one block cache (RocksDBConfigSetter), which doesn''t grow.',
        instances + 1, instances
      )
    when not outgrows or samples is null then null
    when off_heap_bytes <= off_heap_room_bytes
      then format('Set -Xmx%sm: RocksDB then has the room it needs.', heap_to_set_mib)
    when room_mib >= 128
      then format(
        'Set -Xmx%sm and give all stores one block cache of %s MiB with a write buffer manager of %s MiB charged to it'
        ' (RocksDBConfigSetter); or take a machine with %s GiB for RocksDB as it is configured.',
        heap_to_set_mib, room_mib, round(room_mib / 2), memory_needed_gib
      )
    else format(
      'Even with -Xmx%sm nothing is left for RocksDB: take a machine with %s GiB, or spread its partitions over more.',
      heap_to_set_mib, memory_needed_gib
    )
  end as advice,
  cluster,
  app,
  endpoint,
  application_id,
  instance_id,
  memory_bytes,
  total_bytes,
  total_percent,
  total_after_failure_bytes,
  instances,
  heap_max_bytes,
  heap_used_bytes,
  heap_used_after_gc_bytes,
  off_heap_bytes,
  rocksdb_measured_bytes as off_heap_measured_bytes,
  rocksdb_expected_bytes as off_heap_expected_bytes,
  rest_bytes,
  neighbours_bytes,
  system_memory_used_percent,
  badly_split,
  heap_to_set_bytes,
  off_heap_room_bytes,
  store_instances,
  rocksdb_shared_cache as shared_block_cache,
  to_jsonb(array_remove(array[
    format('app:%s', app),
    case when instance_id is not null then format('instance:%s', instance_id) end,
    case when application_id is not null then format('group:%s/%s', cluster, application_id) end
  ], null)) as touches
from worded
