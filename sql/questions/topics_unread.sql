/*
title: Which topics nobody reads
subject: topics
description: >
  Topics that received records in the newest hour and have no group with commits.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  topic: Topic
  kind: plain, changelog, or repartition
  partitions: Partitions
  records_in: Records appended in the hour
  log_bytes: Size of the logs, all replicas; null if not reported
  bytes_out: Bytes that consumers without commits fetched; null if not reported
  retention_days: retention.ms in days; null if not reported or unlimited
  hour: Start of the hour (UTC)
*/
select
  cluster,
  topic,
  kind,
  partitions,
  records_in,
  log_bytes,
  bytes_out,
  case when retention_ms > 0 then retention_ms / 86400000.0 end as retention_days,
  hour
from public.topics_unread
where :cluster is null or cluster = :cluster
order by log_bytes desc nulls last, records_in desc, cluster asc, topic asc
