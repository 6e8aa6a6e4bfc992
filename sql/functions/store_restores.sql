-- What each process would have to restore from a store's changelog, by its tasks, evenly. Records are the maximum number of
-- keys in the store recently, or a day ago where it has been restored since, and at most the offsets of its log. Stores
-- without a changelog have no row.
create or replace function public.store_restores(as_of timestamptz, settled_hours integer) returns table (
  cluster text, application_id text, endpoint text, store text,
  tasks double precision,              -- of the process; null: none now
  tasks_before double precision,       -- an hour ago
  sst_bytes double precision,          -- of the process
  expected_bytes double precision,     -- maximum memory in the process by configuration, unshared caches only
  partitions integer,                  -- of its changelog
  all_tasks double precision,          -- of all processes; null: none now
  most_tasks double precision,         -- maximum of all_tasks within settled_hours; more than the partitions: standbys
  offsets_per_task double precision,   -- null: a log-end offset is not known
  records_per_task double precision,   -- null: its number of keys is not known
  bytes_per_task double precision      -- of its log; null: not known
)
-- The planner has no statistics of the newest hour: it expects one row and would choose nested loops.
language sql stable rows 1000 set enable_nestloop = off as $$
  with held as materialized (
    select
      m.hour,
      m.cluster,
      p.application_id,
      m.endpoint,
      m.store,
      m.tasks,
      m.keys,
      m.sst_bytes,
      m.expected_bytes
    from metrics.state_store_memory_hourly as m
    inner join metrics.jvm_app_hourly as p on m.cluster = p.cluster and m.endpoint = p.endpoint
    where p.hour = as_of and p.application_id is not null and m.hour = any(array(
      select as_of - make_interval(hours => n) from generate_series(0, settled_hours - 1) as n
      union
      select as_of - make_interval(hours => n) from (values (24)) as before (n)
    ))
  ),

  sized as (
    select
      cluster,
      application_id,
      store,
      max(tasks) filter (where hour = as_of) as all_tasks,
      max(tasks) filter (where hour > as_of - interval '24 hours') as most_tasks,
      max(keys / tasks) as keys_per_task
    from (
      select
        cluster,
        application_id,
        store,
        hour,
        sum(tasks)::double precision as tasks,
        case when count(keys) = count(*) then sum(keys) end as keys
      from held
      group by cluster, application_id, store, hour
    ) as of_hour
    group by cluster, application_id, store
  ),

  changelog as materialized (
    select
      s.*,
      t.topic,
      t.partitions
    from sized as s
    inner join inventory.topic_hourly as t
      on s.cluster = t.cluster and s.application_id || '-' || s.store || '-changelog' = t.topic
    where t.hour = as_of
  ),

  logged as (
    select
      l.cluster,
      l.topic,
      sum(l.log_end_offset - l.log_start_offset)::double precision as offsets
    from metrics.partition_hourly as l
    where l.hour = as_of and l.topic in (select c.topic from changelog as c)
    group by l.cluster, l.topic
    having count(l.log_end_offset - l.log_start_offset) = count(*)
  ),

  stored as (
    select
      r.cluster,
      r.topic,
      sum(r.size_bytes)::double precision / sum(r.replicas) as bytes_per_task
    from metrics.replica_sample as r
    where r.hour = as_of and not r.is_future and r.topic in (select c.topic from changelog as c)
    group by r.cluster, r.topic
  )

  select
    h.cluster,
    h.application_id,
    h.endpoint,
    h.store,
    h.tasks,
    h.tasks_before,
    h.sst_bytes,
    h.expected_bytes,
    c.partitions,
    c.all_tasks,
    c.most_tasks,
    l.offsets / c.partitions,
    case when c.keys_per_task is not null then least(c.keys_per_task, l.offsets / c.partitions) end,
    b.bytes_per_task
  from (
    select
      cluster,
      application_id,
      endpoint,
      store,
      sum(tasks) filter (where hour = as_of)::double precision as tasks,
      sum(tasks) filter (where hour = as_of - interval '1 hour')::double precision as tasks_before,
      sum(sst_bytes) filter (where hour = as_of) as sst_bytes,
      sum(expected_bytes) filter (where hour = as_of) as expected_bytes
    from held
    group by cluster, application_id, endpoint, store
  ) as h
  inner join changelog as c using (cluster, application_id, store)
  left join logged as l on c.cluster = l.cluster and c.topic = l.topic
  left join stored as b on c.cluster = b.cluster and c.topic = b.topic
$$;
comment on function public.store_restores is
'What each Kafka Streams process would have to restore from its stores'' changelogs, and whether the stores have standbys.';
