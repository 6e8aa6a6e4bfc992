-- The usual rate and the age of each topic over the days that end with an hour: 95th percentile of its hours, so that
-- bursts count. known_hours are hours in which JMX counted its bytes; was_there tells whether it, and cluster_was_there
-- whether any topic of its cluster, was seen before those days.
create or replace function public.topic_rates(as_of timestamptz, days integer) returns table (
  cluster text, topic text, kind text, partitions integer, replication_factor integer, application_id text,
  p95_bytes_per_second double precision, known_hours bigint, was_there boolean, cluster_was_there boolean,
  is_new boolean
)
-- The planner's statistics don't know the newest hour: for the one row that it expects it would take nested loops.
language sql stable rows 10000 set enable_nestloop = off as $$
  with rate as materialized (
    select
      cluster,
      topic,
      percentile_disc(0.95) within group (order by bytes_in / covered_seconds) as p95_bytes_per_second,
      count(*) as known_hours
    from metrics.topic_hourly
    where hour > as_of - make_interval(days => days) and hour <= as_of and bytes_in is not null and covered_seconds > 0
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
    t.application_id,
    r.p95_bytes_per_second,
    coalesce(r.known_hours, 0),
    b.topic is not null,
    t.cluster in (select cluster from before),
    w.topic is null and t.cluster in (select cluster from week_before)
  from inventory.topic_hourly as t
  left join rate as r using (cluster, topic)
  left join before as b using (cluster, topic)
  left join week_before as w using (cluster, topic)
  where t.hour = as_of
$$;
comment on function public.topic_rates is
'Usual bytes per second (95th percentile of the hours) and age of each topic over the days that end with an hour. is_new: it was made within the week before those days.';
