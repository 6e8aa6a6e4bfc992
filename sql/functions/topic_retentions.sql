-- Retention of each topic with cleanup by time, and the age of the oldest record that a group had not read yet.
-- Lag in time is known by group and hour: the maximum counts for each topic that the group reads, so the need is never too
-- small. Lags are as of the end of the hour, so an hour is added; a group that rewound may have read records of any age.
create or replace function public.topic_retentions(as_of timestamptz, days integer, min_bytes double precision) returns table (
  cluster text, topic text, kept_seconds double precision, read_seconds double precision,
  groups bigint,                               -- null: no group reads it
  went_back boolean, is_unknown boolean, log_bytes double precision,
  written_bytes_per_second double precision,   -- not computed for topics known to be smaller than min_bytes
  cluster_was_there boolean
) language sql stable rows 10000 set enable_nestloop = off set enable_mergejoin = off set enable_sort = off as $$
  with group_age as materialized (
    select
      cluster,
      group_id,
      max(lag_seconds_max) + 3600 as read_seconds,
      coalesce(bool_or(status = 'rewind'), false) as went_back,
      count(lag_seconds_max) * 2 < count(*) as is_unknown
    from metrics.consumer_group_hourly
    where hour > as_of - make_interval(days => days) and hour <= as_of
    group by cluster, group_id
  ),

  -- Commits are kept for a week: a group that read within the days appears in one of its weeks.
  reader as materialized (
    select distinct p.cluster, p.topic, p.group_id
    from metrics.consumer_partition_hourly as p
    where p.hour = any(array(select as_of - make_interval(days => n) from generate_series(0, days, 7) as n))
  ),

  read as materialized (
    select
      r.cluster,
      r.topic,
      count(*) as groups,
      max(g.read_seconds) as read_seconds,
      bool_or(g.went_back) as went_back,
      bool_or(coalesce(g.is_unknown, true)) as is_unknown
    from reader as r
    left join group_age as g using (cluster, group_id)
    group by r.cluster, r.topic
  ),

  there as (
    select distinct cluster
    from metrics.consumer_group_hourly
    where hour > as_of - make_interval(days => days) and hour <= as_of - make_interval(days => days - 1)
  ),

  held as materialized (
    select cluster, topic, sum(size_bytes)::double precision as log_bytes
    from metrics.replica_sample
    where hour = as_of
    group by cluster, topic
  ),

  kept as materialized (
    select t.*, h.log_bytes
    from inventory.topic_hourly as t
    left join held as h using (cluster, topic)
    where t.hour = as_of and t.kind = 'plain' and coalesce(t.cleanup_policy, 'delete') = 'delete'
    and coalesce((t.configs -> 'retention.bytes' ->> 'value')::bigint, -1) < 0
    and not exists (
      select 1 from public.local_retention(t.configs, t.retention_ms) as l where l.partition_bytes is not null
    )
  ),

  -- Reading a week of all topics takes longer than all the rest.
  rate as materialized (
    select cluster, topic, avg(r.bytes_in / nullif(r.covered_seconds, 0)) as bytes_per_second, max(r.log_bytes) as log_bytes
    from metrics.topic_hourly as r
    inner join kept as k using (cluster, topic)
    where r.hour > as_of - interval '7 days' and r.hour <= as_of and coalesce(k.log_bytes >= min_bytes, true)
    group by cluster, topic
  )

  select
    t.cluster,
    t.topic,
    case
      when t.configs -> 'remote.storage.enable' ->> 'value' = 'true'
        then coalesce(nullif((t.configs -> 'local.retention.ms' ->> 'value')::bigint, -2), t.retention_ms)
      else t.retention_ms
    end / 1000.0,
    r.read_seconds,
    r.groups,
    r.went_back,
    r.is_unknown,
    coalesce(t.log_bytes, w.log_bytes),
    w.bytes_per_second * t.replication_factor,
    t.cluster in (select cluster from there)
  from kept as t
  left join read as r using (cluster, topic)
  left join rate as w using (cluster, topic)
$$;
comment on function public.topic_retentions is
'Retention of each topic with cleanup by time, the age of the oldest record that a group had not read yet in the days that end with an hour, and its size.';
