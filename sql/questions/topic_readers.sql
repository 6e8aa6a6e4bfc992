/*
title: Who reads a topic
subject: topics
description: >
  Consumer groups with commits on the topic, with what they consumed, their lag, and their owner.
params:
  topic: {type: text, description: Name of the topic, example: orders}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
  hours: {type: hours, description: Look-back that ends with the newest gathered hour, default: 24}
columns:
  cluster: Kafka cluster
  group_id: Consumer group
  application: Application of the group; null if not known
  owner: Owner of the group; null if unassigned
  records_consumed: Records consumed in these hours
  lag_records: Lag in the newest hour, sum of the partitions
  lag_seconds: Age of the oldest unread record in the newest hour, maximum of the partitions
  partitions: Partitions with commits
  last_hour: Newest hour with commits or lag (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- One row for each group and partition: totals, and the newest values.
reading as (
  select
    p.cluster,
    p.group_id,
    p.partition,
    sum(p.records_consumed) as records_consumed,
    (array_agg(p.lag_records order by p.hour desc))[1] as lag_records,
    (array_agg(p.lag_seconds order by p.hour desc))[1] as lag_seconds,
    max(p.hour) as last_hour
  from newest as n
  inner join metrics.consumer_partition_hourly as p on n.hour - :hours < p.hour and n.hour >= p.hour
  where p.topic = :topic and (:cluster is null or p.cluster = :cluster)
  group by p.cluster, p.group_id, p.partition
)

select
  r.cluster,
  r.group_id,
  g.application,
  g.owner,
  sum(r.records_consumed) as records_consumed,
  sum(r.lag_records) as lag_records,
  max(r.lag_seconds) as lag_seconds,
  count(*) as partitions,
  max(r.last_hour) as last_hour
from reading as r
left join public.resource as g on public.resource_key('group', r.cluster, r.group_id) = g.key
group by r.cluster, r.group_id, g.application, g.owner
order by records_consumed desc nulls last, r.cluster asc, r.group_id asc
