/*
title: A topic in use lies on a parked broker
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.replica_sample, inventory.topic_hourly]
params:
  parked_brokers: {default: "", unit: regex, why: "cluster/broker id of brokers that keep what nobody uses; empty: there are none"}
  most_shown: {default: 20, unit: topics, why: "more in a ticket are read by nobody"}
key_metrics: [astray_topics, astray_partitions, astray_bytes, parked_broker_ids]
verdicts:
  astray:
    status: firing
    severity: warning
    message: "{{ astray_topics | counted('topic') }} that {{ 'isn' if astray_topics == 1 else 'aren' }}'t parked {{ 'has' if astray_topics == 1 else 'have' }} replicas on parked brokers ({{ parked_broker_ids }}): {{ astray_partitions | counted('replica') }}, {{ astray_bytes }}."
    actions:
      - "Move them to brokers in use before the parked ones are stopped: with them these replicas would be gone."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ first_topic }}"
      - "streamwarden plan replicas {{ cluster }}"
  apart: {status: ok, message: "On its parked brokers ({{ parked_broker_ids }}) lie parked topics only."}
  none_parked: {status: ok, message: "No parked broker holds a replica."}
  unknown: {status: unknown, message: "The replicas of {{ unseen_topics }} of {{ topics }} topics aren't known: their brokers did not tell where they lie."}
open_after_hours: 2
clear_after_hours: 2
description: |
  A topic is parked if every replica of it lies on brokers that match parked_brokers. Any other topic with a replica
  there is astray.
runbook: |
  1. A new topic may land there, since Kafka places replicas on all brokers: move it away.
  2. A reassignment that parks a topic and isn't complete yet looks the same: wait for its end.
  3. Kafka's own topics (__consumer_offsets) count too: groups lose their offsets with them.
limitations: |
  It knows where replicas lie by what brokers tell of their log directories (DescribeLogDirs): a broker that is down, or
  refuses to tell, isn't seen. Which brokers are parked is told by the config only.
*/
with replica as (
  select
    cluster,
    topic,
    broker_id,
    sum(replicas) as replicas,
    sum(size_bytes) as size_bytes,
    :parked_brokers <> '' and cluster || '/' || broker_id ~ :parked_brokers as is_on_parked
  from metrics.replica_sample
  where hour = :hour
  group by cluster, topic, broker_id
),

placed as (
  select
    cluster,
    topic,
    bool_or(is_on_parked) and not bool_and(is_on_parked) as is_astray,
    sum(replicas) filter (where is_on_parked) as parked_replicas,
    sum(size_bytes) filter (where is_on_parked) as parked_bytes
  from replica
  group by cluster, topic
),

parked_broker as (
  select
    cluster,
    string_agg(distinct broker_id::text, ', ' order by broker_id::text) as ids
  from replica
  where is_on_parked
  group by cluster
),

weighed as (
  select
    t.cluster,
    t.topic,
    p.topic is null as is_unseen,
    p.is_astray,
    p.parked_replicas,
    p.parked_bytes,
    row_number() over (
      partition by t.cluster, p.is_astray order by p.parked_bytes desc nulls last, t.topic asc
    ) as place
  from inventory.topic_hourly as t
  left join placed as p using (cluster, topic)
  where t.hour = :hour
),

summary as (
  select
    cluster,
    count(*) as topics,
    count(*) filter (where is_unseen) as unseen_topics,
    count(*) filter (where is_astray) as astray_topics,
    sum(parked_replicas) filter (where is_astray) as astray_partitions,
    sum(parked_bytes) filter (where is_astray) as astray_bytes,
    (array_agg(topic order by place) filter (where is_astray))[1] as first_topic,
    json_agg(json_build_object('topic', topic, 'replicas', parked_replicas, 'bytes', parked_bytes) order by place)
      filter (where is_astray and place <= :most_shown) as worst_topics,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by place)
      filter (where is_astray and place <= :most_shown) as affected
  from weighed
  group by cluster
)

select
  case
    when s.astray_topics > 0 then 'astray'
    when :parked_brokers = '' then 'none_parked'
    when s.unseen_topics > 0 then 'unknown'
    when b.ids is null then 'none_parked'
    else 'apart'
  end as reason,
  cluster,
  s.astray_topics,
  s.astray_partitions,
  s.astray_bytes,
  b.ids as parked_broker_ids,
  s.first_topic,
  s.unseen_topics,
  s.topics,
  s.worst_topics,
  s.affected
from summary as s
left join parked_broker as b using (cluster)
