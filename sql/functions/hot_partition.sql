-- The partition of a topic that received most records for a group in an hour, and the 99th percentile of its own hours.
-- The latter is known only if at least half of the hours of history_days are.
create or replace function public.hot_partition(
  of_hour timestamptz, of_cluster text, of_topic text, of_group_id text, history_days integer
) returns table (
  partition integer,
  known_hours bigint,                          -- null: less than half of the hours
  peak_per_second double precision
) language sql stable rows 1 as $$
  select
    busiest.partition,
    own.known_hours,
    own.per_second
  from (
    select p.partition
    from metrics.consumer_partition_hourly as p
    where p.hour = of_hour and p.cluster = of_cluster and p.group_id = of_group_id and p.topic = of_topic
    order by p.arriving_per_second desc nulls last, p.partition asc
    limit 1
  ) as busiest
  left join lateral (
    select
      count(h.arriving_per_second) as known_hours,
      percentile_disc(0.99) within group (order by h.arriving_per_second) as per_second
    from metrics.consumer_partition_hourly as h
    where h.hour = any(
      array(select of_hour - k * interval '1 hour' from generate_series(0, history_days * 24 - 1) as k)
    )
    and h.cluster = of_cluster and h.group_id = of_group_id and h.topic = of_topic and h.partition = busiest.partition
    having count(h.arriving_per_second) >= history_days * 12
  ) as own on true
$$;
comment on function public.hot_partition is
'The partition of a topic that received most records for a group in an hour, and the 99th percentile of its own rate.';
