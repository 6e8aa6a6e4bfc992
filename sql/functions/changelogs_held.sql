-- Log size of each compacted changelog and size of its store, per partition (mean), at this hour of each day. Each task,
-- including standbys, holds one partition.
create or replace function public.changelogs_held(as_of timestamptz, days integer) returns table (
  cluster text, topic text, hour timestamptz,
  log_bytes double precision,         -- all replicas
  held_bytes double precision,        -- of one replica of a partition
  is_key_value boolean,               -- null: no process reported its store
  keys double precision, sst_bytes double precision
)
-- The planner has no statistics of the newest hour: it expects one row and would choose nested loops.
language sql stable rows 10000 set enable_nestloop = off as $$
  with day as materialized (
    select as_of - make_interval(days => n.ago) as hour
    from generate_series(0, days) as n (ago)
  ),

  store as materialized (
    select
      m.hour,
      m.cluster,
      p.application_id || '-' || m.store || '-changelog' as topic,
      bool_and(m.kind = 'key_value') as is_key_value,
      case when count(m.keys) = count(*) then sum(m.keys) / nullif(sum(m.tasks), 0) end as keys,
      case when count(m.sst_bytes) = count(*) then sum(m.sst_bytes) / nullif(sum(m.tasks), 0) end as sst_bytes
    from metrics.state_store_memory_hourly as m
    inner join metrics.jvm_app_hourly as p using (hour, cluster, app, endpoint)
    where m.hour = any(array(select d.hour from day as d)) and p.hour = any(array(select d.hour from day as d))
    group by m.hour, m.cluster, p.application_id, m.store
  )

  select
    c.cluster,
    c.topic,
    d.hour,
    r.log_bytes,
    r.log_bytes / (c.replication_factor * c.partitions),
    s.is_key_value,
    nullif(s.keys, 0),
    nullif(s.sst_bytes, 0)
  from inventory.topic_hourly as c
  cross join day as d
  left join metrics.topic_hourly as r
    on d.hour = r.hour and c.cluster = r.cluster and c.topic = r.topic
    and r.hour = any(array(select asked.hour from day as asked))
  left join store as s on d.hour = s.hour and c.cluster = s.cluster and c.topic = s.topic
  where c.hour = as_of and c.kind = 'changelog' and c.cleanup_policy = 'compact'
$$;
comment on function public.changelogs_held is
'Log size of each compacted changelog and size of its store, per partition (mean), at this hour of each day.';
