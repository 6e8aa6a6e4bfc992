/*
title: Which topics have more partitions than they need
subject: topics
description: >
  Topics whose traffic needs fewer partitions, by the newest evaluation of the detector topic_overpartitioned. Kafka cannot
  remove partitions: such a topic is recreated.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
  owner: {type: text, description: Owner of the topic, default: null}
columns:
  cluster: Kafka cluster
  topic: Topic
  owner: Owner; null if unassigned
  partitions: Partitions
  needed_partitions: Partitions that its traffic needs
  freed_replicas: Replicas that are not needed
  p95_bytes_per_second: Bytes in per second, 95th percentile of the evaluated hours
  is_new: Whether it was created within the week before the evaluated days
*/
select
  cluster,
  topic,
  owner,
  partitions,
  needed_partitions,
  freed_replicas,
  p95_bytes_per_second,
  is_new
from public.topics_low_rate
where (:cluster is null or cluster = :cluster) and (:owner is null or owner = :owner)
order by freed_replicas desc, cluster asc, topic asc
