-- Topics that received records in the newest gathered hour and that no group has commits on: written, but apparently not read.
create or replace view public.topics_unread as
select
  t.cluster,  -- Kafka cluster
  t.topic,  -- Topic
  t.kind,  -- plain, changelog or repartition
  t.partitions,  -- Partitions
  sum(p.log_end_offset - p.log_end_offset_first) as records_in,  -- Records appended in the hour
  max(j.log_bytes) as log_bytes,  -- Size of its logs, all replicas; null: not reported over JMX
  max(j.bytes_out) as bytes_out,  -- Bytes that consumers fetched nevertheless; null: not reported over JMX
  t.retention_ms,  -- retention.ms
  t.hour  -- Start of the hour (UTC)
from inventory.topic_hourly as t
inner join metrics.partition_hourly as p on t.hour = p.hour and t.cluster = p.cluster and t.topic = p.topic
left join metrics.topic_hourly as j on t.hour = j.hour and t.cluster = j.cluster and t.topic = j.topic
where
  t.hour = (select max(hour) from inventory.topic_hourly) and t.kind in ('plain', 'changelog', 'repartition')
  and not exists (
    select 1 from metrics.consumer_partition_hourly as c
    where c.hour = t.hour and c.cluster = t.cluster and c.topic = t.topic
  )
group by t.cluster, t.topic, t.kind, t.partitions, t.retention_ms, t.hour
having sum(p.log_end_offset - p.log_end_offset_first) > 0
order by log_bytes desc nulls last, t.topic asc;
