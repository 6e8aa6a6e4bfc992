-- What the page cache of each cluster's brokers holds: so many bytes, which are the last so many seconds of writing.
create or replace function public.page_cache(as_of timestamptz, page_cache_share double precision) returns table (
  cluster text, bytes double precision, seconds double precision
) language sql stable as $$
  select t.cluster, m.bytes, m.bytes / nullif(t.bytes_per_second, 0)
  from (
    select cluster, sum(bytes_in * replication_factor / nullif(covered_seconds, 0)) as bytes_per_second
    from public.topic_bytes
    where hour = as_of
    group by cluster
  ) as t
  left join (
    select b.cluster, page_cache_share * sum(i.memory_bytes) as bytes
    from (select distinct cluster, instance_id from metrics.broker_hourly where hour = as_of) as b
    inner join inventory.instance_hourly as i on b.instance_id = i.instance_id and i.hour = as_of
    group by b.cluster
  ) as m using (cluster)
$$;
comment on function public.page_cache is
'What the page cache of each cluster''s brokers holds if it has page_cache_share of their memory: bytes, and how many seconds of what is written, all replicas. Null: memory or what is written isn''t known, or nothing is written.';
