-- What each group read of each topic in each hour, as its commits tell. Bytes are those of the time that JMX counted.
create or replace view public.topic_readers as
select
  r.hour,  -- The hour (UTC)
  r.cluster,  -- Kafka cluster
  r.group_id,  -- Group
  r.topic,  -- Topic
  r.records,  -- Records that it read; null: unknown on all partitions
  r.fresh_bytes,  -- Bytes of the hour's records
  r.backlog_bytes,  -- Bytes of older records
  r.bytes_in_per_second,  -- Bytes produced of the topic
  r.lag_seconds,  -- Age of the oldest unread record, worst partition
  r.lag_bytes,  -- Bytes that it is behind
  r.rewinds,  -- How often it jumped back
  r.commits_per_partition,  -- Commits in the hour, mean of the partitions; null: history couldn't be read
  r.seconds_between_commits,  -- Mean of the partitions
  r.is_unknown,  -- Whether it isn't known what it read of a partition
  r.is_silent  -- Whether it has members and committed nothing
from (select distinct hour from metrics.topic_hourly) as h
cross join lateral public.topic_readers_of(h.hour) as r;
