/*
title: Which topics have no copy
subject: topics
description: >
  Plain topics without a mirror in another cluster and without a backup group, by naming conventions.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  topic: Topic
  owner: Owner; null if unassigned
  has_copy: false, or null if only one cluster is monitored
  hour: Start of the hour (UTC)
*/
select
  c.cluster,
  c.topic,
  r.owner,
  c.has_copy,
  c.hour
from public.topic_copies as c
left join public.resource as r on public.resource_key('topic', c.cluster, c.topic) = r.key
where c.has_copy is not true and (:cluster is null or c.cluster = :cluster)
order by c.cluster asc, c.topic asc
