-- Bytes in and out of each topic in each hour, in the time that JMX counters cover, and bytes per record.
create or replace view public.topic_bytes as
select
  t.hour,  -- Start of the hour (UTC)
  t.cluster,  -- Kafka cluster
  t.topic,  -- Topic
  known.kind,  -- plain, changelog, repartition, coordinator, checkpoint or internal
  i.application_id,  -- Kafka Streams application that it belongs to
  known.replication_factor,  -- Replicas of each partition; 1 where it is not known
  t.covered_seconds,  -- Time span of the JMX counters, in seconds
  t.bytes_in,  -- Bytes produced in that time
  t.bytes_out,  -- Bytes sent to consumers in that time
  l.records_in,  -- Records produced in the hour
  coalesce(came.bytes_per_record, stored.bytes_per_record) as new_bytes_per_record,  -- As produced; as stored where that is not known
  coalesce(stored.bytes_per_record, came.bytes_per_record) as old_bytes_per_record,  -- As stored; as produced where that is not known
  t.remote_fetch_bytes,  -- Bytes of bytes_out that came from tiered storage rather than from a disk; null: not exposed
  coalesce(i.configs #>> '{remote.storage.enable,value}' = 'true', false) as is_tiered  -- Whether it has tiered storage
from metrics.topic_hourly as t
left join inventory.topic_hourly as i using (hour, cluster, topic)
-- Topic by topic: PostgreSQL has no statistics of the newest hour yet, and would aggregate all partitions for each topic.
left join lateral (
  select
    sum(p.log_end_offset - p.log_start_offset) as records,
    sum(p.log_end_offset_last - p.log_end_offset_first) as records_in
  from metrics.partition_hourly as p
  where p.hour = t.hour and p.cluster = t.cluster and p.topic = t.topic
) as l on true
cross join lateral (
  select
    coalesce(i.kind, case when left(t.topic, 2) = '__' then 'internal' else 'plain' end) as kind,
    coalesce(i.replication_factor, 1) as replication_factor
) as known
cross join lateral (select t.bytes_in / nullif(t.messages_in, 0) as bytes_per_record) as came
-- Stored bytes include all replicas: without the replication factor they do not give bytes per record.
cross join lateral (select t.log_bytes / i.replication_factor / nullif(l.records, 0) as bytes_per_record) as stored;
