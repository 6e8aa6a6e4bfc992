-- How long a topic with tiered storage (KIP-405) keeps records on the disks of its brokers. Older records are read from
-- remote storage, not from disk. No row for other topics.
create or replace function public.local_retention(configs jsonb, retention_ms bigint) returns table (
  seconds double precision,                    -- null: without a limit
  partition_bytes double precision             -- of each partition; null: without a limit
) language sql immutable rows 1 as $$
  -- -2, the default: that of the whole log. -1: without a limit.
  select nullif(l.ms, -1) / 1000.0, case when l.bytes >= 0 then l.bytes end
  from (
    select
      coalesce(nullif((configs #>> '{local.retention.ms,value}')::bigint, -2), retention_ms) as ms,
      coalesce(
        nullif((configs #>> '{local.retention.bytes,value}')::bigint, -2), (configs #>> '{retention.bytes,value}')::bigint
      ) as bytes
    where configs #>> '{remote.storage.enable,value}' = 'true'
  ) as l
$$;
comment on function public.local_retention is
'How long a topic with tiered storage keeps records on the disks of its brokers; no row for other topics.';

-- Whether a group with a lag reads a topic from tiered storage: its oldest unread record is older than the local retention.
create or replace function public.reads_remotely(
  of_cluster text, of_topic text, as_of timestamptz, lag_seconds double precision, lag_bytes double precision
) returns boolean language sql stable as $$
  select coalesce((
    select coalesce(lag_seconds > l.seconds, false) or coalesce(lag_bytes > l.partition_bytes * t.partitions, false)
    from inventory.topic_hourly as t
    cross join lateral public.local_retention(t.configs, t.retention_ms) as l
    where t.hour = as_of and t.cluster = of_cluster and t.topic = of_topic
  ), false)
$$;
comment on function public.reads_remotely is
'Whether a group with a lag reads a topic from tiered storage, by the topic''s local retention.';
