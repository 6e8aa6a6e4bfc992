/*
title: Where data has been unread for a week
subject: consumers
description: >
  Consumer groups with an oldest unread record older than the given age, by topic.
params:
  age: {type: days, description: Smallest age of the oldest unread record, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  group_id: Consumer group
  topic: Topic
  owner: Owner of the group; null if unassigned
  oldest_unread_days: Age of the oldest unread record in days, maximum of the partitions
  lag_records: Unread records, sum of these partitions
  partitions: Partitions with unread records of this age
  retention_days: retention.ms of the topic in days; null if not reported or unlimited
  hour: Start of the hour (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  p.cluster,
  p.group_id,
  p.topic,
  g.owner,
  max(p.lag_seconds) / 86400 as oldest_unread_days,
  sum(p.lag_records) as lag_records,
  count(*) as partitions,
  max(t.retention_ms) filter (where t.retention_ms > 0) / 86400000.0 as retention_days,
  p.hour
from newest as n
inner join metrics.consumer_partition_hourly as p on n.hour = p.hour
left join inventory.topic_hourly as t on p.hour = t.hour and p.cluster = t.cluster and p.topic = t.topic
left join public.resource as g on public.resource_key('group', p.cluster, p.group_id) = g.key
where p.lag_seconds >= extract(epoch from :age) and (:cluster is null or p.cluster = :cluster)
group by p.hour, p.cluster, p.group_id, p.topic, g.owner
order by oldest_unread_days desc, p.cluster asc, p.group_id asc, p.topic asc
