-- Reads of each group from each topic in an hour, by its commits: the view topic_readers for one hour. A query of the view
-- aggregates all hours of all partitions to find the previous hours.
create or replace function public.topic_readers_of(as_of timestamptz) returns table (
  hour timestamptz, cluster text, group_id text, topic text, records numeric, fresh_bytes double precision,
  backlog_bytes double precision, bytes_in_per_second double precision, lag_seconds double precision,
  lag_bytes double precision, rewinds bigint, commits_per_partition double precision,
  seconds_between_commits double precision, is_unknown boolean, is_silent boolean
) language sql stable as $$
  select
    as_of,
    r.cluster,
    r.group_id,
    r.topic,
    r.records,
    fresh.records * t.new_bytes_per_record * counted.part as fresh_bytes,
    greatest(r.records - fresh.records, 0) * t.old_bytes_per_record * counted.part as backlog_bytes,
    t.bytes_in / nullif(t.covered_seconds, 0) as bytes_in_per_second,
    r.lag_seconds,
    r.lag_records * t.old_bytes_per_record as lag_bytes,
    r.rewinds,
    r.commits_per_partition,
    r.consumed_seconds / nullif(r.commits_per_partition, 0) as seconds_between_commits,
    r.is_unknown,
    r.is_silent
  from (
    select
      p.cluster,
      p.group_id,
      p.topic,
      max(p.lag_seconds) as lag_seconds,
      sum(p.lag_records) as lag_records,
      sum(p.rewinds) as rewinds,
      sum(p.commits)::double precision / count(*) as commits_per_partition,
      bool_or(consumed.records is null) as is_unknown,
      bool_or(p.client_id is not null) and sum(p.commits) = 0 as is_silent,
      sum(consumed.records) as records,
      max(p.consumed_seconds) as consumed_seconds
    from metrics.consumer_partition_hourly as p
    left join metrics.consumer_partition_hourly as before
      on before.hour = as_of - interval '1 hour'
      and p.cluster = before.cluster and p.group_id = before.group_id
      and p.topic = before.topic and p.partition = before.partition
    -- A group that commits once an hour or less has no interval within the hour: then the offset of the hour before counts.
    cross join lateral (
      select greatest(p.records_consumed, p.committed_offset - before.committed_offset) as records
    ) as consumed
    where p.hour = as_of
    group by p.cluster, p.group_id, p.topic
  ) as r
  inner join public.topic_bytes as t on r.cluster = t.cluster and r.topic = t.topic and t.hour = as_of
  -- Where nothing is known, it is assumed to read what is produced; where the log's offsets are not known, all reads count as new.
  cross join lateral (select least(r.records, t.records_in) as records) as fresh
  cross join lateral (select least(1, t.covered_seconds / nullif(r.consumed_seconds, 0)) as part) as counted
$$;
