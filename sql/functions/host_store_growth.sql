-- State stores that have grown on a host in the last 24 hours, in bytes, and the five that have grown most. Only stores with
-- the same tasks as a day ago: a store that arrived with a task has not grown.
create or replace function public.host_store_growth(as_of timestamptz, of_host text) returns table (
  grown_bytes double precision,
  stores jsonb                                 -- [{store, application_id, grown_bytes, store_bytes}], most growth first
) language sql stable rows 1 as $$
  with store as (
    select
      p.application_id,
      m.store,
      sum(m.sst_bytes) as sst_bytes,
      sum(m.sst_bytes - b.sst_bytes) as grown_bytes
    from public.hosted_processes(as_of) as p
    inner join metrics.state_store_memory_hourly as m
      on m.hour = as_of and p.cluster = m.cluster and p.app = m.app and p.endpoint = m.endpoint
    inner join metrics.state_store_memory_hourly as b
      on b.hour = as_of - interval '24 hours' and m.cluster = b.cluster and m.app = b.app
      and m.endpoint = b.endpoint and m.store = b.store and m.tasks = b.tasks
    where p.host = of_host
    group by p.application_id, m.store
    having sum(m.sst_bytes - b.sst_bytes) > 0
  )

  select
    sum(grown_bytes),
    jsonb_agg(
      jsonb_build_object(
        'store', store, 'application_id', application_id, 'grown_bytes', grown_bytes, 'store_bytes', sst_bytes
      ) order by place
    ) filter (where place <= 5)
  from (
    select
      *,
      row_number() over (order by grown_bytes desc, application_id asc, store asc) as place
    from store
  ) as ranked
$$;
comment on function public.host_store_growth is
'Bytes by which state stores on a host have grown in the last 24 hours, and the five that have grown most.';
