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
select
  w.cluster,
  w.application,
  w.client_id,
  w.owner,
  w.records_per_second,
  w.bytes_per_second,
  w.record_errors,
  w.basis,
  w.hour
from public.topic_writers as w
where w.topic = :topic and (:cluster is null or w.cluster = :cluster)
order by w.bytes_per_second desc nulls last, w.cluster asc, w.application asc, w.client_id asc
