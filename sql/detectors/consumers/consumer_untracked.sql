/*
title: Consumer group reads without committing
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly, metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_member_hourly]
params:
  hours: {default: 3, unit: h, why: "jobs that commit once an hour have committed twice by then"}
  loud_share: {default: 0.1, unit: share of what its topics send, why: "a tenth of the traffic that nobody accounts for is worth a question"}
  known_untracked: {default: "^spark-kafka-source-", unit: regex, why: "groups that keep their offsets elsewhere; Spark's streams have theirs in checkpoints"}
key_metrics: [untracked_topics, unaccounted_ratio, unaccounted_bytes_per_second, arrived_records, members]
verdicts:
  loud:
    status: firing
    severity: warning
    message: "{{ members | counted('member') }} of the group have been assigned {{ untracked_topics }} for {{ hours }} and never committed, while {{ arrived_records }} arrived. Up to {{ unaccounted_ratio }} of what these topics send is accounted for by no commit."
    actions:
      - &cure "Let {{ client_id }} on {{ host }} commit its offsets; else nobody can tell how far behind it is, and a restart reads anew or skips. If it keeps them elsewhere, name the group in known_untracked."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"]
  silent:
    status: firing
    severity: info
    message: "{{ members | counted('member') }} of the group have been assigned {{ untracked_topics }} for {{ hours }} and never committed, while {{ arrived_records }} arrived."
    actions:
      - *cure
    commands: *commands
  known: {status: ok, message: "The group commits nothing, and is known to keep its offsets elsewhere."}
  young: {status: ok, message: "Members are assigned {{ untracked_topics }} for less than {{ hours }}; their first commit may be to come."}
  nothing_arrived: {status: ok, message: "Nothing arrived on {{ untracked_topics }}: there is nothing to commit."}
  tracked: {status: ok, message: "The group has committed offsets on all that it is assigned."}
  commits_alone: {status: ok, message: "The group commits without members, as Flink's do with each checkpoint."}
  no_members: {status: ok, message: "Nobody runs in the group."}
  unknown: {status: unknown, message: "Members or committed offsets of the group aren't known."}
  log_unknown: {status: unknown, message: "Whether records arrived on {{ untracked_topics }} isn't known."}
open_after_hours: 1
clear_after_hours: 3
description: |
  A group whose members are assigned partitions of a topic in each of the last `hours` and that has no committed offset on
  that topic at all, while these partitions got records in each of them.
runbook: |
  1. Ask the owner of the client: is enable.auto.commit off and no commit called? Are the offsets kept elsewhere?
  2. If so, name the group in known_untracked.
  3. Else commit: without offsets a restart follows auto.offset.reset, reads everything again or skips what came meanwhile.
limitations: |
  A client that assigns partitions itself is in no group and isn't seen here; client_untracked and consumer_rogue see it. What a group
  reads without commits is known only as what all others don't account for. A group that committed once and stopped is
  judged as one that lags. Members of groups of the streams protocol (KIP-1071) aren't told.
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

-- What each topic of a suspect sends, and how much of that the commits of all groups account for.
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

judged as (
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
  from judged
  group by cluster, group_id
),

alone as materialized (
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
    when a.is_committing then 'commits_alone'
    when g.members = 0 then 'no_members'
    when g.members is null or g.partitions is null or (m.cluster is null and coalesce(g.commits, 0) = 0) then 'unknown'
    when s.cluster is null then 'tracked'
    when :known_untracked <> '' and g.group_id ~ :known_untracked then 'known'
    when s.is_untracked and s.unaccounted_ratio >= :loud_share then 'loud'
    when s.is_untracked then 'silent'
    when s.is_unknown then 'log_unknown'
    when s.is_young then 'young'
    else 'nothing_arrived'
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
left join alone as a
  on g.cluster = a.cluster and g.group_id = a.group_id
where g.hour = :hour
