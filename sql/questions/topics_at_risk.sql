/*
title: Which topics do not survive the loss of a broker
subject: topics
description: >
  Topics where the loss of one broker makes partitions unavailable or loses records: replication factor,
  min.insync.replicas, ISR, racks.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  topic: Topic
  owner: Owner; null if unassigned
  partitions: Partitions
  replication_factor: Smallest replication factor of its partitions
  min_insync_replicas: min.insync.replicas; null if not reported
  offline_partitions: Partitions without a leader
  under_replicated_partitions: Partitions with fewer in-sync replicas than replicas
  single_isr_partitions: Partitions with one in-sync replica at most
  one_rack_partitions: Partitions with all replicas in one rack; null if not known
  risk: Most severe risk of the topic
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- State of the partitions of each topic.
state as (
  select
    p.cluster,
    p.topic,
    count(*) filter (where p.leader is null) as offline_partitions,
    count(*) filter (where p.isr < p.replicas) as under_replicated_partitions,
    count(*) filter (where p.isr <= 1) as single_isr_partitions
  from newest as n
  inner join metrics.partition_hourly as p on n.hour = p.hour
  where :cluster is null or p.cluster = :cluster
  group by p.cluster, p.topic
),

-- Settings of each topic, and its risk. The most severe one is first.
topic as (
  select
    t.*,
    s.offline_partitions,
    s.under_replicated_partitions,
    s.single_isr_partitions,
    (t.configs -> 'min.insync.replicas' ->> 'value')::integer as min_insync_replicas
  from newest as n
  inner join inventory.topic_hourly as t on n.hour = t.hour
  left join state as s using (cluster, topic)
  where :cluster is null or t.cluster = :cluster
),

-- The most severe risk is first.
rated as (
  select
    *,
    case
      when offline_partitions > 0 then 'partitions are offline'
      when replication_factor = 1 then 'replication factor is 1'
      when single_isr_partitions > 0 then 'partitions have one in-sync replica'
      when under_replicated_partitions > 0 then 'partitions are under-replicated'
      when min_insync_replicas >= replication_factor then 'writes fail when one broker is down'
      when min_insync_replicas = 1 then 'acknowledged records can be on one broker only'
      when one_rack_partitions > 0 then 'all replicas of partitions are in one rack'
    end as risk
  from topic
)

select
  t.cluster,
  t.topic,
  r.owner,
  t.partitions,
  t.replication_factor,
  t.min_insync_replicas,
  t.offline_partitions,
  t.under_replicated_partitions,
  t.single_isr_partitions,
  t.one_rack_partitions,
  t.risk
from rated as t
left join public.resource as r on public.resource_key('topic', t.cluster, t.topic) = r.key
where t.risk is not null
order by t.offline_partitions desc nulls last, t.single_isr_partitions desc nulls last, t.cluster asc, t.topic asc
