/*
title: Active topic on a parked broker
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.replica_sample, inventory.topic_hourly]
params:
  parked_brokers:
    default: ""
    unit: regex
    why: "matches cluster/broker id of brokers that keep unused topics only; empty: there are none"
  most_shown: {default: 20, unit: topics, why: "a longer list in a ticket is not read"}
key_metrics: [misplaced_topics, misplaced_replicas, misplaced_bytes, parked_broker_ids]
verdicts:
  misplaced:
    status: firing
    severity: warning
    message: >
      Cluster {{ name }} has {{ misplaced_topics | counted("active topic") }} on parked brokers ({{ parked_broker_ids }}):
      {{ misplaced_replicas | counted("replica") }}, {{ misplaced_bytes }}.
    details:
      - "Largest on parked brokers: {{ worst_topics | listed('topic', 3) }}."
    impact: "These replicas are lost when the parked brokers are stopped; the topics stay under-replicated or offline."
    actions:
      - "Keep the parked brokers running until the replicas are moved."
      - "Move the replicas to active brokers: `streamwarden plan replicas` prints the reassignment."
      - "Prevent it: create topics with an explicit replica assignment, as Kafka places new replicas on all brokers."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ first_topic }}"
      - "streamwarden plan replicas {{ cluster }}"
  only_parked: {status: ok, message: "Parked brokers ({{ parked_broker_ids }}) of cluster {{ name }} hold only parked topics."}
  none_parked: {status: ok, message: "Cluster {{ name }} has no replicas on parked brokers."}
  not_reported:
    status: unknown
    message: >
      Not evaluated: brokers of cluster {{ name }} did not report the replicas of {{ topics_without_replicas }} of
      {{ topics | counted("topic") }}.
open_after_hours: 2
clear_after_hours: 2
description: |
  A topic is parked if every replica of it is on a broker that matches `parked_brokers`. Any other topic with a replica on
  such a broker is misplaced.
runbook: |
  ## Meaning
  A topic that is not parked has replicas on brokers that are meant to hold unused topics only.
  ## Impact
  Parked brokers may be stopped at any time. The replicas on them are then lost.
  ## Diagnosis
  1. Is the topic new? Kafka places replicas of new topics on all brokers.
  2. Is a reassignment that parks the topic still in progress? Wait for its end.
  3. Internal topics count too: with `__consumer_offsets`, groups lose their committed offsets.
  ## Mitigation
  1. Move the replicas to active brokers with the printed reassignment plan.
  2. Stop the parked brokers only after this finding is resolved.
limitations: |
  Replica placement comes from the log directories that brokers report (DescribeLogDirs): a broker that is down or refuses
  the request is not covered. Parked brokers are known from the configuration only.
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

placement as (
  select
    cluster,
    topic,
    bool_or(is_on_parked) and not bool_and(is_on_parked) as is_misplaced,
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

ranked_topic as (
  select
    t.cluster,
    t.topic,
    p.topic is null as has_no_replicas,
    p.is_misplaced,
    p.parked_replicas,
    p.parked_bytes,
    row_number() over (
      partition by t.cluster, p.is_misplaced order by p.parked_bytes desc nulls last, t.topic asc
    ) as rank
  from inventory.topic_hourly as t
  left join placement as p using (cluster, topic)
  where t.hour = :hour
),

summary as (
  select
    cluster,
    count(*) as topics,
    count(*) filter (where has_no_replicas) as topics_without_replicas,
    count(*) filter (where is_misplaced) as misplaced_topics,
    sum(parked_replicas) filter (where is_misplaced) as misplaced_replicas,
    sum(parked_bytes) filter (where is_misplaced) as misplaced_bytes,
    (array_agg(topic order by rank) filter (where is_misplaced))[1] as first_topic,
    json_agg(json_build_object('topic', topic, 'replicas', parked_replicas, 'bytes', parked_bytes) order by rank)
      filter (where is_misplaced and rank <= :most_shown) as worst_topics,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by rank)
      filter (where is_misplaced and rank <= :most_shown) as affected
  from ranked_topic
  group by cluster
)

select
  case
    when s.misplaced_topics > 0 then 'misplaced'
    when :parked_brokers = '' then 'none_parked'
    when s.topics_without_replicas > 0 then 'not_reported'
    when b.ids is null then 'none_parked'
    else 'only_parked'
  end as reason,
  cluster,
  s.misplaced_topics,
  s.misplaced_replicas,
  s.misplaced_bytes,
  b.ids as parked_broker_ids,
  s.first_topic,
  s.topics_without_replicas,
  s.topics,
  s.worst_topics,
  s.affected
from summary as s
left join parked_broker as b using (cluster)
