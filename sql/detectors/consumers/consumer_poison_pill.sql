/*
title: Poison-pill record
resource_kind: group
owner_role: application
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.group_step_hourly,
  metrics.jvm_app_hourly, inventory.topic_hourly, inventory.consumer_group_hourly]
params:
  still_minutes: {default: 15, unit: min, why: "three poll intervals of 5 min"}
  still_gaps:
    default: 3
    unit: commit gaps
    why: "of the partitions that progress; a group that commits once an hour is stuck after three hours"
  few_share:
    default: 0.2
    unit: share of its partitions
    why: "with more partitions stuck, the group is stuck and not a record"
  loop_turns:
    default: 2
    unit: members
    why: "that lost the partition while it was stuck; a single one is a deployment"
  tolerance:
    default: 0.25
    unit: ratio
    why: "of max.poll.interval.ms; clients notice it late, and the other members must join again"
  default_poll_ms: {default: 300000, unit: ms, why: "the default of max.poll.interval.ms, where no member reports it"}
  tail_records:
    default: 1
    unit: records
    why: "clients that commit the last offset instead of the next leave one record"
  retention_hours: {default: 24, unit: h, why: "a day to inspect a record before retention deletes it"}
key_metrics: [committed_offset, stuck_seconds, lost_members, poll_interval_ms, waiting_records]
verdicts:
  poll_timeout_loop:
    status: firing
    severity: warning
    message: &message >
      Group {{ group_id }} has been stuck on {{ place }} at offset {{ committed_offset.value }} for at least
      {{ stuck_seconds }}, and {{ lost_members | counted("member") }} dropped out.
    details:
      - &waiting >
        {{ waiting_records }} wait on this partition, while {{ moving_partitions | counted("other partition") }}
        {{ moving_partitions | plural("progresses", "progress") }}.
      - >
        Members were removed from the group after {{ turn_seconds }}; their max.poll.interval.ms is {{ poll_interval_ms }}.
      - &neighbors >
        {% if neighbor_partitions %}{{ neighbor_partitions | counted("other partition") }} of the same members
        {{ neighbor_partitions | plural("is", "are") }} stuck as well, so the record may be in one of them.{% endif %}
      - >
        {% if process_latency_max_ms %}The slowest record was processed in {{ process_latency_max_ms }}.{% endif %}
      - &retention "{% if retention_left_seconds %}Retention deletes the record in {{ retention_left_seconds }}.{% endif %}"
    impact: &impact "The partition is not processed, and each member that receives it leaves the group."
    actions:
      - &inspect "Inspect the record at this offset and the next ones, and the logs of {{ owners }}."
      - &skip "To skip the record, stop the group and set the offset to {{ next_offset.value }} (--execute instead of --dry-run)."
      - "Set a timeout for the processing of one record."
      - >
        {% if advised_poll_records %}Set max.poll.records to at most {{ advised_poll_records.value }}, so that one poll
        stays below {{ poll_interval_ms }}.{% endif %}
      - &dlq "Prevent it: send records that cannot be processed to a dead letter topic."
    commands: &commands
      - "kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ topic }} --partition {{ partition }} --offset {{ committed_offset }} --max-messages 1 --property print.key=true --property print.headers=true"
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --topic {{ topic }}:{{ partition }} --reset-offsets --to-offset {{ next_offset }} --dry-run"
  member_exit_loop:
    status: firing
    severity: warning
    message: *message
    details:
      - *waiting
      - "Members that receive the partition leave the group."
      - *neighbors
      - *retention
    impact: *impact
    actions:
      - *inspect
      - *skip
      - *dlq
    commands: *commands
  no_loop:
    status: ok
    message: "Group {{ group_id }} has been stuck on {{ place }} for {{ stuck_seconds }}, but its members do not drop out one after another."
  group_stuck:
    status: ok
    message: "Group {{ group_id }} is stuck on {{ stuck_partitions }} of {{ partitions }} partitions, which no single record explains."
  restoring: {status: ok, message: "Group {{ group_id }} restores state stores, and its partitions wait for them."}
  progressing: {status: ok, message: "Members left group {{ group_id }}, but no partition is stuck."}
  stable: {status: ok, message: "No member left group {{ group_id }}."}
  history_unreadable:
    status: unknown
    message: "Not evaluated: the commits, lag, or membership history of group {{ group_id }} is unreadable."
causes:
  poison_pill_stops_partition: [poll_timeout_loop, member_exit_loop]
  poison_pill_rebalances_group: [poll_timeout_loop, member_exit_loop]
open_after_hours: 1
clear_after_hours: 2
description: |
  A partition is stuck if more than tail_records wait and its committed offset has not changed for still_minutes and for
  still_gaps times the typical commit gap of the partitions that progress. At most few_share of the partitions with records
  (or one) may be stuck, without those that the same members lost at the same times, and others must progress.
  - Poll timeout loop: at least loop_turns members with the partition left the group max.poll.interval.ms after their
    generation began (within tolerance).
  - Member exit loop: more than loop_turns members with the partition left, over at least still_minutes.

  The recommended max.poll.records is max.poll.interval.ms ÷ the longest processing time of a record in the hour, for
  applications that report it.
runbook: |
  ## Meaning
  One record makes each member that receives it leave the group.

  ## Impact
  The partition is not processed, and the group rebalances again and again.

  ## Diagnosis
  1. Print the record at the offset and the next ones, up to max.poll.records: the poison pill is among them.
  2. Check the logs of the members at these times: a call without a timeout, an endless loop, or an exception.

  ## Mitigation
  1. Send the record to a dead letter topic or skip it: stop the group, --reset-offsets --to-offset, start it again.
  2. Fix the code: a timeout per record, fewer records per poll, and a handler for deserialization errors.
limitations: |
  A group with a single partition, or with all partitions stuck, is covered by consumer_group_lagging. Static members
  (group.instance.id) and members of newer protocols (KIP-848, KIP-1071) leave no membership history. A dead letter topic
  hides such records. Two poison pills are reported as one. Only Kafka Streams reports the processing time of a record, for
  its last minutes. A poison pill at the end of a log is reported once a second record follows.
*/
with step as materialized (
  select
    cluster,
    group_id,
    began_at,
    gone,
    poll_interval_ms,
    lag(began_at) over (partition by cluster, group_id order by began_at, generation) as generation_began
  from metrics.group_step_hourly
  where hour between :hour - interval '1 hour' and :hour
),

rebalancing as (
  select
    s.cluster,
    s.group_id,
    coalesce(max(s.poll_interval_ms), :default_poll_ms) as poll_interval_ms,
    -- An hour that is not over is evaluated as of its collection run.
    least(:hour + interval '1 hour', max(i.observed_at)) as as_of
  from step as s
  left join inventory.consumer_group_hourly as i
    on i.hour = :hour and s.cluster = i.cluster and s.group_id = i.group_id
  group by s.cluster, s.group_id
  having bool_or(jsonb_array_length(s.gone) > 0)
),

place as materialized (
  select
    c.cluster,
    c.group_id,
    c.topic,
    c.partition,
    c.committed_offset,
    c.lag_records,
    c.lag_seconds,
    c.commit_gap_p95_seconds,
    r.poll_interval_ms,
    c.records_consumed > 0 and c.still_seconds < :still_minutes * 60 as is_moving,
    coalesce(c.waiting_records, c.lag_records) > :tail_records as has_lag,
    least(c.still_seconds, coalesce(c.lag_seconds_low, c.lag_seconds)) as idle_seconds,
    coalesce(c.moved_at, r.as_of - make_interval(secs => c.still_seconds)) as stuck_from
  from metrics.consumer_partition_hourly as c
  inner join rebalancing as r using (cluster, group_id)
  where c.hour = :hour
),

pace as (
  select
    cluster,
    group_id,
    count(*) filter (where is_moving or has_lag) as partitions,
    count(*) filter (where is_moving) as moving_partitions,
    bool_or(is_moving is null) as is_movement_unknown,
    bool_or(has_lag is null) as is_lag_unknown,
    percentile_cont(0.5) within group (order by commit_gap_p95_seconds) filter (where is_moving) as gap_seconds
  from place
  group by cluster, group_id
),

stuck as (
  select
    p.*,
    a.partitions,
    a.moving_partitions,
    a.is_movement_unknown,
    count(*) over (partition by p.cluster, p.group_id) as stuck_partitions
  from place as p
  inner join pace as a using (cluster, group_id)
  where p.has_lag and p.idle_seconds >= greatest(:still_minutes * 60, :still_gaps * a.gap_seconds)
),

-- A generation cannot begin while a member neither polls nor has left the group. So the time between two rebalances is
-- how long a member had the partition.
loss as (
  select
    p.cluster,
    p.group_id,
    p.topic,
    p.partition,
    p.poll_interval_ms,
    s.began_at,
    g.client_id || ' on ' || ltrim(g.host, '/') as owner,
    extract(epoch from s.began_at - greatest(s.generation_began, p.stuck_from)) as turn_seconds
  from stuck as p
  inner join step as s on p.cluster = s.cluster and p.group_id = s.group_id and p.stuck_from < s.began_at
  cross join lateral jsonb_to_recordset(s.gone) as g (client_id text, host text, assignment jsonb)
  where g.assignment -> p.topic @> to_jsonb(p.partition)
),

paced as (
  select
    *,
    abs(turn_seconds * 1000 - poll_interval_ms) <= :tolerance * poll_interval_ms as is_paced
  from loss
),

loss_summary as (
  select
    cluster,
    group_id,
    topic,
    partition,
    count(*) as lost_members,
    count(*) filter (where is_paced) as paced_members,
    percentile_cont(0.5) within group (order by turn_seconds) filter (where is_paced) as turn_seconds,
    extract(epoch from max(began_at) - min(began_at)) as over_seconds,
    to_jsonb(array_agg(distinct owner)) as owners,
    array_agg(began_at) as lost_at
  from paced
  group by cluster, group_id, topic, partition
),

classified as (
  select
    p.*,
    t.lost_members,
    t.paced_members,
    t.turn_seconds,
    t.owners,
    t.lost_at,
    (t.paced_members >= :loop_turns) is true as is_poll_timeout_loop,
    (t.lost_members > :loop_turns and t.over_seconds >= :still_minutes * 60) is true as is_member_exit_loop
  from stuck as p
  left join loss_summary as t using (cluster, group_id, topic, partition)
),

worst as (
  select distinct on (cluster, group_id)
    *,
    jsonb_agg(jsonb_build_object('topic', topic, 'partition', partition)) filter (where is_poll_timeout_loop or is_member_exit_loop)
      over (partition by cluster, group_id) as affected
  from classified
  order by cluster asc, group_id asc, is_poll_timeout_loop desc, is_member_exit_loop desc, idle_seconds desc, topic asc, partition asc
),

-- A member that is blocked by one record loses all its partitions.
neighbors as (
  select
    w.cluster,
    w.group_id,
    count(*) as neighbor_partitions
  from worst as w
  inner join classified as s using (cluster, group_id)
  where (s.topic, s.partition) <> (w.topic, w.partition) and s.lost_at <@ w.lost_at
  group by w.cluster, w.group_id
),

latency as (
  select
    cluster,
    application_id,
    max(process_latency_max_ms) as process_latency_max_ms
  from metrics.jvm_app_hourly
  where hour = :hour and application_id is not null
  group by cluster, application_id
),

restoring as (
  select distinct cluster, application_id
  from public.processes_restoring(:hour, :hour)
)

select
  case
    when g.rebalances is null then 'history_unreadable'
    when r.cluster is null then 'stable'
    when w.cluster is null and a.is_lag_unknown then 'history_unreadable'
    when w.cluster is null then 'progressing'
    when b.cluster is not null then 'restoring'
    when w.moving_partitions = 0 and not w.is_movement_unknown
      or w.stuck_partitions - coalesce(n.neighbor_partitions, 0) > greatest(1, :few_share * w.partitions)
      then 'group_stuck'
    when w.is_poll_timeout_loop then 'poll_timeout_loop'
    when w.is_member_exit_loop then 'member_exit_loop'
    else 'no_loop'
  end as reason,
  case when retained.left_seconds < :retention_hours * 3600 then 'critical' end as severity,
  g.cluster,
  g.group_id,
  w.topic || '-' || w.partition as place,
  w.topic,
  w.partition,
  w.committed_offset,
  w.committed_offset + 1 as next_offset,
  extract(epoch from r.as_of - coalesce(since.moved_at, w.stuck_from)) as stuck_seconds,
  coalesce(since.moved_at, w.stuck_from) as stuck_since,
  w.lost_members,
  w.turn_seconds,
  w.poll_interval_ms,
  x.process_latency_max_ms,
  nullif(cast(floor(w.poll_interval_ms / nullif(x.process_latency_max_ms, 0)) as bigint), 0) as advised_poll_records,
  w.lag_records as waiting_records,
  retained.left_seconds as retention_left_seconds,
  w.owners,
  w.stuck_partitions,
  n.neighbor_partitions,
  w.moving_partitions,
  w.partitions,
  g.rebalances,
  w.affected
from metrics.consumer_group_hourly as g
left join rebalancing as r using (cluster, group_id)
left join pace as a using (cluster, group_id)
left join worst as w using (cluster, group_id)
left join neighbors as n using (cluster, group_id)
left join latency as x on g.cluster = x.cluster and g.group_id = x.application_id
left join restoring as b on g.cluster = b.cluster and g.group_id = b.application_id
left join inventory.topic_hourly as t
  on g.hour = t.hour and w.cluster = t.cluster and w.topic = t.topic and t.cleanup_policy like '%delete%' and t.retention_ms > 0
cross join lateral (
  select case when t.cluster is not null then greatest(t.retention_ms / 1000.0 - w.lag_seconds, 0) end as left_seconds
) as retained
left join lateral (
  select max(h.moved_at) as moved_at
  from metrics.consumer_partition_hourly as h
  where
    h.hour between g.hour - interval '7 days' and g.hour and h.cluster = w.cluster and h.group_id = w.group_id
    and h.topic = w.topic and h.partition = w.partition
) as since on true
where g.hour = :hour
