-- Whether the rate of each topic is low over the days that end with an hour, and its age. It is low if less than
-- bytes_per_partition came in for each partition in 95 % of its known hours: bursts count. (Counted, as a percentile would
-- have to sort two weeks of all topics.) known_hours are hours in which JMX counted its bytes; was_there tells whether it,
-- and cluster_was_there whether any topic of its cluster, was seen before those days; is_new: not yet a week earlier.
create or replace function public.topic_traffic(
  as_of timestamptz, days integer, bytes_per_partition double precision
) returns table (
  cluster text, topic text, kind text, partitions integer, replication_factor integer, is_low boolean,
  known_hours bigint, was_there boolean, cluster_was_there boolean, is_new boolean
)
-- The planner's statistics don't know the newest hour: for the one row that it expects it would take nested loops.
language sql stable rows 10000 set enable_nestloop = off as $$
  with topic as materialized (
    select * from inventory.topic_hourly where hour = as_of
  ),

  rate as materialized (
    select
      cluster,
      topic,
      count(*) as known_hours,
      count(*) filter (where r.bytes_in < bytes_per_partition * t.partitions * r.covered_seconds) >= 0.95 * count(*)
        as is_low
    from metrics.topic_hourly as r
    inner join topic as t using (cluster, topic)
    where r.hour > as_of - make_interval(days => days) and r.hour <= as_of
    and r.bytes_in is not null and r.covered_seconds > 0
    group by cluster, topic
  ),

  -- A day's hours, so that one that wasn't gathered makes nothing young.
  before as materialized (
    select distinct cluster, topic
    from inventory.topic_hourly
    where hour > as_of - make_interval(days => days + 1) and hour <= as_of - make_interval(days => days)
  ),

  week_before as materialized (
    select distinct cluster, topic
    from inventory.topic_hourly
    where hour > as_of - make_interval(days => days + 8) and hour <= as_of - make_interval(days => days + 7)
  )

  select
    t.cluster,
    t.topic,
    t.kind,
    t.partitions,
    t.replication_factor,
    coalesce(r.is_low, false),
    coalesce(r.known_hours, 0),
    b.topic is not null,
    t.cluster in (select cluster from before),
    w.topic is null and t.cluster in (select cluster from week_before)
  from topic as t
  left join rate as r using (cluster, topic)
  left join before as b using (cluster, topic)
  left join week_before as w using (cluster, topic)
$$;
comment on function public.topic_traffic is
'Whether each topic got little for each of its partitions in 95 % of the hours of the days that end with an hour, and its age.';
