/*
title: Who writes a topic
subject: topics
description: >
  Producers of the topic: by the metrics of JVM clients, and Kafka Streams applications that own it.
params:
  topic: {type: text, description: Name of the topic, example: orders}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  application: Application of the producer
  client_id: client.id of the producer; null if known by ownership of an internal topic
  owner: Owner of the application; null if unassigned
  records_per_second: Records sent per second
  bytes_per_second: Bytes sent per second
  record_errors: Records that failed in the hour
  basis: client metrics, or internal topic of the application
  hour: Start of the hour (UTC)
*/
-- Producers by their own metrics, and applications that own the topic.
with writer as (
  select
    c.cluster,
    c.apps as application,
    c.client_id,
    c.records_per_second,
    c.bytes_per_second,
    c.record_errors,
    'client metrics' as basis,
    c.hour
  from public.topic_clients as c
  where c.topic = :topic and c.kind = 'producer' and (:cluster is null or c.cluster = :cluster)
  union all
  select
    t.cluster,
    t.application_id,
    null,
    null,
    null,
    null,
    'internal topic',
    t.hour
  from inventory.topic_hourly as t
  where
    t.hour = (select max(hour) from inventory.topic_hourly) and t.topic = :topic
    and t.application_id is not null and (:cluster is null or t.cluster = :cluster)
)

select
  w.cluster,
  w.application,
  w.client_id,
  a.owner,
  w.records_per_second,
  w.bytes_per_second,
  w.record_errors,
  w.basis,
  w.hour
from writer as w
left join public.resource as a on public.resource_key('application', w.cluster, w.application) = a.key
order by w.bytes_per_second desc nulls last, w.cluster asc, w.application asc, w.client_id asc
