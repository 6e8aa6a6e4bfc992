-- Topics with more partitions than their rate needs, and how many they need: plain ones, known before the days, that no
-- group reads together with a busy topic of as many partitions (their partitions must stay equal). A group that reads
-- more than set_topics such topics is a mirror or an archive: it joins nothing.
create or replace function public.topics_low_rate(
  as_of timestamptz, days integer, least_partitions integer, bytes_per_partition double precision, set_topics integer
) returns table (
  cluster text, topic text, owner text, p95_bytes_per_second double precision, partitions integer,
  needed_partitions integer, freed_partitions integer, freed_replicas integer, freed_open_files integer, is_new boolean
) language sql stable rows 1000 set enable_nestloop = off as $$
  with rate as materialized (
    select * from public.topic_traffic(as_of, days, bytes_per_partition)
  ),

  read as (
    select distinct p.cluster, p.group_id, p.topic, r.partitions, r.is_low
    from metrics.consumer_partition_hourly as p
    inner join rate as r using (cluster, topic)
    where p.hour = as_of
  ),

  -- All low topics of a set may shrink together; one that is busy, or isn't known, holds the others.
  held as (
    select distinct r.cluster, r.topic
    from read as r
    inner join (
      select cluster, group_id, partitions
      from read
      group by cluster, group_id, partitions
      having not bool_and(is_low) and count(*) <= set_topics
    ) as busy using (cluster, group_id, partitions)
  ),

  low as materialized (
    select r.*
    from rate as r
    left join held as h using (cluster, topic)
    where r.kind = 'plain' and r.was_there and r.is_low and r.partitions >= least_partitions
    and r.known_hours >= days * 12 and h.topic is null
  ),

  p95 as (
    select
      cluster,
      topic,
      percentile_disc(0.95) within group (order by r.bytes_in / r.covered_seconds) as bytes_per_second
    from metrics.topic_hourly as r
    inner join low using (cluster, topic)
    where r.hour > as_of - make_interval(days => days) and r.hour <= as_of
    and r.bytes_in is not null and r.covered_seconds > 0
    group by cluster, topic
  )

  select
    l.cluster,
    l.topic,
    t.owner,
    p.bytes_per_second,
    l.partitions,
    n.needed,
    l.partitions - n.needed,
    (l.partitions - n.needed) * coalesce(l.replication_factor, 1),
    -- Log, index and time index of the one segment that a replica has at least.
    (l.partitions - n.needed) * coalesce(l.replication_factor, 1) * 3,
    l.is_new
  from low as l
  inner join p95 as p using (cluster, topic)
  cross join lateral (select greatest(1, ceil(p.bytes_per_second / bytes_per_partition))::integer as needed) as n
  left join public.things(as_of) as t on t.kind = 'topic' and t.key = public.thing_key('topic', l.cluster, l.topic)
  where l.partitions > n.needed
$$;
comment on function public.topics_low_rate is
'Topics with more partitions than their rate needs, and what shrinking them frees. See the detector topic_partitions_wasted.';
