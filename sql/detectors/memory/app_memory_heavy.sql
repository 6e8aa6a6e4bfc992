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
  live_days: {default: 7, unit: days, why: "what is live in a heap follows the day and the week; most of that time counts"}
  failure_percent: {default: 100, unit: "%", why: "when a machine dies the others take its stores and must still fit"}
  pressure_percent: {default: 85, unit: "%", why: "of the heap, after a collection: the next ones free too little"}
  gc_percent: {default: 10, unit: "%", why: "of the hour in pauses of the collector: work stands still for so long"}
rule: |
  What a process may grow to is its whole heap (-Xmx), metaspace, code, stacks and direct buffers as they are now, and
  RocksDB: for each store instance its write buffers and its block cache, a shared cache once, or what RocksDB reports
  where that is more already. All JVMs of a machine are added up, containers up to their limits. Critical: more than
  heavy_percent of the memory of the container or the machine; or the system itself has so much in use.

  Warning: it fits now, but not after the worst single failure. Then a machine is gone, and the other processes of its
  applications have taken over its stores, evenly, none twice; write buffers and own caches come with them, a shared
  cache doesn't grow. Also a warning: a collection leaves more than pressure_percent of the heap in use, or pauses take
  more than gc_percent of the hour.

  A missing figure is never healthy: it alarms where the known ones are too much already, it is fine where the most that
  it can be still fits, and else it isn't judged.
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. Look at the split below: heap, off-heap (RocksDB), rest, and the other JVMs on the machine.
  2. Heap far above what is live after a collection: set -Xmx to the figure in the advice.
  3. RocksDB too large: give all stores one block cache and one write buffer manager (RocksDBConfigSetter) of the size in
     the advice; or spread the partitions over more instances; or take a larger type.
  4. Restart one process, wait until its stores are restored, then the next.
  5. Only a warning, that the death of one machine would be too much for the others: add an instance before one dies.
  6. Only a warning, that the heap is full or is collected all the time: see what holds it (jcmd <pid> GC.class_histogram)
     before raising -Xmx.
blind_spots: |
  RocksDB's write buffers aren't in JMX: set rocksdb_write_buffer_bytes and rocksdb_write_buffers of the endpoint where
  the application sets them. Stacks count 1 MiB a thread. Off-heap memory that neither RocksDB nor direct buffers take
  (JNI, malloc's arenas) shows only in the system's memory, which needs the CloudWatch agent or node exporter. What is
  live in a heap whose old generation hasn't been collected is an upper bound. Processes that aren't configured aren't
  counted, and JVMs are known to share a machine only where instance_id is set. After a failure stores are taken to spread
  evenly. A small shared cache (tens of MiB) stays up to a seventh below its capacity for good: RocksDB cuts it into
  shards of half a MiB, in which the write buffers' entries of 256 KiB leave gaps.
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

-- A process that has just started holds next to nothing: the most of the last days counts.
heap as (
  select
    cluster,
    app,
    endpoint,
    max(heap_used_after_gc_bytes) as live_bytes,
    count(heap_used_after_gc_bytes) as hours_known
  from metrics.jvm_app_hourly
  where hour > cast(:hour as timestamptz) - make_interval(days => :live_days) and hour <= cast(:hour as timestamptz)
  group by cluster, app, endpoint
),

-- What each may grow to, at least and at most. RocksDB by measurement where that is already more than is expected of it.
process as (
  select
    a.*,
    h.live_bytes,
    h.hours_known,
    i.system_memory_used_percent,
    i.memory_bytes as machine_memory_bytes,
    least(a.memory_limit_bytes, i.memory_bytes) as limit_bytes,
    coalesce(a.instance_id, substring(a.endpoint from '://([^/:]+)'), a.endpoint) as host,
    coalesce(a.non_heap_used_bytes, 0) + coalesce(a.thread_stack_bytes, 0) + coalesce(a.direct_bytes, 0) as rest_bytes,
    off_heap.bytes as off_heap_bytes,
    a.heap_max_bytes + coalesce(a.non_heap_used_bytes, 0) + coalesce(a.thread_stack_bytes, 0)
    + coalesce(a.direct_bytes, 0) + coalesce(off_heap.bytes, 0) as total_bytes,
    a.heap_max_bytes + a.non_heap_used_bytes + coalesce(a.thread_stack_bytes, 0)
    + coalesce(a.direct_bytes, 0) + off_heap.most_bytes as most_bytes
  from metrics.jvm_app_hourly as a
  left join heap as h using (cluster, app, endpoint)
  left join instance as i on a.instance_id = i.instance_id
  cross join lateral (
    select
      case when a.store_instances > 0 then greatest(a.rocksdb_measured_bytes, a.rocksdb_expected_bytes) else 0 end
        as bytes,
      case
        when coalesce(a.store_instances, 0) = 0 then 0
        when coalesce(a.rocksdb_expected_max_bytes, a.rocksdb_expected_bytes) is not null
          then greatest(a.rocksdb_measured_bytes, a.rocksdb_expected_max_bytes, a.rocksdb_expected_bytes)
      end as most_bytes
  ) as off_heap
  where a.hour = cast(:hour as timestamptz)
),

-- All JVMs of a machine together. A container takes no more than its limit.
machine as (
  select
    instance_id,
    sum(least(total_bytes, limit_bytes)) filter (where total_bytes is not null) as total_bytes,
    sum(least(most_bytes, limit_bytes)) filter (where most_bytes is not null) as most_bytes,
    bool_or(most_bytes is null) as any_unknown
  from process
  where instance_id is not null
  group by instance_id
),

application as (
  select
    cluster,
    application_id,
    count(*) as instances,
    sum(store_instances) as stores,
    coalesce(max(application_stores), sum(store_instances)) as distinct_stores,
    sum(off_heap_bytes - least(off_heap_bytes, coalesce(
      rocksdb_shared_bytes, case when rocksdb_shared_cache then off_heap_bytes end, 0
    ))) / nullif(sum(store_instances), 0) as bytes_per_store
  from process
  where application_id is not null
  group by cluster, application_id
),

-- A machine dies, and the other processes of its applications take over its stores; none takes the same one twice.
growth as (
  select
    p.cluster,
    p.app,
    p.endpoint,
    p.host,
    gone.host as gone_host,
    a.bytes_per_store * greatest(
      least(ceil(a.stores::numeric / (a.instances - gone.instances)), a.distinct_stores) - coalesce(p.store_instances, 0), 0
    ) as bytes
  from process as p
  inner join application as a using (cluster, application_id)
  inner join (
    select
      cluster,
      application_id,
      host,
      count(*) as instances
    from process
    where application_id is not null
    group by cluster, application_id, host
  ) as gone
    on p.cluster = gone.cluster and p.application_id = gone.application_id and p.host <> gone.host
),

worst_failure as (
  select
    cluster,
    app,
    endpoint,
    max(bytes) as growth_bytes,
    max(machine_bytes) as machine_growth_bytes
  from (select growth.*, sum(bytes) over (partition by host, gone_host) as machine_bytes from growth) as g
  group by cluster, app, endpoint
),

summed as (
  select
    p.*,
    a.instances,
    a.stores as all_stores,
    a.bytes_per_store,
    coalesce(m.total_bytes - case when p.total_bytes is not null then least(p.total_bytes, p.limit_bytes) else 0 end, 0)
      as neighbours_bytes,
    coalesce(m.any_unknown, false) and p.most_bytes is not null as is_neighbour_unknown,
    p.total_bytes + f.growth_bytes as total_after_failure_bytes,
    greatest(100 * p.total_bytes / p.limit_bytes, 100 * m.total_bytes / p.machine_memory_bytes) as total_percent,
    coalesce(
      greatest(100 * p.most_bytes / p.limit_bytes, 100 * m.most_bytes / p.machine_memory_bytes) <= :heavy_percent
      and p.most_bytes is not null and not coalesce(m.any_unknown, false),
      false
    ) as is_sure_to_fit,
    coalesce(
      greatest(
        100 * (p.total_bytes + f.growth_bytes) / p.limit_bytes,
        100 * (m.total_bytes + f.machine_growth_bytes) / p.machine_memory_bytes
      ) > :failure_percent,
      false
    ) as outgrows_after_failure,
    -- The one of the two that it fills more.
    case
      when 100 * m.total_bytes / p.machine_memory_bytes > 100 * p.total_bytes / p.limit_bytes
        then p.machine_memory_bytes
      else p.limit_bytes
    end as memory_bytes,
    greatest(
      :heap_floor_bytes, ceil(:heap_headroom_ratio * coalesce(p.live_bytes, p.heap_max_bytes) / 67108864) * 67108864
    ) as wanted_heap_bytes,
    coalesce(100 * p.heap_survived_bytes / p.heap_max_bytes > :pressure_percent, false) as heap_is_full,
    -- Of a whole hour: in the first minutes of a process there is nothing but warming up.
    coalesce(100 * p.gc_seconds / greatest(p.covered_seconds, 3600) > :gc_percent, false) as is_collecting
  from process as p
  left join machine as m on p.instance_id = m.instance_id
  left join application as a on p.cluster = a.cluster and p.application_id = a.application_id
  left join worst_failure as f on p.cluster = f.cluster and p.app = f.app and p.endpoint = f.endpoint
),

judged as (
  select
    *,
    least(heap_max_bytes, wanted_heap_bytes) as heap_to_set_bytes,
    coalesce(total_bytes is not null and total_percent > :heavy_percent, false) as outgrows,
    coalesce(system_memory_used_percent > :heavy_percent, false) as system_is_full,
    total_percent > :heavy_percent and heap_max_bytes >= :split_ratio * live_bytes and off_heap_bytes > 0 as badly_split,
    -- Of a container's own limit the others on the machine take nothing.
    case when memory_bytes = machine_memory_bytes then neighbours_bytes else 0 end as beside_bytes,
    -- How many of them it can hold after a failure, and so how many instances it takes.
    floor(
      (limit_bytes * :failure_percent / 100 - total_bytes + bytes_per_store * coalesce(store_instances, 0))
      / nullif(bytes_per_store, 0)
    ) as stores_that_fit
  from summed
),

room as (
  select
    *,
    memory_bytes * :heavy_percent / 100 - beside_bytes - heap_to_set_bytes - rest_bytes as off_heap_room_bytes,
    memory_bytes * :heavy_percent / 100 - beside_bytes - coalesce(off_heap_bytes, 0) - rest_bytes as heap_room_bytes
  from judged
),

-- In GiB, for the sentences.
worded as (
  select
    *,
    round((memory_bytes / 1073741824)::numeric, 1) as memory_gib,
    round((limit_bytes / 1073741824)::numeric, 1) as limit_gib,
    round((total_bytes / 1073741824)::numeric, 1) as total_gib,
    round((most_bytes / 1073741824)::numeric, 1) as most_gib,
    round((total_after_failure_bytes / 1073741824)::numeric, 1) as total_after_failure_gib,
    round((heap_max_bytes / 1073741824)::numeric, 1) as heap_gib,
    coalesce(round((off_heap_bytes / 1073741824)::numeric, 1)::text, 'not known') as off_heap_gib,
    round((rest_bytes / 1073741824)::numeric, 1) as rest_gib,
    round((neighbours_bytes / 1073741824)::numeric, 1) as neighbours_gib,
    round((heap_to_set_bytes / 1048576)::numeric) as heap_to_set_mib,
    round((wanted_heap_bytes / 1048576)::numeric) as wanted_heap_mib,
    round((off_heap_room_bytes / 1048576)::numeric) as room_mib,
    case
      when hours_known < 24
        then format(' What is live in the heap is known of only %s h: confirm the figure after a day.', hours_known)
    end as caveat,
    round(
      (
        (heap_to_set_bytes + coalesce(off_heap_bytes, 0) + rest_bytes + beside_bytes) * 100 / :heavy_percent / 1073741824
      )::numeric,
      1
    ) as memory_needed_gib
  from room
)

select
  format('%s/%s on %s', cluster, app, coalesce(instance_id, substring(endpoint from '://([^/]+)'), endpoint))
    as resource,
  case
    when samples is null then 'skip'
    when outgrows or system_is_full or outgrows_after_failure or heap_is_full or is_collecting then 'alarm'
    when is_sure_to_fit then 'ok'
    else 'skip'
  end as status,
  case
    when outgrows or system_is_full then 'critical'
    when outgrows_after_failure or heap_is_full or is_collecting then 'warning'
  end as severity,
  case
    when samples is null then 'It did not answer over JMX.'
    when outgrows
      then format(
        'It may grow to %s GiB (heap %s, RocksDB %s, rest %s)%s: %s %% of %s GiB%s.',
        total_gib, heap_gib, off_heap_gib, rest_gib,
        case when neighbours_bytes > 0 then format(', other JVMs there to %s GiB', neighbours_gib) end,
        round(total_percent::numeric), memory_gib,
        case
          when badly_split
            then format(
              '; the heap is %s times what is live in it', round((heap_max_bytes / nullif(live_bytes, 0))::numeric)
            )
        end
      )
    when system_is_full
      then format(
        '%s %% of the system''s memory are in use; the application may grow to %s of %s GiB.',
        round(system_memory_used_percent::numeric), coalesce(total_gib::text, 'an unknown part'), memory_gib
      )
    when outgrows_after_failure
      then format(
        'It fits now with %s of %s GiB, but when a machine of the %s instances of %s dies it may grow to %s GiB.',
        total_gib, limit_gib, instances, application_id, total_after_failure_gib
      )
    when heap_is_full
      then format(
        'Its heap is full: a collection leaves %s %% of %s GiB in use.',
        round((100 * heap_survived_bytes / heap_max_bytes)::numeric), heap_gib
      )
    when is_collecting
      then format(
        'Its work stood still for %s %% of the hour: the garbage collector paused it for %s s.',
        round((100 * gc_seconds / greatest(covered_seconds, 3600))::numeric), round(gc_seconds::numeric)
      )
    when limit_bytes is null then 'The memory of its machine is not known.'
    when heap_max_bytes is null or off_heap_bytes is null
      then 'Its heap limit or the memory of its RocksDB stores is not known.'
    when non_heap_used_bytes is null then 'Its memory outside of heap and RocksDB is not known.'
    when most_bytes is null or 100 * most_bytes / limit_bytes > :heavy_percent
      then format(
        'It may grow to %s or to %s of %s GiB: whether its stores share a block cache can''t be told of empty ones.',
        total_gib, coalesce(most_gib::text, 'more'), limit_gib
      )
    when not is_sure_to_fit then 'The memory of another JVM on its machine is not known.'
    else format(
      'It fits: it may grow to %s GiB (heap %s, RocksDB %s, rest %s), %s %% of %s GiB.',
      total_gib, heap_gib, off_heap_gib, rest_gib, round(total_percent::numeric), memory_gib
    )
  end as reason,
  case
    when samples is null then null
    when outgrows and coalesce(off_heap_bytes, 0) <= off_heap_room_bytes
      then format('Set -Xmx%sm: then all has the room it needs.', heap_to_set_mib) || coalesce(caveat, '')
    when outgrows and room_mib >= 128
      then format(
        'Set -Xmx%sm and give all stores one block cache of %s MiB with a write buffer manager of %s MiB charged to it'
        ' (RocksDBConfigSetter); or take a machine with %s GiB for RocksDB as it is configured.',
        heap_to_set_mib, room_mib, round(room_mib / 2), memory_needed_gib
      ) || coalesce(caveat, '')
    when outgrows
      then format(
        'Even with -Xmx%sm nothing is left for RocksDB: take a machine with %s GiB, or spread its partitions over more.',
        heap_to_set_mib, memory_needed_gib
      )
    when system_is_full
      then format(
        '%s GiB are in use there: see by whom (ps aux --sort=-rss). Where it is this process, it leaks memory that JMX'
        ' doesn''t show: restart it for now, and bound malloc''s arenas (MALLOC_ARENA_MAX=2) before looking for JNI.',
        round((system_memory_used_percent * machine_memory_bytes / 100 / 1073741824)::numeric, 1)
      )
    when outgrows_after_failure and stores_that_fit >= 1
      then format(
        'Run %s instances instead of %s, each on a machine of its own, or give all stores one block cache with a write'
        ' buffer manager charged to it (RocksDBConfigSetter), which doesn''t grow.',
        greatest(ceil(all_stores / stores_that_fit) + 1, instances + 1), instances
      )
    when outgrows_after_failure
      then 'Give all stores one block cache with a write buffer manager charged to it (RocksDBConfigSetter), which doesn''t'
      ' grow with more of them; or take larger machines.'
    when (heap_is_full or is_collecting) and wanted_heap_bytes <= heap_room_bytes
      then format('See what holds the heap; if it has to, set -Xmx%sm, for which there is room.', wanted_heap_mib)
    when heap_is_full or is_collecting
      then format(
        'See what holds the heap; a larger one (-Xmx%sm) doesn''t fit this machine with what else is on it.',
        wanted_heap_mib
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
  live_bytes as heap_live_bytes,
  hours_known as heap_live_known_hours,
  100 * gc_seconds / nullif(covered_seconds, 0) as gc_percent,
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
