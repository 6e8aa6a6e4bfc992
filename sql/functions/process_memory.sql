-- Lower bound (total_bytes) and upper bound (most_bytes) of the memory that each process may grow to, and the same for its
-- host: the maximum heap, RocksDB (off-heap), and the current size of classes, code, stacks, and direct buffers.
create or replace function metrics.process_memory(
  of_hour timestamptz, measured_days double precision default 2, still_ratio double precision default 1.05,
  data_days double precision default 7, paced_days double precision default 1, ahead_days double precision default 14,
  unpacked_ratio double precision default 1
) returns table (
  cluster text, endpoint text,
  host text,                                   -- its instance, otherwise the host of its endpoint
  off_heap_bytes double precision,             -- RocksDB: as measured once it is settled; otherwise as configured, limited by the data that can fill the caches, with index blocks, or as measured if that is more
  is_settled boolean,                          -- whether it has measured_days of data and no longer grows
  unreported_stores double precision,          -- store instances that JMX does not expose; null: number unknown
  taken_bytes double precision,                -- maximum heap, other memory, reported RocksDB memory; null: maximum heap unknown
  host_taken_bytes double precision,           -- of all known JVMs on its host
  rest_bytes double precision,                 -- unknown parts count as 0
  total_bytes double precision,                -- null: maximum heap unknown
  most_bytes double precision,                 -- with caches counted per store where sharing is unknown; null: unknown
  limit_bytes double precision,                -- of its container, or of its host if that is smaller
  host_memory_bytes double precision,
  host_total_bytes double precision,           -- all JVMs on its host; a container never takes more than its limit
  host_most_bytes double precision,            -- null: unknown for one of them
  other_jvms_bytes double precision,           -- the other JVMs on its host
  system_memory_used_percent double precision
)
-- The planner has no statistics of the newest hour: it expects one row and would choose nested loops.
language sql stable rows 1000 set enable_nestloop = off as $$
  with settled as materialized (
    select *
    from metrics.settled_stores(of_hour, measured_days, still_ratio)
  ),

  -- For a settled process the measured memory counts, whatever the capacity of its caches.
  unfilled as (
    select *
    from metrics.unfilled_caches(
      of_hour, data_days, paced_days, ahead_days, unpacked_ratio,
      array(
        select a.endpoint
        from metrics.jvm_app_hourly as a
        where a.hour = of_hour and (a.cluster, a.endpoint) not in (select s.cluster, s.endpoint from settled as s)
      )
    )
  ),

  -- Index and filter blocks are outside of the block cache, unless cache_index_and_filter_blocks puts them there.
  index_blocks as (
    select cluster, endpoint, sum(table_readers_bytes) as bytes
    from metrics.state_store_memory_hourly
    where hour = of_hour
    group by cluster, endpoint
  ),

  -- If JMX does not expose the stores of an application, its changelogs give their number.
  changelog as (
    select cluster, application_id, sum(partitions) as partitions
    from inventory.topic_hourly
    where hour = of_hour and kind = 'changelog'
    group by cluster, application_id
  ),

  unseen as (
    select
      a.cluster,
      a.application_id,
      case when a.cluster in (select t.cluster from inventory.topic_hourly as t where t.hour = of_hour)
        then ceil(coalesce(c.partitions, 0)::double precision / a.processes) end as stores
    from (
      select cluster, application_id, count(*) as processes
      from metrics.jvm_app_hourly
      where hour = of_hour and application_id is not null
      group by cluster, application_id
      having coalesce(greatest(max(application_stores), sum(store_instances)), 0) = 0
    ) as a
    left join changelog as c on a.cluster = c.cluster and a.application_id = c.application_id
  )

  select
    p.cluster,
    p.endpoint,
    coalesce(p.instance_id, substring(p.endpoint from '://([^/:]+)'), p.endpoint),
    p.off_heap_bytes,
    p.is_settled,
    p.unreported_stores,
    p.taken_bytes,
    case when p.instance_id is not null then sum(p.held_now_bytes) over host_window end,
    p.rest_bytes,
    p.total_bytes,
    p.most_bytes,
    p.limit_bytes,
    p.host_memory_bytes,
    case when p.instance_id is not null then sum(p.held_bytes) over host_window end,
    case when p.instance_id is not null and not bool_or(p.most_bytes is null) over host_window
      then sum(least(p.most_bytes, p.limit_bytes)) over host_window end,
    case when p.instance_id is not null then sum(p.held_bytes) over host_window - coalesce(p.held_bytes, 0) end,
    p.system_memory_used_percent
  from (
    select
      a.cluster,
      a.endpoint,
      a.instance_id,
      off_heap.bytes as off_heap_bytes,
      s.endpoint is not null as is_settled,
      measured.unreported_stores,
      taken.bytes as taken_bytes,
      rest.bytes as rest_bytes,
      grown.total_bytes,
      grown.most_bytes,
      room.limit_bytes,
      m.memory_bytes as host_memory_bytes,
      m.system_memory_used_percent,
      case when grown.total_bytes is not null then least(grown.total_bytes, room.limit_bytes) end as held_bytes,
      case when a.heap_max_bytes is not null then least(taken.bytes, room.limit_bytes) end as held_now_bytes
    from metrics.jvm_app_hourly as a
    left join metrics.host_memory(of_hour) as m using (instance_id)
    left join settled as s on a.cluster = s.cluster and a.endpoint = s.endpoint
    left join unfilled as c on a.cluster = c.cluster and a.endpoint = c.endpoint
    left join index_blocks as i on a.cluster = i.cluster and a.endpoint = i.endpoint
    left join unseen as u on a.cluster = u.cluster and a.application_id = u.application_id
    -- The number of stores may be unknown; their memory shows that there are some.
    cross join lateral (
      select
        coalesce(
          a.store_instances > 0,
          coalesce(a.rocksdb_measured_bytes, a.rocksdb_expected_bytes, a.rocksdb_expected_max_bytes) is not null
        ) as are_there
    ) as stores
    cross join lateral (
      select
        case when u.cluster is null then 0 else u.stores end as unreported_stores,
        case when stores.are_there then coalesce(s.measured_bytes, a.rocksdb_measured_bytes) end as bytes
    ) as measured
    cross join lateral (
      select
        a.rocksdb_expected_bytes - coalesce(c.unfilled_bytes, 0) + coalesce(i.bytes, 0) as bytes,
        greatest(a.rocksdb_expected_max_bytes, a.rocksdb_expected_bytes) - coalesce(c.unfilled_bytes, 0)
        + coalesce(i.bytes, 0) as most_bytes
    ) as configured
    cross join lateral (
      select
        case
          when s.endpoint is not null then s.measured_bytes
          when stores.are_there then greatest(a.rocksdb_measured_bytes, configured.bytes)
          when measured.unreported_stores = 0 then 0
        end as bytes,
        case
          when s.endpoint is not null then s.measured_bytes
          -- By Kafka Streams' defaults: 3 write buffers of 16 MiB and a cache of 50 MiB, in each of up to 3 segments.
          when not stores.are_there then measured.unreported_stores * 3 * (3 * 16 + 50) * 1048576
          when configured.most_bytes is not null then greatest(a.rocksdb_measured_bytes, configured.most_bytes)
        end as most_bytes
    ) as off_heap
    cross join lateral (
      select
        coalesce(a.non_heap_used_bytes, 0) + coalesce(a.thread_stack_bytes, 0) + coalesce(a.direct_bytes, 0) as bytes
    ) as rest
    cross join lateral (
      select
        a.heap_max_bytes + rest.bytes + coalesce(off_heap.bytes, 0) as total_bytes,
        case when a.non_heap_used_bytes is not null then a.heap_max_bytes + rest.bytes + off_heap.most_bytes end
          as most_bytes
    ) as grown
    cross join lateral (select a.heap_max_bytes + rest.bytes + coalesce(measured.bytes, 0) as bytes) as taken
    cross join lateral (select least(a.memory_limit_bytes, m.memory_bytes) as limit_bytes) as room
    where a.hour = of_hour
  ) as p
  window host_window as (partition by p.instance_id)
$$;
comment on function metrics.process_memory is
'Memory that each process may grow to in an hour (heap, off-heap, rest), its limit, and the same for all JVMs on its host.';
