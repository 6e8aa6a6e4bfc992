/*
title: Records consumed by partition
unit: records
kind: lines
why: "Relative to the first hour shown: a flat line next to rising lines is blocked by one record."
*/
with worst as (
  select topic, partition
  from metrics.consumer_partition_hourly
  where hour = :hour and cluster = :cluster and group_id = :group_id and lag_records > 0
  order by still_seconds desc nulls last, lag_seconds desc nulls last, topic asc, partition asc
  limit 1
),

shown as (
  select
    c.hour,
    c.partition,
    c.committed_offset,
    c.partition = w.partition as is_stuck,
    dense_rank() over (order by c.partition = w.partition desc, c.partition) as number
  from metrics.consumer_partition_hourly as c
  inner join worst as w on c.topic = w.topic
  where c.cluster = :cluster and c.group_id = :group_id
  and c.hour > :hour - interval '24 hours' and c.hour <= :hour
)

select
  hour as at,
  'partition ' || partition || case when is_stuck then ', stuck' else '' end as series,
  (committed_offset - min(committed_offset) over (partition by partition))::double precision as value
from shown
where number <= 6
order by at, series
