-- The topics of an hour, and the partitions that topics with a low rate need. A rate is low when less than
-- bytes_per_partition per partition came in, in 95 % of the known hours of the days that end with the hour; bursts count.
-- (Hours are counted, because a percentile would sort two weeks of all topics.) Evaluated are plain topics with
-- least_partitions that existed before the days. Topics that a group reads together with a busy topic of as many
-- partitions keep theirs, because co-partitioned counts must stay equal. A group that reads more than set_topics such
-- topics is a mirror or an archive: it joins nothing.
create or replace function public.topics_by_rate(
  as_of timestamptz, days integer, least_partitions integer, bytes_per_partition double precision, set_topics integer
) returns table (
  cluster text, topic text,
  owner text,                                  -- of topics with unneeded partitions
  partitions integer,
  cluster_was_there boolean,                   -- before the days
  is_evaluated boolean,
  is_known boolean,                            -- JMX reported its bytes in half of the hours
  is_new boolean,                              -- created within the week before the days
  p95_bytes_per_second double precision,       -- this and the following: null if all partitions are needed
  needed_partitions integer, freed_partitions integer, freed_replicas integer, freed_open_files integer
)
-- The planner's statistics do not cover the newest hour: it expects one row, and would choose nested loops or a merge join
-- that sorts two weeks of all topics.
language sql stable rows 10000 set enable_nestloop = off set enable_mergejoin = off set enable_sort = off as $$
  with topic as materialized (
    select cluster, topic, kind, partitions, replication_factor from inventory.topic_hourly where hour = as_of
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
    where t.partitions >= least_partitions
    and r.hour > as_of - make_interval(days => days) and r.hour <= as_of
    and r.bytes_in / nullif(r.covered_seconds, 0) is not null
    group by cluster, topic
  ),

  -- A day of hours, so that a missing hour does not make a topic appear new.
  before as materialized (
    select distinct cluster, topic
    from inventory.topic_hourly
    where hour > as_of - make_interval(days => days + 1) and hour <= as_of - make_interval(days => days)
  ),

  week_before as materialized (
    select distinct cluster, topic
    from inventory.topic_hourly
    where hour > as_of - make_interval(days => days + 8) and hour <= as_of - make_interval(days => days + 7)
  ),

  aged as materialized (
    select
      t.*,
      coalesce(r.is_low, false) as is_low,
      t.cluster in (select cluster from before) as cluster_was_there,
      t.kind = 'plain' and t.partitions >= least_partitions and b.topic is not null as is_evaluated,
      coalesce(r.known_hours >= days * 12, false) as is_known,
      w.topic is null and t.cluster in (select cluster from week_before) as is_new
    from topic as t
    left join rate as r using (cluster, topic)
    left join before as b using (cluster, topic)
    left join week_before as w using (cluster, topic)
  ),

  read as (
    select distinct cluster, p.group_id, topic, a.partitions, a.is_low
    from metrics.consumer_partition_hourly as p
    inner join aged as a using (cluster, topic)
    where p.hour = as_of
  ),

  -- Co-partitioned topics may shrink together; one that is busy or unknown keeps the others as they are.
  held as (
    select distinct cluster, topic
    from read
    inner join (
      select cluster, group_id, partitions
      from read
      group by cluster, group_id, partitions
      having not bool_and(is_low) and count(*) <= set_topics
    ) as busy using (cluster, group_id, partitions)
  ),

  low as materialized (
    select a.*
    from aged as a
    left join held as h using (cluster, topic)
    where a.is_evaluated and a.is_low and a.is_known and h.topic is null
  ),

  p95 as (
    select
      cluster,
      topic,
      percentile_disc(0.95) within group (order by r.bytes_in / nullif(r.covered_seconds, 0)) as bytes_per_second
    from metrics.topic_hourly as r
    inner join low using (cluster, topic)
    where r.hour > as_of - make_interval(days => days) and r.hour <= as_of
    group by cluster, topic
  ),

  need as (
    select l.cluster, l.topic, t.owner, p.bytes_per_second, n.partitions, l.partitions - n.partitions as freed
    from low as l
    inner join p95 as p using (cluster, topic)
    cross join lateral (
      select greatest(1, ceil(p.bytes_per_second / bytes_per_partition))::integer as partitions
    ) as n
    left join public.resources(as_of) as t on t.kind = 'topic' and t.key = public.resource_key('topic', l.cluster, l.topic)
    where l.partitions > n.partitions
  )

  select
    a.cluster,
    a.topic,
    n.owner,
    a.partitions,
    a.cluster_was_there,
    a.is_evaluated,
    a.is_known,
    a.is_new,
    n.bytes_per_second,
    n.partitions,
    n.freed,
    n.freed * coalesce(a.replication_factor, 1),
    -- Log, index, and time index of the one segment that each replica has at least.
    n.freed * coalesce(a.replication_factor, 1) * 3
  from aged as a
  left join need as n using (cluster, topic)
$$;
comment on function public.topics_by_rate is
'The topics of an hour, and the partitions that topics with a low rate need. See the detector topic_overpartitioned.';
