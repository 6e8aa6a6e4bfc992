-- Partitions of a cluster for a reassignment plan: leader, replicas, size, and bytes in and out per second in the hour (the
-- topic's bytes, shared by records). Partitions that are being reassigned or have missing replicas are included: they must
-- not be moved.
with rate as (
  select
    topic,
    bytes_in / nullif(covered_seconds, 0) as bytes_in,
    bytes_out / nullif(covered_seconds, 0) as bytes_out
  from metrics.topic_hourly
  where hour = :hour and cluster = :cluster
),

replica as (
  select
    topic,
    partition,
    array_agg(broker_id order by broker_id asc) as replica_ids,
    max(size_bytes) as size_bytes
  from public.replicas
  where hour = :hour and cluster = :cluster and not is_future
  group by topic, partition
),

partition as (
  select
    topic,
    partition,
    leader,
    isr = replicas as is_whole,
    replicas,
    greatest(log_end_offset_last - log_end_offset_first, 0) as records,
    count(*) over of_topic as siblings,
    sum(greatest(log_end_offset_last - log_end_offset_first, 0)) over of_topic as topic_records
  from metrics.partition_hourly
  where hour = :hour and cluster = :cluster
  window of_topic as (partition by topic)
)

select
  p.topic,
  p.partition,
  p.leader,
  r.replica_ids,
  cast(r.size_bytes as double precision) as size_bytes,
  coalesce(t.bytes_in * share.ratio, 0) as bytes_in_per_second,
  coalesce(t.bytes_out * share.ratio, 0) as bytes_out_per_second,
  p.leader is not null and p.is_whole and cardinality(r.replica_ids) = p.replicas as may_move
from partition as p
inner join replica as r using (topic, partition)
left join rate as t using (topic)
cross join lateral (
  select coalesce(cast(p.records / nullif(p.topic_records, 0) as double precision), 1.0 / p.siblings) as ratio
) as share
order by p.topic asc, p.partition asc
