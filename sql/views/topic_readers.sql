-- What each group read of each topic in each hour, as its commits tell. Bytes are those of the time that JMX counted.
create or replace view public.topic_readers as
select
  r.hour,  -- The hour (UTC)
  r.cluster,  -- Kafka cluster
  r.group_id,  -- Group
  r.topic,  -- Topic
  r.records,  -- Records that it read; null: unknown on all partitions
  fresh.records * t.new_bytes_per_record * counted.part as fresh_bytes,  -- Bytes of the hour's records
  greatest(r.records - fresh.records, 0) * t.old_bytes_per_record * counted.part as backlog_bytes,  -- Bytes of older records
  t.bytes_in / nullif(t.covered_seconds, 0) as bytes_in_per_second,  -- Bytes produced of the topic
  r.lag_seconds,  -- Age of the oldest unread record, worst partition
  r.lag_records * t.old_bytes_per_record as lag_bytes,  -- Bytes that it is behind
  r.rewinds,  -- How often it jumped back
  r.commits_per_partition,  -- Commits in the hour, mean of the partitions; null: history couldn't be read
  r.consumed_seconds / nullif(r.commits_per_partition, 0) as seconds_between_commits,  -- Mean of the partitions
  r.is_unknown,  -- Whether it isn't known what it read of a partition
  r.is_silent  -- Whether it has members and committed nothing
from (
  select
    p.hour,
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
    on before.hour = p.hour - interval '1 hour'
    and p.cluster = before.cluster and p.group_id = before.group_id
    and p.topic = before.topic and p.partition = before.partition
  -- A group that commits once an hour or less has no step within the hour: then the offset of the hour before counts.
  cross join lateral (
    select greatest(p.records_consumed, p.committed_offset - before.committed_offset) as records
  ) as consumed
  group by p.hour, p.cluster, p.group_id, p.topic
) as r
inner join public.topic_bytes as t using (hour, cluster, topic)
-- One of which nothing is known is taken to read what comes in, and where the log's ends aren't known all is new.
cross join lateral (select least(r.records, t.records_in) as records) as fresh
cross join lateral (select least(1, t.covered_seconds / nullif(r.consumed_seconds, 0)) as part) as counted;
