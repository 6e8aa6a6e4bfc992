/*
title: Which topics use most disk space
subject: topics
description: >
  Topics by the size of their logs, with growth over the look-back and retention.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  topic: Topic
  owner: Owner; null if unassigned
  log_bytes: Size of the logs in the newest hour, all replicas
  log_bytes_before: Size in the first known hour of the look-back
  before_hour: That hour (UTC)
  partitions: Partitions
  replication_factor: Replication factor
  retention_days: retention.ms in days; null if not reported or unlimited
  cleanup_policy: cleanup.policy
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Size at both ends of the look-back.
size as (
  select
    t.cluster,
    t.topic,
    (array_agg(t.log_bytes order by t.hour desc))[1] as log_bytes,
    (array_agg(t.log_bytes order by t.hour asc))[1] as log_bytes_before,
    min(t.hour) as before_hour
  from newest as n
  inner join metrics.topic_hourly as t on n.hour - :days < t.hour and n.hour >= t.hour
  where t.log_bytes is not null and (:cluster is null or t.cluster = :cluster)
  group by t.cluster, t.topic
)

select
  s.cluster,
  s.topic,
  r.owner,
  s.log_bytes,
  s.log_bytes_before,
  s.before_hour,
  i.partitions,
  i.replication_factor,
  case when i.retention_ms > 0 then i.retention_ms / 86400000.0 end as retention_days,
  i.cleanup_policy
from size as s
left join inventory.topic_hourly as i
  on i.hour = (select hour from newest) and s.cluster = i.cluster and s.topic = i.topic
left join public.resource as r on public.resource_key('topic', s.cluster, s.topic) = r.key
order by s.log_bytes desc, s.cluster asc, s.topic asc
