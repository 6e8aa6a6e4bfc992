/*
title: Consumer group does not commit offsets
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly,
  metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_member_hourly]
params:
  hours:
    default: 3
    unit: h
    why: "a job that commits once an hour has committed twice by then"
  loud_share:
    default: 0.1
    unit: share of the bytes out of its topics
    why: "a tenth of the traffic without committed offsets deserves a question to the owner"
  known_untracked:
    default: "^spark-kafka-source-"
    unit: regex
    why: "groups that store offsets elsewhere; Spark Structured Streaming stores them in checkpoints"
key_metrics: [untracked_topics, unaccounted_ratio, unaccounted_bytes_per_second, arrived_records, members]
verdicts:
  high_share:
    status: firing
    severity: warning
    message: &message >
      Consumer group {{ group_id }} has committed no offset for {{ hours }} on {{ untracked_topics }}, although
      {{ arrived_records }} arrived.
    details:
      - &members "{{ members | counted('member') }} {{ members | plural('is', 'are') }} assigned partitions of these topics."
      - "Committed offsets do not account for up to {{ unaccounted_ratio }} of the bytes out of these topics."
    impact: &impact The lag of the group is not measurable, and a restart rereads or skips records (auto.offset.reset).
    actions: &actions
      - "Commit offsets in client {{ client_id }} on {{ host }}: enable enable.auto.commit, or call commit after processing."
      - "If the group stores its offsets elsewhere, add its ID to the parameter known_untracked."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"
  untracked:
    status: firing
    severity: info
    message: *message
    details:
      - *members
    impact: *impact
    actions: *actions
    commands: *commands
  exempt: {status: ok, message: "Consumer group {{ group_id }} stores its offsets outside Kafka (parameter known_untracked)."}
  new_assignment:
    status: ok
    message: "Consumer group {{ group_id }} has been assigned {{ untracked_topics }} for less than {{ hours }}."
  no_records: {status: ok, message: "No records to commit arrived on {{ untracked_topics }} for consumer group {{ group_id }}."}
  tracked: {status: ok, message: "Consumer group {{ group_id }} has committed offsets on all its assigned topics."}
  commits_without_members:
    status: ok
    message: "Consumer group {{ group_id }} commits offsets without members, as Flink does with each checkpoint."
  no_members: {status: ok, message: "Consumer group {{ group_id }} has no members."}
  commits_unknown:
    status: unknown
    message: "Not evaluated: members or committed offsets of consumer group {{ group_id }} were not reported."
  log_end_unknown:
    status: unknown
    message: "Not evaluated: log-end offsets of {{ untracked_topics }} were not reported."
open_after_hours: 1
clear_after_hours: 3
description: |
  Fires if members of the group were assigned partitions of a topic in each of the last `hours` hours, these partitions
  received records in each of them, and the group has no committed offset on that topic. The severity is warning if
  committed offsets of all groups leave loud_share or more of the topics' bytes out unaccounted for.
runbook: |
  ## Meaning
  Members of the group consume a topic and have never committed an offset on it.

  ## Impact
  The lag of the group is not measurable. A restart follows auto.offset.reset: it rereads everything or skips records.

  ## Diagnosis
  1. Ask the owner of the client whether enable.auto.commit is off and no commit is called.
  2. Ask whether the offsets are stored elsewhere, such as in a checkpoint or a database.

  ## Mitigation
  1. Commit offsets.
  2. If they are stored elsewhere, add the group to known_untracked.
limitations: |
  A client that assigns partitions itself belongs to no group; client_untracked and consumer_rogue cover it. The bytes
  that a group reads without commits are known only as the remainder that other groups do not account for. A group
  that committed once and stopped is evaluated by consumer_group_lagging. Groups of the streams protocol (KIP-1071)
  do not report their members.
*/
with assigned as materialized (
  select
    m.hour,
    m.cluster,
    m.group_id,
    m.client_id,
    m.host,
    a.topic,
    a.partitions
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_each(m.assignment) as a (topic, partitions)
  where m.hour > :hour - make_interval(hours => cast(:hours as integer))
  and m.hour <= :hour
),

committed as materialized (
  select distinct
    cluster,
    group_id,
    topic
  from metrics.consumer_partition_hourly
  where hour = :hour
),

suspect as materialized (
  select
    a.cluster,
    a.group_id,
    a.topic,
    count(distinct a.hour) as assigned_hours,
    min(a.client_id) filter (where a.hour = :hour) as client_id,
    min(a.host) filter (where a.hour = :hour) as host
  from assigned as a
  inner join inventory.topic_hourly as t
    on t.hour = :hour and a.cluster = t.cluster and a.topic = t.topic
  left join committed as c on a.cluster = c.cluster and a.group_id = c.group_id and a.topic = c.topic
  where c.cluster is null
  group by a.cluster, a.group_id, a.topic
  having bool_or(a.hour = :hour)
),

arrived_by_hour as (
  select
    s.cluster,
    s.group_id,
    s.topic,
    a.hour,
    sum(p.log_end_offset_last - p.log_end_offset_first) as records,
    bool_or(p.log_end_offset_last is null or p.log_end_offset_first is null) as is_unknown
  from suspect as s
  inner join assigned as a on s.cluster = a.cluster and s.group_id = a.group_id and s.topic = a.topic
  cross join lateral jsonb_array_elements_text(a.partitions) as part (partition)
  left join metrics.partition_hourly as p
    on a.hour = p.hour and a.cluster = p.cluster and a.topic = p.topic and cast(part.partition as integer) = p.partition
  group by s.cluster, s.group_id, s.topic, a.hour
),

arrived as (
  select
    cluster,
    group_id,
    topic,
    sum(records) as records,
    count(*) filter (where records > 0) as busy_hours,
    bool_or(is_unknown) as is_unknown
  from arrived_by_hour
  group by cluster, group_id, topic
),

-- Bytes out of each suspect topic, and the part that committed offsets of all groups account for.
sent as materialized (
  select
    t.cluster,
    t.topic,
    t.bytes_out,
    t.covered_seconds,
    coalesce(sum(r.fresh_bytes + r.backlog_bytes), 0) as accounted_bytes
  from (select distinct cluster, topic from suspect) as s
  inner join metrics.topic_hourly as t
    on t.hour = :hour and s.cluster = t.cluster and s.topic = t.topic
  left join public.topic_readers_of(:hour) as r on t.cluster = r.cluster and t.topic = r.topic
  group by t.cluster, t.topic, t.bytes_out, t.covered_seconds
),

measured as (
  select
    s.*,
    a.records,
    a.is_unknown,
    s.assigned_hours >= :hours and a.busy_hours >= :hours as is_untracked,
    s.assigned_hours < :hours as is_young,
    b.bytes_out,
    greatest(b.bytes_out - b.accounted_bytes, 0) as unaccounted_bytes,
    b.covered_seconds
  from suspect as s
  inner join arrived as a on s.cluster = a.cluster and s.group_id = a.group_id and s.topic = a.topic
  left join sent as b on s.cluster = b.cluster and s.topic = b.topic
),

summary as (
  select
    cluster,
    group_id,
    bool_or(is_untracked) as is_untracked,
    bool_or(is_unknown) as is_unknown,
    bool_or(is_young) as is_young,
    string_agg(topic, ', ' order by topic) filter (where is_untracked) as untracked_topics,
    string_agg(topic, ', ' order by topic) as topics,
    sum(records) filter (where is_untracked) as arrived_records,
    sum(unaccounted_bytes) filter (where is_untracked) / nullif(sum(bytes_out) filter (where is_untracked), 0)
      as unaccounted_ratio,
    sum(unaccounted_bytes / nullif(covered_seconds, 0)) filter (where is_untracked) as unaccounted_bytes_per_second,
    (array_agg(client_id order by is_untracked desc, topic asc))[1] as client_id,
    (array_agg(host order by is_untracked desc, topic asc))[1] as host,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by topic) filter (where is_untracked) as affected
  from measured
  group by cluster, group_id
),

memberless_group as materialized (
  select *
  from public.commits_without_members(:hour)
),

has_member as (
  select distinct
    cluster,
    group_id
  from inventory.consumer_member_hourly
  where hour = :hour
)

select
  case
    when a.is_committing then 'commits_without_members'
    when g.members = 0 then 'no_members'
    when g.members is null or g.partitions is null or (m.cluster is null and coalesce(g.commits, 0) = 0) then 'commits_unknown'
    when s.cluster is null then 'tracked'
    when :known_untracked <> '' and g.group_id ~ :known_untracked then 'exempt'
    when s.is_untracked and s.unaccounted_ratio >= :loud_share then 'high_share'
    when s.is_untracked then 'untracked'
    when s.is_unknown then 'log_end_unknown'
    when s.is_young then 'new_assignment'
    else 'no_records'
  end as reason,
  g.cluster,
  g.group_id,
  coalesce(s.untracked_topics, s.topics) as untracked_topics,
  s.unaccounted_ratio,
  s.unaccounted_bytes_per_second,
  s.arrived_records,
  g.members,
  s.client_id,
  s.host,
  s.affected
from metrics.consumer_group_hourly as g
left join summary as s on g.cluster = s.cluster and g.group_id = s.group_id
left join has_member as m on g.cluster = m.cluster and g.group_id = m.group_id
left join memberless_group as a
  on g.cluster = a.cluster and g.group_id = a.group_id
where g.hour = :hour
