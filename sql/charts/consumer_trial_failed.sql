/*
title: Lag of the new group
unit: seconds
kind: lines
below: {title: "Bytes in of its topics", unit: bytes/s}
why: "The lag of a group that keeps up stays near zero; a lag that follows the traffic shows no headroom."
*/
with topic as (
  select distinct topic
  from metrics.consumer_partition_hourly
  where hour = :hour and cluster = :cluster and group_id = :group_id
)

select
  hour as at,
  'lag, maximum of all partitions' as series,
  lag_seconds_max as value,
  false as is_below
from metrics.consumer_group_hourly
where cluster = :cluster and group_id = :group_id
and hour > :hour - interval '14 days' and hour <= :hour
union all
select
  j.hour as at,
  'bytes in' as series,
  sum(j.bytes_in / nullif(j.covered_seconds, 0)) as value,
  true as is_below
from topic
inner join metrics.topic_hourly as j on topic.topic = j.topic
where j.cluster = :cluster
and j.hour > :hour - interval '14 days' and j.hour <= :hour
group by j.hour
order by at, series
