-- What each process may grow to, at least (total_bytes) and at most (most_bytes), and what its machine holds.
-- That is its heap limit, RocksDB (off-heap), and the rest: classes, code, stacks and direct buffers as they are.
create or replace function metrics.process_memory(of_hour timestamptz) returns table (
  cluster text, endpoint text,
  host text,                                   -- what it dies with: its machine, else the host of its endpoint
  off_heap_bytes double precision,             -- RocksDB as configured, or measured where that is more
  rest_bytes double precision,                 -- what isn't known counts 0
  total_bytes double precision,                -- null: its heap limit isn't known
  most_bytes double precision,                 -- with caches that can't be told taken for own ones; null: not known
  limit_bytes double precision,                -- of its container, or its machine where that has less
  machine_memory_bytes double precision,
  machine_total_bytes double precision,        -- all JVMs of its machine; a container takes no more than its limit
  machine_most_bytes double precision,         -- null: that of one of them isn't known
  neighbours_bytes double precision,           -- the others on its machine
  system_memory_used_percent double precision
)
-- The planner's statistics don't know the newest hour: for the one row that it expects it would take nested loops.
language sql stable rows 1000 set enable_nestloop = off as $$
  select
    p.cluster,
    p.endpoint,
    coalesce(p.instance_id, substring(p.endpoint from '://([^/:]+)'), p.endpoint),
    p.off_heap_bytes,
    p.rest_bytes,
    p.total_bytes,
    p.most_bytes,
    p.limit_bytes,
    p.machine_memory_bytes,
    case when p.instance_id is not null then sum(p.held_bytes) over machine end,
    case when p.instance_id is not null and not bool_or(p.most_bytes is null) over machine
      then sum(least(p.most_bytes, p.limit_bytes)) over machine end,
    case when p.instance_id is not null then sum(p.held_bytes) over machine - coalesce(p.held_bytes, 0) end,
    p.system_memory_used_percent
  from (
    select
      a.cluster,
      a.endpoint,
      a.instance_id,
      off_heap.bytes as off_heap_bytes,
      rest.bytes as rest_bytes,
      grown.total_bytes,
      grown.most_bytes,
      room.limit_bytes,
      m.memory_bytes as machine_memory_bytes,
      m.system_memory_used_percent,
      case when grown.total_bytes is not null then least(grown.total_bytes, room.limit_bytes) end as held_bytes
    from metrics.jvm_app_hourly as a
    left join metrics.machine_memory(of_hour) as m using (instance_id)
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
    cross join lateral (select least(a.memory_limit_bytes, m.memory_bytes) as limit_bytes) as room
    where a.hour = of_hour
  ) as p
  window machine as (partition by p.instance_id)
$$;
comment on function metrics.process_memory is
'What each process may grow to in an hour (heap, off-heap, rest), its limit, and the same of all JVMs on its machine.';
