-- Partitions whose first records should have been deleted overdue_hours ago by retention.ms; at most a hundred per broker.
-- Kafka deletes whole segments by their newest timestamp, including the active one. Timestamps within a segment differ by
-- at most segment.ms, because a newer record rolls a new segment. So records older than retention.ms + segment.ms +
-- overdue_hours must be gone, if the records of that hour were dated before it. The rows of those hours have both: the
-- log-end offset two hours before, and the first record dated in that hour or later. Records written since with old
-- timestamps do not count as old, and a partition with records dated in the future is excluded.
create or replace function public.partitions_overdue(as_of timestamptz, overdue_hours integer) returns table (
  cluster text, topic text, partition integer,
  broker_id integer,                  -- its leader
  kept_seconds double precision,      -- retention.ms
  overdue_from timestamptz,           -- records dated before are still there
  overdue_ratio double precision      -- lower bound of their share of its offsets
) language sql stable rows 100 set enable_mergejoin = off as $$
  with topic as materialized (
    select t.cluster, t.topic, t.retention_ms, c.segment_ms,
      date_trunc('hour', as_of - make_interval(hours => overdue_hours, secs => c.kept_ms / 1000.0)) as before
    from inventory.topic_hourly as t
    cross join lateral (select (t.configs #>> '{segment.ms,value}')::numeric as segment_ms) as s
    cross join lateral (select s.segment_ms, least(t.retention_ms + s.segment_ms, 3.2e11) as kept_ms) as c  -- ten years
    where t.hour = as_of and t.cleanup_policy = 'delete' and t.retention_ms <> -1
    and coalesce(t.configs #>> '{remote.storage.enable,value}', 'false') <> 'true'
  ),

  -- Topic by topic, by the primary key: PostgreSQL has no statistics of the newest hours.
  suspect as materialized (
    select t.*, now.partition, now.leader, now.log_start_offset, now.log_end_offset, e.log_end_offset as end_before
    from topic as t
    cross join lateral (
      select p.partition, p.log_end_offset
      from metrics.partition_hourly as p
      where p.hour = t.before - interval '2 hours' and p.cluster = t.cluster and p.topic = t.topic
      and p.offsets_at <= t.before
      offset 0
    ) as e
    inner join metrics.partition_hourly as now
      on now.hour = as_of and t.cluster = now.cluster and t.topic = now.topic and e.partition = now.partition
    where now.log_start_offset < e.log_end_offset and now.leader is not null
  ),

  -- Topics with the same or a shorter retention when it was written and a day ago.
  settled as materialized (
    select s.cluster, s.topic, s.before
    from (select distinct cluster, topic, before, retention_ms, segment_ms from suspect) as s
    cross join lateral (
      select e.cleanup_policy, e.retention_ms, (e.configs #>> '{segment.ms,value}')::numeric as segment_ms
      from inventory.topic_hourly as e
      where e.hour in (s.before, as_of - make_interval(hours => overdue_hours)) and e.cluster = s.cluster and e.topic = s.topic
    ) as was
    where was.cleanup_policy = 'delete' and was.retention_ms between 0 and s.retention_ms and was.segment_ms <= s.segment_ms
    group by s.cluster, s.topic, s.before
    having count(*) = 2
  ),

  -- A broker that deletes nothing has thousands: each takes hundreds of index lookups, and a hundred are proof enough.
  proof as (
    select *
    from (
      select *, row_number() over (partition by cluster, leader order by nth, topic) as place
      from (
        select *, row_number() over (partition by cluster, leader, topic order by partition) as nth
        from suspect
        inner join settled using (cluster, topic, before)
      ) as numbered
    ) as placed
    where place <= 100
  ),

  -- A partition is excluded if its log ended earlier in a later hour, or has an earlier record dated in it: the topic was
  -- recreated or truncated, or its records are dated in the future.
  held as (
    select s.cluster, s.topic, s.before, s.retention_ms, s.partition, s.leader, s.log_start_offset, s.log_end_offset, s.end_before,
      min(least(e.log_end_offset, e.log_end_offset_first)) as least_end,
      count(e.log_end_offset_first) filter (where e.hour = s.before) > 0 as is_dated
    from proof as s
    cross join lateral generate_series(s.before, as_of, interval '1 hour') as n (hour)
    cross join lateral (
      select p.hour, p.log_end_offset, p.log_end_offset_first
      from metrics.partition_hourly as p
      where p.hour = n.hour and p.cluster = s.cluster and p.topic = s.topic and p.partition = s.partition
      offset 0
    ) as e
    group by s.cluster, s.topic, s.before, s.retention_ms, s.partition, s.leader, s.log_start_offset, s.log_end_offset, s.end_before
  )

  select
    cluster,
    topic,
    partition,
    leader,
    retention_ms / 1000.0,
    before,
    (end_before - log_start_offset)::double precision / (log_end_offset - log_start_offset)
  from held
  where is_dated and least_end >= end_before
$$;
comment on function public.partitions_overdue is
'Partitions whose first records should have been deleted long ago by retention.ms, by the content of their logs in the hours since; at most a hundred per broker.';
