-- Partitions of a consumer group in the newest gathered hour, by topic and partition, after a partition.
select
  p.topic,
  p.partition,
  p.committed_offset,
  p.committed_at,
  p.log_end_offset,
  p.lag_records,
  p.lag_seconds,
  p.status,
  p.is_assigned,
  p.client_id,
  p.host
from metrics.consumer_partition_hourly as p
where
  p.hour = cast(:hour as timestamptz)
  and p.cluster = cast(:cluster as text)
  and p.group_id = cast(:group_id as text)
  and (
    cast(:topic as text) is null
    or (p.topic, p.partition) > (cast(:topic as text), cast(:partition as integer))
  )
order by p.topic, p.partition
limit cast(:most as integer)
