/*
title: Topics over-partitioned
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.topic_hourly, inventory.topic_hourly, metrics.consumer_partition_hourly]
params:
  partitions_at_least: {default: 12, unit: partitions, why: "fewer partitions cost a broker little"}
  bytes_per_partition: {default: 1024, unit: bytes/s, why: "one partition easily carries a thousand times as much"}
  days: {default: 14, unit: d, why: "two weekly cycles; younger topics may still get their traffic"}
  set_topics:
    default: 20
    unit: topics
    why: "a group that reads more topics with equal partition counts is a mirror, which joins nothing"
  most_shown: {default: 20, unit: topics, why: "the view topics_low_rate lists all of them"}
key_metrics: [freed_partitions, freed_replicas, freed_open_files, low_topics, new_topics]
verdicts:
  overpartitioned:
    status: firing
    severity: info
    message: >-
      {{ low_topics | counted("topic") }} of cluster {{ cluster }} {{ low_topics | plural("receives", "receive") }} less
      than {{ bytes_per_partition.value }} B/s per partition; {{ freed_partitions | counted("partition") }}
      ({{ freed_replicas | counted("replica") }}) are not needed.
    details:
      - "The topic with the most unneeded replicas is {{ first_topic }}."
      - >-
        {% if new_topics %}{{ new_topics | counted("topic") }} of these
        {{ new_topics | plural("was", "were") }} created within the last week.{% endif %}
    impact: "Each partition costs memory and open files, and lengthens controller failovers and broker restarts."
    actions:
      - >-
        {% if new_topics %}Ask the owners of the new topics first: a lower default partition count is the cheapest
        fix.{% endif %}
      - >-
        Recreate {{ first_topic }} with fewer partitions: move its producers, then its consumers, then delete the old
        topic.
      - "Prevent it: set num.partitions and the defaults of the topic automation to what the traffic needs."
    commands: ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ first_topic }}"]
  appropriate:
    status: ok
    message: >-
      No topic of cluster {{ cluster }} that is at least {{ days }} old has far more partitions than its traffic needs.
  not_reported:
    status: unknown
    message: >-
      Not evaluated: the traffic of {{ unknown_topics }} of {{ evaluated_topics }} topics with at least
      {{ partitions_at_least.value }} partitions was reported for less than half of {{ days }}.
  insufficient_history:
    status: unknown
    message: "Not evaluated: the topics of cluster {{ cluster }} have been collected for less than {{ days }}."
causes:
  overpartitioning_adds_partitions: [overpartitioned]
open_after_hours: 24
clear_after_hours: 24
description: |
  Evaluates plain topics with at least partitions_at_least partitions. Fires when the incoming bytes per partition stay
  below bytes_per_partition in 95 % of the hours of `days`. The needed number of partitions keeps the 95th percentile
  below bytes_per_partition for each partition.
runbook: |
  ## Meaning
  These topics have many more partitions than their traffic needs.
  ## Impact
  Partitions cost memory and open files, and lengthen controller failovers, restarts, and rebalances.
  ## Diagnosis
  1. List all such topics with the view topics_low_rate: owner, rate, and needed partitions.
  2. Check whether consumers join the topic with others: co-partitioned topics must keep equal counts.
  ## Mitigation
  1. Kafka cannot remove partitions: create a new topic, and migrate producers and consumers.
  2. Fewer partitions change the order of records by key: let stateful consumers finish the old topic first.
  3. Shrink co-partitioned topics together or not at all.
limitations: |
  Peaks that occur once a year are missed, and so are partitions that exist for consumer parallelism, not for bytes.
  Equal partition counts within a group's topics count as a join, even if the group does not join them. Open files are
  counted for one segment per replica.
*/
with topic as (
  select
    *,
    case
      when freed_partitions is not null
        then row_number() over (partition by cluster order by freed_replicas desc nulls last, topic asc)
    end as place
  from public.topics_by_rate(:hour, :days, :partitions_at_least, :bytes_per_partition, :set_topics)
),

summary as (
  select
    cluster,
    bool_or(cluster_was_there) as was_there,
    count(place) as low_topics,
    count(place) filter (where is_new) as new_topics,
    sum(freed_partitions) as freed_partitions,
    sum(freed_replicas) as freed_replicas,
    sum(freed_open_files) as freed_open_files,
    count(*) filter (where is_evaluated) as evaluated_topics,
    count(*) filter (where is_evaluated and not is_known) as unknown_topics,
    json_agg(
      json_build_object(
        'topic', topic, 'owner', owner, 'partitions', partitions, 'needed_partitions', needed_partitions,
        'p95_bytes_per_second', p95_bytes_per_second, 'is_new', is_new
      ) order by place
    ) filter (where place <= :most_shown) as worst_topics,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by place) filter (where place <= :most_shown) as affected
  from topic
  group by cluster
)

select
  case
    when not was_there then 'insufficient_history'
    when low_topics > 0 then 'overpartitioned'
    when unknown_topics > 0 then 'not_reported'
    else 'appropriate'
  end as reason,
  cluster,
  freed_partitions,
  freed_replicas,
  freed_open_files,
  low_topics,
  new_topics,
  evaluated_topics,
  unknown_topics,
  worst_topics -> 0 ->> 'topic' as first_topic,
  worst_topics,
  affected
from summary
