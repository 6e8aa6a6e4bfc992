/*
title: How the lag of a group developed
subject: consumers
description: >
  Lag of a consumer group hour by hour, with its worst partition and records consumed.
params:
  group_id: {type: text, description: Consumer group, example: billing}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
  hours: {type: hours, description: Look-back that ends with the newest gathered hour, default: 48}
columns:
  hour: Start of the hour (UTC)
  cluster: Kafka cluster
  lag_records: Sum over the partitions with known lag
  lag_seconds: Age of the oldest unread record, maximum of the partitions
  worst_topic: Topic of the partition with the largest lag in time
  worst_partition: That partition
  records_consumed: Records consumed in the hour
  partitions_unknown: Partitions without a known lag
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  p.hour,
  p.cluster,
  sum(p.lag_records) as lag_records,
  max(p.lag_seconds) as lag_seconds,
  (array_agg(p.topic order by p.lag_seconds desc nulls last, p.topic asc, p.partition asc))[1] as worst_topic,
  (array_agg(p.partition order by p.lag_seconds desc nulls last, p.topic asc, p.partition asc))[1] as worst_partition,
  sum(p.records_consumed) as records_consumed,
  count(*) filter (where p.lag_records is null) as partitions_unknown
from newest as n
inner join metrics.consumer_partition_hourly as p on n.hour - :hours < p.hour and n.hour >= p.hour
where p.group_id = :group_id and (:cluster is null or p.cluster = :cluster)
group by p.hour, p.cluster
order by p.hour desc, p.cluster asc
