/*
title: Retention longer than consumers need
resource_kind: cluster
owner_role: platform
maturity: stable
reads:
  - inventory.topic_hourly
  - metrics.consumer_group_hourly
  - metrics.consumer_partition_hourly
  - metrics.replica_sample
  - metrics.topic_hourly
params:
  min_bytes:
    default: 53687091200
    unit: bytes
    why: "50 GiB of one topic, all replicas: less does not justify an owner's time"
  kept_over_needed: {default: 5, unit: ratio, why: "less is headroom, not waste"}
  days: {default: 30, unit: d, why: "monthly consumers run at least once"}
  least_seconds:
    default: 86400
    unit: seconds
    why: "a consumer without lag also needs time for a repair before its records expire"
  keep: {default: "", unit: regex, why: "topics that must stay by law or for event sourcing; empty: none"}
  most_shown: {default: 20, unit: topics, why: "the view topics_retention lists all of them"}
key_metrics: [saved_bytes, saved_usd_per_month, overkept_topics, first_kept_seconds, first_needed_seconds]
verdicts:
  wasteful:
    status: firing
    severity: info
    message: >-
      {{ overkept_topics | counted("topic") }} of cluster {{ cluster }} {{ overkept_topics | plural("keeps", "keep") }}
      records at least {{ kept_over_needed.value }} times as long as consumers needed within {{ days }}.
    details:
      - "Topic {{ first_topic }} keeps records for {{ first_kept_seconds }}; its consumers need {{ first_needed_seconds }}."
      - "A shorter retention frees {{ saved_bytes }} on disk."
      - "{% if saved_usd_per_month %}This storage costs {{ saved_usd_per_month }}.{% endif %}"
    impact: "Brokers store {{ saved_bytes }} of records that no consumer group reads; disks fill up earlier."
    actions:
      - "Ask the owner of {{ first_topic }} what else the records are kept for."
      - "Lower retention.ms, with enough time for a repair after a long weekend. Repeat for each topic in the finding."
      - "Add topics that must keep their retention to `keep`."
    commands:
      - >-
        kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --entity-type topics
        --entity-name {{ first_topic }}
      - >-
        kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics
        --entity-name {{ first_topic }} --add-config retention.ms={{ first_advised_ms }}
  appropriate:
    status: ok
    message: >-
      No large topic of cluster {{ cluster }} keeps records {{ kept_over_needed.value }} times as long as its consumers
      need.
  not_reported:
    status: unknown
    message: >-
      Not evaluated: retention, traffic, or consumer lag of {{ unknown_topics }} of {{ large_topics }} large topics were
      not reported by cluster {{ cluster }}.
  insufficient_history:
    status: unknown
    message: "Not evaluated: the consumer groups of cluster {{ cluster }} have been collected for less than {{ days }}."
open_after_hours: 24
clear_after_hours: 24
description: |
  Evaluates plain topics with cleanup.policy=delete and retention by time. The needed time is the largest time lag of any
  group that read the topic within `days`, plus an hour, and at least least_seconds. Fires when retention.ms is
  kept_over_needed times that or more, and the records beyond it take at least min_bytes.
runbook: |
  ## Meaning
  The topics keep records much longer than any consumer group needed them.
  ## Impact
  The records take disk space on all replicas, and lengthen reassignments and broker recovery.
  ## Diagnosis
  1. List all such topics with the view topics_retention: owner, retention, needed time, bytes, and price.
  2. Ask the owners: new consumers may read from the start, and repairs may need a replay.
  ## Mitigation
  1. Lower retention.ms.
  2. Add topics that must keep their retention to `keep`.
limitations: |
  Consumers that run once a quarter, consumers without a group, and new groups that read all of a topic within an hour are
  missed. A group's lag is that of its worst topic, so other topics of such a group are not found. Topics without time
  retention (retention.ms -1), compacted topics, topics bound by size, and topics without consumers are not evaluated.
*/
with topic as (
  select
    *,
    case
      when saved_bytes is not null
        then row_number() over (partition by cluster order by saved_bytes desc nulls last, topic asc)
    end as place
  from public.topics_by_retention(:hour, :days, :least_seconds, :kept_over_needed, :min_bytes, :keep)
),

summary as (
  select
    cluster,
    bool_or(cluster_was_there) as was_there,
    count(place) as overkept_topics,
    sum(saved_bytes) as saved_bytes,
    sum(saved_usd_per_month) as saved_usd_per_month,
    count(*) filter (where is_evaluated) as large_topics,
    count(*) filter (where is_evaluated and not is_known) as unknown_topics,
    json_agg(
      json_build_object(
        'topic', topic, 'owner', owner, 'kept_seconds', kept_seconds, 'needed_seconds', needed_seconds,
        'saved_bytes', saved_bytes, 'saved_usd_per_month', saved_usd_per_month, 'groups', groups
      ) order by place
    ) filter (where place <= :most_shown) as worst_topics,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by place) filter (where place <= :most_shown) as affected
  from topic
  group by cluster
)

select
  case
    when not was_there then 'insufficient_history'
    when overkept_topics > 0 then 'wasteful'
    when unknown_topics > 0 then 'not_reported'
    else 'appropriate'
  end as reason,
  cluster,
  saved_bytes,
  saved_usd_per_month,
  overkept_topics,
  first.topic as first_topic,
  first.kept_seconds as first_kept_seconds,
  first.needed_seconds as first_needed_seconds,
  (ceil(first.needed_seconds * 2 / 3600) * 3600000)::bigint as first_advised_ms,
  large_topics,
  unknown_topics,
  worst_topics,
  affected
from summary
left join json_to_record(worst_topics -> 0)
  as first (topic text, kept_seconds double precision, needed_seconds double precision) on true
