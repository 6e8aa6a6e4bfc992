-- The five topics whose replicas in a broker's log directory have grown most in the last 24 hours. Growth is known only for
-- directories that were reported 24 hours ago. There, a topic without an earlier size is new.
create or replace function public.log_dir_growth(
  as_of timestamptz, of_cluster text, of_broker_id integer, of_log_dir text
) returns table (
  place bigint, topic text, size_bytes double precision, grown_bytes double precision
) language sql stable rows 5 as $$
  select *
  from (
    select
      row_number() over (order by grown_bytes desc, topic asc) as place,
      topic,
      size_bytes,
      grown_bytes
    from (
      select
        topic,
        sum(size_bytes) filter (where hour = as_of) as size_bytes,
        sum(case when hour = as_of then size_bytes else -size_bytes end) as grown_bytes,
        bool_or(bool_or(hour < as_of)) over () as is_known
      from metrics.replica_sample
      where hour in (as_of, as_of - interval '24 hours')
      and cluster = of_cluster and broker_id = of_broker_id and log_dir = of_log_dir
      group by topic
    ) as replica
    where is_known and grown_bytes > 0
  ) as ranked
  where place <= 5
$$;
comment on function public.log_dir_growth is
'The five topics whose replicas in a broker''s log directory have grown most in the last 24 hours.';
