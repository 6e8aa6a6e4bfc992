/*
title: Topics that nobody writes or reads
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.topic_hourly, metrics.partition_hourly, metrics.topic_hourly, metrics.consumer_partition_hourly, inventory.consumer_member_hourly, metrics.replica_sample]
params:
  quiet_days: {default: 7, unit: d, why: "no topic in use is silent for a week, but for batches"}
  gap_factor: {default: 2, unit: ratio, why: "of the longest pause that it ever made: batches have a rhythm"}
  month_days: {default: 35, unit: d, why: "a topic that wasn't watched for a month before may be a monthly job's"}
  history_days: {default: 92, unit: d, why: "as far back as pauses are looked for"}
  spare: {default: "(^|[._-])(dlq|dlt|dead|deadletters?|retry|retries|errors?|failed)([._-]|$)", unit: pattern, why: "topics that are empty as long as all is well"}
  keep: {default: "", unit: pattern, why: "pattern of topics that their owners want to keep; empty: none"}
  most_shown: {default: 20, unit: topics, why: "more in a list are read by nobody"}
key_metrics: [abandoned_topics, partition_count, open_files, log_bytes, usd_per_month]
verdicts:
  abandoned:
    status: firing
    severity: info
    message: "Nobody has written or read {{ abandoned_topics | counted('topic') }} for {{ quiet_days.value }} days and longer: {{ partition_count | counted('partition') }}{% if log_bytes %}, {{ log_bytes }}{% endif %}{% if usd_per_month %}, {{ usd_per_month }}{% endif %}."
    actions:
      - "Ask their owners. What is really done with can be deleted; its records can't be had back."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic '{% for one in topics %}{{ one.topic }}{{ '' if loop.last else '|' }}{% endfor %}'"
      - "{% for one in topics %}kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --delete --topic {{ one.topic }}; {% endfor %}"
  in_use: {status: ok, message: "No topic has been without records, readers and bytes sent for long enough to call it abandoned."}
  unknown: {status: unknown, message: "Whether {{ unknown_topics }} of {{ judged_topics }} topics are in use isn't known: their offsets, commits or the bytes sent are missing."}
  young: {status: unknown, message: "Its topics are known of less than {{ quiet_days.value }} days."}
causes:
  overpartitioning_adds_partitions: [abandoned]
open_after_hours: 24
clear_after_hours: 1
description: |
  For quiet_days, gap_factor times its longest pause, or month_days where it wasn't watched for a month before its last
  record, whichever is longest: no new offset, and so no producer; no bytes sent; no commit, and no member of a group that
  is assigned it. Any sign of use vetoes. Not of topics whose name matches `spare` or `keep`, nor of internal ones.
runbook: |
  1. Is it filled by a job that comes seldom, or kept by law? Then name it in `keep`.
  2. Ask the owner named; where nobody is, ask who made it.
  3. A backup first, where a doubt remains. Then delete: `delete.topic.enable` must be on.
limitations: |
  Jobs that come more rarely than twice in the history. Readers that assign partitions themselves and are idle: without
  records they are sent no bytes. Offsets are compared once a day: a topic that is deleted and made anew with as many
  records looks the same.
*/
with rest as materialized (
  select
    r.cluster,
    r.name as topic,
    r.known_days,
    r.rest_days,
    greatest(
      :quiet_days, :gap_factor * r.longest_pause_days, case when r.observed_days < :month_days then :month_days end
    ) as needed_days
  from public.idle_topics(:hour, :quiet_days, :history_days, false) as r
  where r.name !~* :spare and (:keep = '' or r.name !~ :keep)
),

resting as materialized (
  select
    r.cluster,
    r.topic,
    hours.needed as needed_hours,
    s.bytes_out,
    s.known_hours * 2 < hours.needed as is_unknown
  from rest as r
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
  from resting as r
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

judged as materialized (
  select
    r.cluster,
    r.topic,
    r.rest_days,
    t.partitions,
    t.partitions * t.replication_factor as replicas,
    h.log_bytes,
    coalesce(s.bytes_out > 0 or c.is_used or a.topic is not null, false) as is_used,
    s.topic is not null as is_resting,
    r.known_days,
    coalesce(r.known_days is null or s.is_unknown or c.is_unknown, false) as is_unknown
  from rest as r
  inner join inventory.topic_hourly as t using (cluster, topic)
  left join resting as s using (cluster, topic)
  left join committed as c using (cluster, topic)
  left join assigned as a using (cluster, topic)
  left join held as h using (cluster, topic)
  where t.hour = :hour
),

found as (
  select
    *,
    row_number() over (partition by cluster order by log_bytes desc nulls last, topic asc) as place
  from judged
  where is_resting and not is_used and not is_unknown
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
        'topic', f.topic, 'owner', t.owner, 'partitions', f.partitions, 'bytes', f.log_bytes, 'rest_days', f.rest_days
      ) order by f.place
    ) filter (where f.place <= :most_shown) as list,
    jsonb_agg(public.resource_key('topic', f.cluster, f.topic) order by f.place) filter (where f.place <= :most_shown)
      as affected
  from found as f
  left join public.resources(:hour) as t
    on t.kind = 'topic' and t.key = public.resource_key('topic', f.cluster, f.topic)
  group by f.cluster
),

known as (
  select
    cluster,
    count(*) as topics,
    count(*) filter (where is_unknown and not is_used) as unknown_topics,
    max(known_days) as known_days
  from judged
  group by cluster
)

select
  case
    when a.topics is not null then 'abandoned'
    when k.known_days < :quiet_days then 'young'
    when k.unknown_topics > 0 then 'unknown'
    else 'in_use'
  end as reason,
  cluster,
  coalesce(a.topics, 0) as abandoned_topics,
  a.partitions as partition_count,
  a.replicas * 3 as open_files,
  a.log_bytes,
  a.log_bytes / power(1024, 3) * price.usd_per_gib as usd_per_month,
  k.topics as judged_topics,
  k.unknown_topics,
  a.list as topics,
  a.affected
from known as k
left join abandoned as a using (cluster)
left join inventory.broker_storage_price(:hour) as price using (cluster)
