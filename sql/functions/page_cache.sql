-- Content of the page cache of each cluster's brokers at the end of each hour: bytes, and the age of the oldest of them in
-- seconds. Writes of an hour are the bytes that brokers received, including replication; for a broker without data, the mean
-- of the others, otherwise the bytes that topics received in the last hour.
create or replace function public.page_cache(
  first_hour timestamptz, last_hour timestamptz, page_cache_share double precision
) returns table (
  hour timestamptz, cluster text, bytes double precision, seconds double precision
) language sql stable rows 100 set enable_nestloop = off as $$
  with topic as (
    select
      cluster,
      sum(bytes_in * replication_factor / nullif(covered_seconds, 0)) as bytes_per_second,
      coalesce(
        sum(bytes_in * replication_factor) / nullif(sum(bytes_in), 0), avg(replication_factor)
      ) as replicas
    from public.topic_bytes
    where hour = last_hour
    group by cluster
  ),

  memory as (
    select b.cluster, page_cache_share * sum(i.memory_bytes) as bytes
    from (select distinct cluster, instance_id from metrics.broker_hourly where hour = last_hour) as b
    inner join inventory.instance_hourly as i on b.instance_id = i.instance_id and i.hour = last_hour
    group by b.cluster
  ),

  came as (
    select
      cluster,
      hour,
      case when count(bytes_in_per_second) = count(*) then sum(bytes_in_per_second) end as bytes_per_second
    from metrics.broker_hourly
    where hour > first_hour - interval '7 days' and hour <= last_hour
    and (active_controllers is null or partitions is not null)
    group by cluster, hour
  ),

  written as (
    select
      t.cluster,
      h.hour,
      3600 * coalesce(
        c.bytes_per_second * t.replicas, avg(c.bytes_per_second) over of_cluster * t.replicas, t.bytes_per_second
      ) as bytes
    from topic as t
    cross join generate_series(first_hour - interval '7 days' + interval '1 hour', last_hour, interval '1 hour') as h (hour)
    left join came as c using (cluster, hour)
    window of_cluster as (partition by t.cluster)
  ),

  -- The range of each hour within all bytes written.
  place as materialized (
    select
      *,
      coalesce(
        sum(bytes) over (partition by cluster order by hour rows between unbounded preceding and 1 preceding), 0
      ) as from_bytes,
      sum(bytes) over (partition by cluster order by hour) as until_bytes,
      avg(bytes) over (partition by cluster) / 3600 as mean_bytes_per_second
    from written
  ),

  -- Position of the oldest cached record at the end of each hour.
  held as (
    select
      p.cluster,
      p.hour,
      m.bytes,
      p.until_bytes - m.bytes as from_bytes,
      p.mean_bytes_per_second
    from place as p
    left join memory as m using (cluster)
    where p.hour >= first_hour
  ),

  -- The hour in which it was written: the last one that begins before. (Sorted, because there are weeks of hours.)
  found as (
    select
      *,
      max(written_in) over (partition by cluster order by from_bytes, hour nulls first) as oldest_hour
    from (
      select
        cluster,
        null::timestamptz as hour,
        from_bytes,
        hour as written_in
      from place
      union all
      select
        cluster,
        hour,
        from_bytes,
        null::timestamptz as written_in
      from held
    ) as ends
  )

  select
    h.hour,
    h.cluster,
    h.bytes,
    coalesce(
      extract(epoch from h.hour - p.hour) + 3600 * (p.until_bytes - h.from_bytes) / nullif(p.bytes, 0),
      -- All of the last week, and as much of earlier hours as fits.
      extract(epoch from h.hour - first_hour + interval '7 days') - h.from_bytes / nullif(h.mean_bytes_per_second, 0)
    )
  from held as h
  left join found as f using (cluster, hour)
  left join place as p on h.cluster = p.cluster and f.oldest_hour = p.hour
$$;
comment on function public.page_cache is
'Content of the page cache of each cluster''s brokers at the end of each hour, if it has page_cache_share of their memory: bytes, and the age of the oldest in seconds. Memory is that of the last hour. Null: memory or writes are not known, or nothing is written.';
