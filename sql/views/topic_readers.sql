-- Reads of each group from each topic in each hour, by its commits. Bytes cover the time span of the JMX counters.
create or replace view public.topic_readers as
select
  r.hour,  -- Start of the hour (UTC)
  r.cluster,  -- Kafka cluster
  r.group_id,  -- Group
  r.topic,  -- Topic
  r.records,  -- Records consumed; null: unknown on all partitions
  r.fresh_bytes,  -- Bytes of records of the same hour
  r.backlog_bytes,  -- Bytes of older records
  r.bytes_in_per_second,  -- Bytes produced to the topic per second
  r.lag_seconds,  -- Age of the oldest unread record, maximum of the partitions
  r.lag_bytes,  -- Lag in bytes
  r.rewinds,  -- Rewinds of its committed offsets
  r.commits_per_partition,  -- Commits in the hour, mean of the partitions; null: __consumer_offsets could not be read
  r.seconds_between_commits,  -- Seconds between commits, mean of the partitions
  r.is_unknown,  -- Whether its reads of a partition are not known
  r.is_silent  -- Whether it has members and did not commit
from (select distinct hour from metrics.topic_hourly) as h
cross join lateral public.topic_readers_of(h.hour) as r;
