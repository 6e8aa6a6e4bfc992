/*
title: Topics have more partitions than their traffic needs
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.topic_hourly, inventory.topic_hourly, metrics.consumer_partition_hourly]
params:
  partitions_at_least: {default: 12, unit: partitions, why: "fewer cost a broker little"}
  bytes_per_partition: {default: 1024, unit: bytes/s, why: "one partition carries a thousand times that with ease"}
  days: {default: 14, unit: d, why: "two weekly rhythms; younger topics may still get their traffic"}
  set_topics: {default: 20, unit: topics, why: "a group that reads more topics of one size is a mirror, which joins nothing"}
  most_shown: {default: 20, unit: topics, why: "the view topics_low_rate has them all"}
key_metrics: [freed_partitions, freed_replicas, freed_open_files, low_topics, new_topics]
verdicts:
  wasted:
    status: firing
    severity: info
    message: "{{ low_topics | counted('topic') }} {{ 'gets' if low_topics == 1 else 'get' }} less than {{ bytes_per_partition.value }} bytes/s a partition: {{ freed_partitions | counted('partition') }} ({{ freed_replicas | counted('replica') }}) could go{% if new_topics %}; {{ new_topics }} of these topics came within a week{% endif %}."
    actions:
      - "Partitions can't be taken away: make a topic anew with fewer, move its producers, then its consumers, and delete the old one. Ask the owners of those that are new first: the rule by which they were made is cheaper to mend."
    commands: ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ first_topic }}"]
  fitting: {status: ok, message: "No topic that is at least {{ days.value }} days old has far more partitions than its traffic needs."}
  unknown: {status: unknown, message: "The traffic of {{ unknown_topics }} of {{ judged_topics }} topics with at least {{ partitions_at_least.value }} partitions is known of less than half of {{ days.value }} days."}
  young: {status: unknown, message: "Its topics are known of less than {{ days.value }} days."}
causes:
  overpartitioning_adds_partitions: [wasted]
open_after_hours: 24
clear_after_hours: 24
description: |
  Plain topics with at least partitions_at_least partitions whose bytes in per partition stay below bytes_per_partition
  in 95 % of the hours of `days`. They need as many partitions as keep each below that.
runbook: |
  1. The view topics_low_rate has all of them, with owner, rate and what they need.
  2. Where keys decide the partition, a topic with fewer partitions orders records otherwise: consumers with state must
     be drained first.
  3. Topics of one application with equal numbers of partitions shrink together, or not at all.
limitations: |
  A peak that comes once a year, and partitions that are there for the number of consumers, not for bytes. Whether a
  group joins the topics that it reads isn't known: equal numbers of partitions count as a join. Open files are those of
  one segment a replica.
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
    count(*) filter (where is_judged) as judged_topics,
    count(*) filter (where is_judged and not is_known) as unknown_topics,
    json_agg(
      json_build_object(
        'topic', topic, 'owner', owner, 'partitions', partitions, 'needed_partitions', needed_partitions,
        'p95_bytes_per_second', p95_bytes_per_second, 'came_within_a_week', is_new
      ) order by place
    ) filter (where place <= :most_shown) as worst_topics,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by place) filter (where place <= :most_shown) as affected
  from topic
  group by cluster
)

select
  case
    when not was_there then 'young'
    when low_topics > 0 then 'wasted'
    when unknown_topics > 0 then 'unknown'
    else 'fitting'
  end as reason,
  cluster,
  freed_partitions,
  freed_replicas,
  freed_open_files,
  low_topics,
  new_topics,
  judged_topics,
  unknown_topics,
  worst_topics -> 0 ->> 'topic' as first_topic,
  worst_topics,
  affected
from summary
