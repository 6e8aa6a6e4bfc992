/*
title: Unused topics
resource_kind: cluster
owner_role: platform
maturity: stable
reads:
  - inventory.topic_hourly
  - metrics.partition_hourly
  - metrics.topic_hourly
  - metrics.consumer_partition_hourly
  - inventory.consumer_member_hourly
  - metrics.replica_sample
params:
  quiet_days: {default: 7, unit: d, why: "topics in use have traffic within a week, except for batch jobs"}
  gap_factor: {default: 2, unit: ratio, why: "of the longest pause in the history of the topic: batch jobs have a rhythm"}
  month_days:
    default: 35
    unit: d
    why: "a topic with less than a month of history before its last record may belong to a monthly job"
  history_days: {default: 92, unit: d, why: "the history in which pauses are searched"}
  spare:
    default: "(^|[._-])(dlq|dlt|dead|deadletters?|retry|retries|errors?|failed)([._-]|$)"
    unit: pattern
    why: "topics that are empty in normal operation: dead letters, retries"
  keep: {default: "", unit: pattern, why: "topics that their owners want to keep; empty: none"}
  most_shown: {default: 20, unit: topics, why: "longer lists in a ticket are not useful"}
key_metrics: [abandoned_topics, partition_count, open_files, log_bytes, usd_per_month]
verdicts:
  abandoned:
    status: firing
    severity: info
    message: >-
      {{ abandoned_topics | counted("topic") }} of cluster {{ cluster }} {{ abandoned_topics | plural("has", "have") }}
      had no producer and no consumer for at least {{ quiet_days }}.
    details:
      - >-
        Deleting {{ abandoned_topics | plural("it", "them") }} frees {{ partition_count | counted("partition") }}
        and {{ open_files | counted("open file") }}.
      - "{% if log_bytes %}Their logs take {{ log_bytes }} on disk.{% endif %}"
      - "{% if usd_per_month %}This storage costs {{ usd_per_month }}.{% endif %}"
    impact: "Unused partitions cost storage, memory, and open files, and lengthen broker restarts and controller failovers."
    actions:
      - "Ask the owners of {{ topics | listed('topic', 3) }} whether the topics are still needed."
      - "Add topics that must stay to `keep`."
      - "Delete the others (kafka-topics.sh --delete). Deleted records cannot be restored: back up first if in doubt."
    commands:
      - >-
        kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic
        {{ topics | map(attribute="topic") | join("|") | replace(".", "[.]") }}
  in_use: {status: ok, message: "No topic of cluster {{ cluster }} has been unused for long enough."}
  not_reported:
    status: unknown
    message: >-
      Not evaluated: offsets, commits, or bytes sent of {{ unknown_topics }} of {{ evaluated_topics }} topics were not
      reported by cluster {{ cluster }}.
  insufficient_history:
    status: unknown
    message: "Not evaluated: the topics of cluster {{ cluster }} have been collected for less than {{ quiet_days }}."
causes:
  overpartitioning_adds_partitions: [abandoned]
open_after_hours: 24
clear_after_hours: 1
description: |
  A topic is unused when it has no new offset, no bytes sent, no commit, and no group member that is assigned to it for
  the longest of: quiet_days, gap_factor times its longest pause, and month_days if it was collected for less than
  month_days before its last record. Any sign of use excludes it. Internal topics and topics with names that match
  `spare` or `keep` are left out.
runbook: |
  ## Meaning
  No client has produced to these topics or consumed from them for a week or longer.
  ## Impact
  They cost storage, memory, and open files, and each partition lengthens restarts and failovers.
  ## Diagnosis
  1. Does a rare batch job fill the topic, or does a law require it? Then add it to `keep`.
  2. Ask the owner; if the owner is unassigned, ask who created the topic.
  ## Mitigation
  1. Back up the records if in doubt.
  2. Delete the topic (`delete.topic.enable` must be true).
limitations: |
  Jobs that run less than twice in history_days are false positives. Consumers that assign partitions themselves and are
  idle are missed: without new records they receive no bytes. Offsets are compared once a day: a topic that is deleted and
  recreated with as many records appears unchanged.
*/
with idle as materialized (
  select
    r.cluster,
    r.name as topic,
    r.known_days,
    r.unknown_days,
    r.rest_days,
    greatest(
      :quiet_days, :gap_factor * r.longest_pause_days, case when r.observed_days < :month_days then :month_days end
    ) as needed_days
  from public.idle_topics(:hour, :quiet_days, :history_days, false) as r
  where r.name !~* :spare and (:keep = '' or r.name !~ :keep)
),

quiet as materialized (
  select
    r.cluster,
    r.topic,
    hours.needed as needed_hours,
    s.bytes_out,
    s.known_hours * 2 < hours.needed as is_unknown
  from idle as r
  cross join lateral (select cast(ceil(r.needed_days) * 24 as integer) as needed) as hours
  cross join lateral public.topic_sent(r.cluster, r.topic, :hour, hours.needed) as s
  where r.rest_days >= r.needed_days
),

committed as (
  select
    r.cluster,
    r.topic,
    bool_or(
      p.commits > 0 or p.client_id is not null
      or p.committed_at > :hour - make_interval(hours => r.needed_hours)
    ) as is_used,
    bool_or(p.commits is null) as is_unknown
  from quiet as r
  inner join metrics.consumer_partition_hourly as p using (cluster, topic)
  where p.hour = :hour
  group by r.cluster, r.topic
),

assigned as (
  select distinct
    m.cluster,
    a.topic
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_object_keys(m.assignment) as a (topic)
  where m.hour = :hour
),

held as (
  select
    cluster,
    topic,
    sum(size_bytes) as log_bytes
  from metrics.replica_sample
  where hour = :hour
  group by cluster, topic
),

evaluated as materialized (
  select
    r.cluster,
    r.topic,
    r.rest_days,
    t.partitions,
    t.partitions * t.replication_factor as replicas,
    h.log_bytes,
    coalesce(s.bytes_out > 0 or c.is_used or a.topic is not null, false) as is_used,
    s.topic is not null as is_quiet,
    r.known_days,
    coalesce(
      r.known_days is null or (s.topic is null and r.unknown_days > 0) or s.is_unknown or c.is_unknown, false
    ) as is_unknown
  from idle as r
  inner join inventory.topic_hourly as t using (cluster, topic)
  left join quiet as s using (cluster, topic)
  left join committed as c using (cluster, topic)
  left join assigned as a using (cluster, topic)
  left join held as h using (cluster, topic)
  where t.hour = :hour
),

unused as (
  select
    *,
    row_number() over (partition by cluster order by log_bytes desc nulls last, topic asc) as place
  from evaluated
  where is_quiet and not is_used and not is_unknown
),

abandoned as (
  select
    f.cluster,
    count(*) as topics,
    sum(f.partitions) as partitions,
    sum(f.replicas) as replicas,
    sum(f.log_bytes) as log_bytes,
    json_agg(
      json_build_object(
        'topic', f.topic, 'owner', t.owner, 'partitions', f.partitions, 'bytes', f.log_bytes, 'unused_days', f.rest_days
      ) order by f.place
    ) filter (where f.place <= :most_shown) as list,
    jsonb_agg(public.resource_key('topic', f.cluster, f.topic) order by f.place) filter (where f.place <= :most_shown)
      as affected
  from unused as f
  left join public.resources(:hour) as t
    on t.kind = 'topic' and t.key = public.resource_key('topic', f.cluster, f.topic)
  group by f.cluster
),

summary as (
  select
    cluster,
    count(*) as topics,
    count(*) filter (where is_unknown and not is_used) as unknown_topics,
    max(known_days) as known_days
  from evaluated
  group by cluster
)

select
  case
    when a.topics is not null then 'abandoned'
    when k.known_days < :quiet_days then 'insufficient_history'
    when k.unknown_topics > 0 then 'not_reported'
    else 'in_use'
  end as reason,
  cluster,
  coalesce(a.topics, 0) as abandoned_topics,
  a.partitions as partition_count,
  a.replicas * 3 as open_files,
  a.log_bytes,
  a.log_bytes / power(1024, 3) * price.usd_per_gib as usd_per_month,
  k.topics as evaluated_topics,
  k.unknown_topics,
  a.list as topics,
  a.affected
from summary as k
left join abandoned as a using (cluster)
left join inventory.broker_storage_price(:hour) as price using (cluster)
