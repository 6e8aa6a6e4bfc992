/*
title: What the storage of an application costs
subject: cost
description: >
  Monthly list price of the EBS volumes and of the topic logs of an application, and its instances. Topic logs
  are on the volumes of brokers.
params:
  application: {type: text, description: Application; null lists all, default: null, example: kafka}
columns:
  application: Application (tag, or Kafka Streams application id); null if unassigned
  usd_per_month: Both prices together; null if neither is known
  volumes: EBS volumes
  volumes_usd_per_month: List price of these volumes; null if none is known
  volumes_without_price: Volumes without a known price, not included
  topics: Internal topics of the application
  topic_log_bytes: Size of their logs, all replicas
  topic_logs_usd_per_month: Share of the price of the brokers' volumes, by size; already part of the cluster's volumes
  instances: EC2 instances
*/
select
  c.application,
  coalesce(c.volumes_usd_per_month + c.topic_logs_usd_per_month, c.volumes_usd_per_month, c.topic_logs_usd_per_month)
    as usd_per_month,
  c.volumes,
  c.volumes_usd_per_month,
  c.volumes_without_price,
  c.topics,
  c.topic_log_bytes,
  c.topic_logs_usd_per_month,
  c.instances
from public.application_costs as c
where :application is null or c.application = :application
order by usd_per_month desc nulls last, c.application asc
