-- Part of the block caches and write buffers that the stores of a process cannot fill. A cache holds blocks of the stores'
-- files: no more than there are now and will be in ahead_days at the growth of the last data_days. Write buffers hold at most
-- twice their observed maximum between two flushes of that time, plus what is written until then. They count as filled where
-- growth is known for less than paced_days (null for a shared cache). Tasks move between processes, so both are per task
-- (mean of the application).
create or replace function metrics.unfilled_caches(
  of_hour timestamptz, data_days double precision, paced_days double precision, ahead_days double precision,
  unpacked_ratio double precision,             -- size of blocks in the cache relative to their files
  of_endpoints text[]                          -- only these: the growth takes long to compute
) returns table (cluster text, endpoint text, unfilled_bytes double precision)
language sql stable rows 1000 set enable_nestloop = off as $$
  with asked as materialized (
    select cluster, app, endpoint, rocksdb_shared_cache, rocksdb_shared_bytes
    from metrics.jvm_app_hourly
    where hour = of_hour and endpoint = any(of_endpoints)
  ),

  quarter as (
    select
      h.cluster,
      h.app,
      h.store,
      floor(extract(epoch from of_hour - h.hour) / 21600) as ago,
      percentile_cont(0.5) within group (order by h.bytes) as bytes,
      max(h.buffered_bytes) as buffered_bytes
    from (
      select
        m.hour,
        m.cluster,
        m.app,
        m.store,
        sum(m.sst_bytes) / nullif(sum(m.tasks), 0) as bytes,
        case when count(m.memtable_bytes) = count(*) then sum(m.memtable_bytes) / nullif(sum(m.tasks), 0) end
          as buffered_bytes
      from metrics.state_store_memory_hourly as m
      where m.hour > of_hour - make_interval(secs => data_days * 86400) and m.hour <= of_hour
      and (m.cluster, m.app) in (select a.cluster, a.app from asked as a)
      group by m.hour, m.cluster, m.app, m.store
      having count(m.sst_bytes) = count(*)
    ) as h
    group by h.cluster, h.app, h.store, floor(extract(epoch from of_hour - h.hour) / 21600)
  ),

  pace as (
    select
      q.cluster,
      q.app,
      q.store,
      24 * public.theil_sen(array_agg(of_hour - q.ago * interval '6 hours'), array_agg(q.bytes)) as bytes_per_day,
      case when count(q.buffered_bytes) = count(*) then max(q.buffered_bytes) end as buffered_bytes
    from quarter as q
    group by q.cluster, q.app, q.store
    having max(q.ago) - min(q.ago) >= 4 * paced_days
  ),

  held as (
    select
      m.cluster,
      m.app,
      m.endpoint,
      m.expected_bytes,
      m.tasks * m.segments * m.block_cache_capacity_bytes as cache_bytes,
      case when p.bytes_per_day is not null then unpacked_ratio * (m.sst_bytes + g.bytes) end as data_bytes,
      2 * m.tasks * p.buffered_bytes + g.bytes as buffered_bytes
    from metrics.state_store_memory_hourly as m
    left join pace as p on m.cluster = p.cluster and m.app = p.app and m.store = p.store
    cross join lateral (select m.tasks * greatest(p.bytes_per_day, 0) * ahead_days as bytes) as g
    where m.hour = of_hour
  )

  select
    a.cluster,
    a.endpoint,
    case
      when not coalesce(a.rocksdb_shared_cache, false)
        then sum(greatest(h.cache_bytes - h.data_bytes, 0))
          + sum(greatest(h.expected_bytes - h.cache_bytes - h.buffered_bytes, 0))
      -- Write buffers that are charged to the shared cache (expected_bytes is 0) fill it without any data.
      when min(h.expected_bytes) > 0 and count(h.data_bytes) = count(*)
        then greatest(a.rocksdb_shared_bytes - sum(h.data_bytes), 0)
    end
  from asked as a
  inner join held as h on a.cluster = h.cluster and a.app = h.app and a.endpoint = h.endpoint
  group by a.cluster, a.app, a.endpoint, a.rocksdb_shared_cache, a.rocksdb_shared_bytes
$$;
comment on function metrics.unfilled_caches is
'Part of its stores'' block caches and write buffers that each process cannot fill, by existing data and its growth.';
