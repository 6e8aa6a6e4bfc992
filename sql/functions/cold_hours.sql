-- Hours in which a group read records that its cluster's page cache no longer held, by its lag or rewinds. Only for these
-- few hours are the bytes computed.
create or replace function public.cold_hours(as_of timestamptz, days integer, page_cache_share double precision)
returns table (
  hour timestamptz, cluster text, group_id text, page_cache_seconds double precision
) language sql stable rows 100 set enable_nestloop = off as $$
  select hour, cluster, g.group_id, c.seconds
  from public.page_cache(as_of - make_interval(days => days), as_of, page_cache_share) as c
  inner join metrics.consumer_group_hourly as g using (hour, cluster)
  where g.hour > as_of - make_interval(days => days) and g.hour <= as_of
  and (g.lag_seconds_max > c.seconds or g.status = 'rewind')
$$;
comment on function public.cold_hours is
'Hours in which a group read records that the page cache of its cluster''s brokers no longer held, by its lag or rewinds.';
-- Disk reads of each cluster's brokers and bytes sent to consumers and followers, without those from tiered storage, in each
-- hour of the days that end with an hour. Null where one of them is not known. Disks that are not EBS volumes are known from node exporters.
create or replace function public.broker_reads_hourly(as_of timestamptz, days integer) returns table (
  hour timestamptz, cluster text, read_bytes double precision, sent_bytes double precision, is_upset boolean
) language sql stable rows 1000 set enable_nestloop = off as $$
  with broker as materialized (
    select *
    from metrics.broker_hourly
    where hour > as_of - make_interval(days => days) and hour <= as_of
    and (active_controllers is null or partitions is not null)
  ),

  disk as (
    select m.hour, u.cluster, u.endpoint, sum(m.read_bytes) as read_bytes, bool_or(m.read_bytes is null) as is_unknown
    from inventory.used_volumes(as_of) as u
    inner join metrics.volume_hourly as m using (account, region, volume_id)
    where u.is_broker and m.hour > as_of - make_interval(days => days) and m.hour <= as_of
    group by m.hour, u.cluster, u.endpoint
  ),

  node as (
    select hour, instance_id, 3600 * max(disk_read_bytes_per_second) as read_bytes
    from metrics.node_hourly
    where hour > as_of - make_interval(days => days) and hour <= as_of
    group by hour, instance_id
  )

  select
    b.hour,
    b.cluster,
    case when count(read.bytes) = count(*) then sum(read.bytes) end,
    case
      when count(b.bytes_out_per_second) = count(*)
        then sum(
          b.bytes_out_per_second - coalesce(b.remote_fetch_bytes_per_second, 0)
          + coalesce(b.replication_bytes_out_per_second, 0)
        ) * 3600
    end,
    bool_or(
      b.process_started_at > b.hour or b.under_replicated_partitions_max > 0
      or coalesce(b.reassigning_partitions > 0, false) or b.samples is null
    )
  from broker as b
  left join disk as d using (hour, cluster, endpoint)
  left join node as n using (hour, instance_id)
  cross join lateral (
    select case when d.is_unknown is false then d.read_bytes else n.read_bytes end as bytes
  ) as read
  group by b.hour, b.cluster
$$;
comment on function public.broker_reads_hourly is
'Disk reads of each cluster''s brokers and bytes sent in each hour of some days, and whether a broker was started or did not respond, or replicas were moved or catching up; null where one of them is not known.';
-- Bytes of each topic that a group read in an hour from disk rather than page cache. (A function with a SET clause is
-- planned separately: for one group and hour, where the view alone would be computed for all.)
create or replace function public.group_cold_reads(
  of_cluster text, of_group_id text, as_of timestamptz, page_cache_seconds double precision
) returns table (
  topic text, cold_bytes double precision, is_unknown boolean
) language sql stable rows 10 set enable_nestloop = on as $$
  select
    topic,
    case
      when is_unknown or lag_seconds is null then null
      -- From tiered storage.
      when public.reads_remotely(cluster, topic, as_of, lag_seconds, lag_bytes) then 0
      when lag_seconds > page_cache_seconds then fresh_bytes + backlog_bytes
      -- What it read lies before what it has yet to read.
      else greatest(
        least(backlog_bytes + coalesce(lag_bytes, 0) - bytes_in_per_second * page_cache_seconds, backlog_bytes), 0
      )
    end,
    is_unknown
  from public.topic_readers
  where hour = as_of and cluster = of_cluster and group_id = of_group_id
$$;
comment on function public.group_cold_reads is
'Bytes of each topic that a group read in an hour and that the page cache no longer held.';
