-- A retention of a topic under which the oldest unread records of a group are kept for `add_hours` more, and the disk space
-- it takes on each broker. Deletion by size leaves a log of at least retention.bytes, so a smaller log is limited by time.
create or replace function public.longer_retention(
  as_of timestamptz, of_cluster text, of_topic text, of_partition integer,
  current_ms bigint, current_bytes bigint,      -- retention.ms and retention.bytes; null: unlimited
  log_records bigint, arriving_per_second double precision, lag_seconds double precision, add_hours double precision
) returns table (
  log_bytes bigint, is_by_size boolean,         -- retention.bytes deletes the records, not retention.ms
  retention_ms bigint, retention_bytes bigint,  -- null: may stay as they are
  extra_bytes double precision,                 -- on all brokers; null: not known
  brokers jsonb                                 -- extra_bytes and free_bytes of each broker with a replica
) language sql stable rows 1 as $$
  with holder as (
    select
      r.broker_id,
      max(cast(r.partition_bytes ->> cast(of_partition as text) as bigint)) as log_bytes,
      sum(r.size_bytes) as size_bytes,
      sum(d.usable_bytes) as free_bytes
    from metrics.replica_sample as r
    left join metrics.log_dir_hourly as d
      on r.hour = d.hour and r.cluster = d.cluster and r.broker_id = d.broker_id and r.log_dir = d.log_dir
    where r.hour = as_of and r.cluster = of_cluster and r.topic = of_topic and not r.is_future
    group by r.broker_id
  ),

  needed as (
    select
      h.*,
      current_ms / 1000.0 as current_seconds,
      coalesce(h.log_bytes, current_bytes) / nullif(cast(log_records as double precision), 0)
      * arriving_per_second * add_hours * 3600 as added_bytes
    from (select max(log_bytes) as log_bytes, sum(size_bytes) as size_bytes from holder) as h
  ),

  advised as (
    select
      n.*,
      s.longer_bytes,
      i.replication_factor * case
        when s.longer_bytes is not null then nullif(n.added_bytes, 0) * i.partitions
        else j.bytes_in / nullif(j.covered_seconds, 0) * add_hours * 3600
      end as extra_bytes
    from needed as n
    cross join lateral (
      select
        case
          when n.current_seconds is null or coalesce(n.log_bytes, current_bytes) + n.added_bytes > current_bytes
            then current_bytes + nullif(n.added_bytes, 0)
        end as longer_bytes
    ) as s
    left join metrics.topic_hourly as j on j.hour = as_of and j.cluster = of_cluster and j.topic = of_topic
    left join inventory.topic_hourly as i on i.hour = as_of and i.cluster = of_cluster and i.topic = of_topic
  )

  select
    a.log_bytes,
    (current_bytes is not null and (a.current_seconds is null or a.log_bytes >= current_bytes)) is true,
    case
      when a.longer_bytes is null or (lag_seconds + add_hours * 3600 <= a.current_seconds) is not true
        then cast(current_ms + add_hours * 3600000 as bigint)
    end,
    cast(a.longer_bytes as bigint),
    a.extra_bytes,
    (
      select
        jsonb_agg(
          jsonb_build_object(
            'broker_id', h.broker_id, 'extra_bytes', cast(a.extra_bytes * h.size_bytes / a.size_bytes as bigint),
            'free_bytes', h.free_bytes
          )
          order by h.size_bytes desc, h.broker_id asc
        )
      from holder as h
      where a.extra_bytes is not null and a.size_bytes > 0
    )
  from advised as a
$$;
comment on function public.longer_retention is
'A retention of a topic that keeps the unread records of a group for some hours more, and the disk space it takes.';
