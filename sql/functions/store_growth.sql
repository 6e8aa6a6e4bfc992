-- Growth of each state store of an application, by the daily medians of its size over all processes (tasks move between
-- processes, so only the sum counts). Every third hour is read: eight per day are enough. A day counts if in one of these
-- hours each responding process of the application reported this store's metrics, with as many tasks as on the newest day:
-- a reset, a new assignment, or a restore is not growth.
create or replace function public.store_growth(as_of timestamptz, days integer) returns table (
  cluster text, application_id text, store text, sst_bytes double precision, keys double precision,
  known_days bigint, bytes_per_day double precision, keys_per_day double precision, most_fallen_ratio double precision,
  rising_days bigint
) language sql stable rows 1000 set enable_nestloop = off as $$
  with asked as (
    select as_of - make_interval(hours => 3 * n) as hour from generate_series(0, 8 * days - 1) as n
  ),

  process as materialized (
    select
      hour,
      cluster,
      application_id,
      app,
      endpoint,
      samples
    from metrics.jvm_app_hourly
    where hour = any(array(select a.hour from asked as a)) and application_id is not null
  ),

  -- Hours in which all processes responded.
  complete as (
    select hour, cluster, application_id
    from process
    group by hour, cluster, application_id
    having count(samples) = count(*)
  ),

  sized as (
    select
      p.hour,
      p.cluster,
      p.application_id,
      m.store,
      sum(m.tasks) as tasks,
      case when count(m.sst_bytes) = count(*) then sum(m.sst_bytes) end as sst_bytes,
      case when count(m.keys) = count(*) then sum(m.keys) end as keys
    from process as p
    inner join complete using (hour, cluster, application_id)
    inner join metrics.state_store_memory_hourly as m
      on p.hour = m.hour and p.cluster = m.cluster and p.app = m.app and p.endpoint = m.endpoint
    where m.hour = any(array(select a.hour from asked as a))
    group by p.hour, p.cluster, p.application_id, m.store
  ),

  -- Days end with the hour, not at midnight, so that the newest is complete.
  day as (
    select
      cluster,
      application_id,
      store,
      floor(extract(epoch from as_of - hour) / 86400) as ago,
      max(tasks) as tasks,
      percentile_cont(0.5) within group (order by sst_bytes) as sst_bytes,
      percentile_cont(0.5) within group (order by keys) as keys
    from sized
    where sst_bytes is not null
    group by cluster, application_id, store, floor(extract(epoch from as_of - hour) / 86400)
  ),

  like_now as (
    select *, lag(sst_bytes) over (partition by cluster, application_id, store order by ago desc) as day_before_bytes
    from (
      select *, sum(tasks) filter (where ago = 0) over (partition by cluster, application_id, store) as tasks_now
      from day
    ) as d
    where tasks = tasks_now
  )

  select
    cluster,
    application_id,
    store,
    (array_agg(sst_bytes order by ago))[1],
    (array_agg(keys order by ago))[1],
    count(*),
    public.theil_sen(array_agg(as_of - ago * interval '1 day'), array_agg(sst_bytes)) * 24,
    public.theil_sen(array_agg(as_of - ago * interval '1 day'), array_agg(keys)) * 24,
    max(1 - sst_bytes / nullif(day_before_bytes, 0)),
    count(*) filter (where sst_bytes > day_before_bytes)
  from like_now
  group by cluster, application_id, store
$$;
comment on function public.store_growth is
'How each state store of a Kafka Streams application grows: Theil-Sen slopes of its daily sizes over all processes.';
