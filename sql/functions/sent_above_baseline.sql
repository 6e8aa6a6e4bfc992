-- For clusters without bytes by topic: what the brokers send, other than from tiered storage, above their median of the days before, and the group that lags
-- most against what the page cache holds. No row with fewer than baseline_hours of history.
create or replace function public.sent_above_baseline(
  of_hour timestamptz, of_clusters text[], baseline_days integer, baseline_hours integer, page_cache_share double precision
) returns table (
  cluster text,
  baseline_sent_bytes_per_second double precision,
  excess_sent_bytes double precision,          -- in the hour; below 0: less than the baseline
  cache_seconds double precision,              -- time that the page cache holds at the hour's traffic
  is_lag_known boolean,
  longest_lag_seconds double precision,
  lagging_group text,                          -- the group with that lag
  is_remote_known boolean                      -- whether the brokers exposed what they read from tiered storage
) language sql stable rows 10 as $$
  with sent_by_hour as (
    select
      b.cluster,
      b.hour,
      sum(b.bytes_out_per_second - coalesce(b.remote_fetch_bytes_per_second, 0)) as bytes_per_second,
      count(*) = count(b.remote_fetch_bytes_per_second) as is_remote_known,
      sum(b.bytes_in_per_second + coalesce(b.replication_bytes_in_per_second, 0)) as came_per_second
    from metrics.broker_hourly as b
    where b.cluster = any(of_clusters)
    and b.hour > of_hour - make_interval(days => baseline_days) and b.hour <= of_hour
    group by b.cluster, b.hour
    having count(*) = count(b.bytes_out_per_second)
  ),

  group_lag as (
    select
      cluster,
      group_id,
      lag_seconds_max as lag_seconds
    from metrics.consumer_group_hourly
    where hour = of_hour and lag_seconds_max is not null
    union all
    select
      cluster,
      group_id,
      max(time_lag_seconds_max) as lag_seconds
    from metrics.msk_consumer_lag_hourly
    where hour = of_hour and time_lag_seconds_max is not null
    group by cluster, group_id
  )

  select
    s.cluster,
    u.bytes_per_second as baseline_sent_bytes_per_second,
    3600 * (s.bytes_per_second - u.bytes_per_second) as excess_sent_bytes,
    m.bytes / nullif(s.came_per_second, 0) as cache_seconds,
    l.lag_seconds is not null as is_lag_known,
    l.lag_seconds as longest_lag_seconds,
    l.group_id as lagging_group,
    s.is_remote_known
  from sent_by_hour as s
  inner join lateral (
    select percentile_cont(0.5) within group (order by o.bytes_per_second) as bytes_per_second
    from sent_by_hour as o
    where o.cluster = s.cluster and o.hour < of_hour
    having count(*) >= baseline_hours
  ) as u on true
  left join lateral (
    select page_cache_share * sum(i.memory_bytes) as bytes
    from (select distinct instance_id from metrics.broker_hourly where hour = of_hour and cluster = s.cluster) as b
    inner join inventory.instance_hourly as i on i.hour = of_hour and b.instance_id = i.instance_id
  ) as m on true
  left join lateral (
    select g.group_id, g.lag_seconds
    from group_lag as g
    where g.cluster = s.cluster
    order by g.lag_seconds desc, g.group_id asc
    limit 1
  ) as l on true
  where s.hour = of_hour
$$;
comment on function public.sent_above_baseline is
'Bytes that the brokers of these clusters send above their median, and the group that lags most, for clusters without bytes by topic.';
