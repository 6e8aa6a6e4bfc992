-- State stores on a host, and what a failure of another host would add to them. Bytes that would be restored here if the
-- worst other host were lost, spread evenly over the processes that remain. Stores with more tasks than their changelog has
-- partitions have standbys, which may already be on the hosts that take over: they do not count.
create or replace function public.host_failover(
  as_of timestamptz, of_host text, of_applications jsonb  -- [{"cluster": …, "application_id": …}] with processes on the host
) returns table (
  task_bytes double precision,                 -- of a store's task, a mean; null: no store was reported
  failover_host text, failover_bytes double precision
) language sql stable rows 1 as $$
  with process as materialized (
    select p.cluster, p.app, p.endpoint, p.application_id, p.host
    from public.hosted_processes(as_of) as p
    inner join jsonb_to_recordset(of_applications) as a (cluster text, application_id text)
      on p.cluster = a.cluster and p.application_id = a.application_id
  ),

  store_placement as materialized (
    select
      p.cluster,
      p.application_id,
      p.host,
      m.store,
      sum(m.sst_bytes) as bytes,
      sum(m.tasks) as tasks,
      sum(sum(m.tasks)) over (partition by p.cluster, p.application_id, m.store) as all_tasks
    from process as p
    inner join metrics.state_store_memory_hourly as m
      on m.hour = as_of and p.cluster = m.cluster and p.app = m.app and p.endpoint = m.endpoint
    group by p.cluster, p.application_id, p.host, m.store
  ),

  failover as (
    select
      h.host,
      sum(h.bytes * n.here / n.remaining) as bytes
    from store_placement as h
    inner join inventory.topic_hourly as t
      on t.hour = as_of and h.cluster = t.cluster
      and h.application_id || '-' || h.store || '-changelog' = t.topic and h.all_tasks <= t.partitions
    cross join lateral (
      select
        count(*) filter (where p.host = of_host) as here,
        count(*) filter (where p.host <> h.host) as remaining
      from process as p
      where p.cluster = h.cluster and p.application_id = h.application_id
    ) as n
    where h.host <> of_host
    group by h.host
    order by sum(h.bytes * n.here / n.remaining) desc nulls last, h.host asc
    limit 1
  )

  select
    (
      select sum(h.bytes) / nullif(sum(h.tasks), 0)
      from store_placement as h
      where h.host = of_host and h.bytes is not null
    ),
    f.host,
    f.bytes
  from (select 1) as one
  left join failover as f on true
$$;
comment on function public.host_failover is
'State stores of applications on a host, and the bytes that would be restored there if the worst other host were lost.';
