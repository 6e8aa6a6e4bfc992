-- Memory growth of a process and its host after the worst failure of one other host: the remaining processes of its
-- applications take over the stores evenly. Write buffers and unshared caches move with them; a shared cache does not grow.
create or replace function metrics.growth_on_failure(
  of_hour timestamptz, measured_days double precision default 2, still_ratio double precision default 1.05,
  data_days double precision default 7, paced_days double precision default 1, ahead_days double precision default 14,
  unpacked_ratio double precision default 1
) returns table (
  cluster text, endpoint text,                 -- of each process of a Kafka Streams application
  instances bigint,                            -- of its application
  stores bigint,                               -- store instances of its application
  bytes_per_store double precision,            -- growth of a process for each further store
  growth_bytes double precision,               -- null: the application runs on one host only, or is unknown
  host_growth_bytes double precision,          -- of all JVMs on its host, after the worst failure for it
  is_unknown boolean                           -- the stores of another host are not completely known
)
-- The planner has no statistics of the newest hour: it expects one row and would choose nested loops.
language sql stable rows 1000 set enable_nestloop = off as $$
  with process as materialized (
    select
      a.cluster,
      a.endpoint,
      a.application_id,
      a.store_instances,
      a.application_stores,
      p.host,
      p.off_heap_bytes,
      p.off_heap_bytes - least(
        p.off_heap_bytes,
        coalesce(a.rocksdb_shared_bytes, case when a.rocksdb_shared_cache then p.off_heap_bytes end, 0)
      ) as growing_bytes
    from metrics.jvm_app_hourly as a
    inner join metrics.process_memory(
      of_hour, measured_days, still_ratio, data_days, paced_days, ahead_days, unpacked_ratio
    ) as p using (cluster, endpoint)
    where a.hour = of_hour and a.application_id is not null
  ),

  application as (
    select
      cluster,
      application_id,
      count(*) as instances,
      sum(store_instances) as stores,
      max(application_stores) as distinct_stores,
      bool_or(store_instances is null and off_heap_bytes > 0) as is_uncounted,
      sum(growing_bytes) / nullif(sum(store_instances), 0) as bytes_per_store
    from process
    group by cluster, application_id
  ),

  dead as (
    select cluster, application_id, host, count(*) as instances
    from process
    group by cluster, application_id, host
  ),

  failure as (
    select
      p.*,
      a.instances,
      a.stores,
      a.bytes_per_store,
      dead.host as dead_host,
      a.is_uncounted,
      -- The remaining processes share the stores of all.
      case when dead.host is not null then a.bytes_per_store * greatest(
        least(ceil(a.stores::double precision / (a.instances - dead.instances)), a.distinct_stores)
        - coalesce(p.store_instances, 0),
        0
      ) end as bytes
    from process as p
    inner join application as a using (cluster, application_id)
    left join dead
      on p.cluster = dead.cluster and p.application_id = dead.application_id and p.host <> dead.host
  )

  select
    cluster,
    endpoint,
    instances,
    stores,
    bytes_per_store,
    max(bytes),
    max(host_bytes),
    bool_or(dead_host is not null) and bool_or(is_uncounted)
  from (
    select *, sum(bytes) over (partition by host, dead_host) as host_bytes from failure
  ) as f
  group by cluster, endpoint, instances, stores, bytes_per_store
$$;
comment on function metrics.growth_on_failure is
'Memory growth of each process of a Kafka Streams application, and of its host, when the worst other host fails.';
