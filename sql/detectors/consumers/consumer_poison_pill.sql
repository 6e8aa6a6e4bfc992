/*
title: One record throws its readers out of the group
resource_kind: group
owner_role: application
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.group_step_hourly, metrics.jvm_app_hourly, inventory.topic_hourly, inventory.consumer_group_hourly]
params:
  still_minutes: {default: 15, unit: min, why: "three poll intervals of 5 min"}
  still_gaps: {default: 3, unit: commit gaps, why: "of the partitions that move: who commits by the hour stands still after three"}
  few_share: {default: 0.2, unit: share of what it reads, why: "more is a group that stands, not a record"}
  loop_turns: {default: 2, unit: members, why: "lost by the partition while it stood; one is a deploy"}
  tolerance: {default: 0.25, unit: ratio, why: "of max.poll.interval.ms: clients notice it late, and the others must join anew"}
  default_poll_ms: {default: 300000, unit: ms, why: "max.poll.interval.ms where no member's is known"}
  tail_records: {default: 1, unit: records, why: "clients that commit the last offset instead of the next leave one"}
  retention_hours: {default: 24, unit: h, why: "a day to look at a record before retention deletes it"}
key_metrics: [committed_offset, stood_seconds, lost_members, poll_interval_ms, waiting_records]
verdicts:
  loops:
    status: firing
    severity: warning
    message: "{{ place }} has stood at offset {{ committed_offset.value }} for at least {{ stood_seconds }}, with {{ waiting_records }} to read, while {{ moving_partitions | counted('other partition') }} moved. {{ lost_members | counted('member') }} that had it in turn were thrown out of the group after {{ turn_seconds }}: it takes longer than their max.poll.interval.ms of {{ poll_interval_ms }}.{% if beside_partitions %} {{ beside_partitions | counted('partition') }} that they had beside it {{ 'stands' if beside_partitions == 1 else 'stand' }} as well: whose record it is can't be told from here, the longest standing is named.{% endif %}{% if retention_left_seconds %} Retention deletes the record in {{ retention_left_seconds }}.{% endif %}"
    actions:
      - "Look at the record, or those right behind it, with the log of {{ owners }}. Bound the time that one record may take; max.poll.records times the time of a record must stay below {{ poll_interval_ms }}{% if advised_poll_records %}: no record was seen to take longer than {{ process_latency_max_ms }}, so it may be {{ advised_poll_records.value }} at most{% elif process_latency_max_ms %}, and one took {{ process_latency_max_ms }}: fewer of them don't help{% endif %}. To skip it, stop the group and set the offset behind it."
    commands: &commands
      - "kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ topic }} --partition {{ partition }} --offset {{ committed_offset }} --max-messages 1 --property print.key=true --property print.headers=true"
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --topic {{ topic }}:{{ partition }} --reset-offsets --to-offset {{ next_offset }} --dry-run"
  kills:
    status: firing
    severity: warning
    message: "{{ place }} has stood at offset {{ committed_offset.value }} for at least {{ stood_seconds }}, with {{ waiting_records }} to read, while {{ moving_partitions | counted('other partition') }} moved. {{ lost_members | counted('member') }} that had it in turn left the group.{% if beside_partitions %} {{ beside_partitions | counted('partition') }} that they had beside it {{ 'stands' if beside_partitions == 1 else 'stand' }} as well: whose record it is can't be told from here, the longest standing is named.{% endif %}{% if retention_left_seconds %} Retention deletes the record in {{ retention_left_seconds }}.{% endif %}"
    actions:
      - "Look at the record, or those right behind it, with the log of {{ owners }}: who reads it ends. Let the application put aside what it can't process. To skip it, stop the group and set the offset behind it."
    commands: *commands
  no_loop: {status: ok, message: "{{ place }} has stood for {{ stood_seconds }}, but it isn't lost by one member after the other."}
  group_stands: {status: ok, message: "{{ standing_partitions }} of {{ partitions }} partitions stand: that is the group, not a record."}
  restores: {status: ok, message: "State is restored; until it is there, partitions stand."}
  moves: {status: ok, message: "Members left the group, but no partition stands for it."}
  calm: {status: ok, message: "Nobody leaves the group."}
  unread: {status: unknown, message: "The history of its commits and members couldn't be read."}
causes:
  poison_pill_stops_partition: [loops, kills]
  poison_pill_rebalances_group: [loops, kills]
open_after_hours: 1
clear_after_hours: 2
description: |
  A place of the group stands: more than tail_records wait, and it hasn't moved for still_minutes and for still_gaps times
  the usual gap between commits of the places that move. At most few_share of the places that have something to read (or
  one) are so, not counting those that were lost by the same members at the same times, and others move. And it loops: since it stands, at least loop_turns members that had it were out of the
  group max.poll.interval.ms after their generation began (`tolerance` more or less); or more than loop_turns members that
  had it left, over still_minutes at least.
  Advised for max.poll.records is max.poll.interval.ms ÷ the longest time that a record took in the hour, where the group is
  an application that tells it.
runbook: |
  1. Print the record at the offset, and the ones behind it up to max.poll.records: the bad one is among them.
  2. What do the logs of the members that lost the partition say at these times: a call without a timeout, an endless loop,
     an exception that ends the process?
  3. Put it aside (dead-letter topic) or skip it: stop the group, --reset-offsets --to-offset, start it again.
  4. Mend the code: a bound on a record's time, fewer records a poll, a handler for what can't be read.
limitations: |
  A group with one partition, or of which all partitions stand, is consumer_group_lagging's. Static members
  (group.instance.id) and those of newer protocols (KIP-848, KIP-1071) leave no steps. A dead-letter queue hides such
  records; two bad records look like one. Only Kafka Streams tells how long a record takes, of its last minutes. A bad record at the very end of a log is told once a second one is behind it.
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

restless as (
  select
    s.cluster,
    s.group_id,
    coalesce(max(s.poll_interval_ms), :default_poll_ms) as poll_interval_ms,
    -- An hour that isn't over is judged as of when it was gathered.
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
    least(c.still_seconds, coalesce(c.lag_seconds_low, c.lag_seconds)) as waited_seconds,
    coalesce(c.moved_at, r.as_of - make_interval(secs => c.still_seconds)) as stands_since
  from metrics.consumer_partition_hourly as c
  inner join restless as r using (cluster, group_id)
  where c.hour = :hour
),

pace as (
  select
    cluster,
    group_id,
    count(*) filter (where is_moving or has_lag) as partitions,
    count(*) filter (where is_moving) as moving_partitions,
    percentile_cont(0.5) within group (order by commit_gap_p95_seconds) filter (where is_moving) as gap_seconds
  from place
  group by cluster, group_id
),

open_finding as (
  select
    p.*,
    a.partitions,
    a.moving_partitions,
    count(*) over (partition by p.cluster, p.group_id) as standing_partitions
  from place as p
  inner join pace as a using (cluster, group_id)
  where p.has_lag and p.waited_seconds >= greatest(:still_minutes * 60, :still_gaps * a.gap_seconds)
),

-- A generation can't begin while a member neither polls nor is out of the group: what the group's steps lie apart is how
-- long the one that had the place had it.
loss as (
  select
    p.cluster,
    p.group_id,
    p.topic,
    p.partition,
    p.poll_interval_ms,
    s.began_at,
    g.client_id || ' on ' || g.host as owner,
    extract(epoch from s.began_at - greatest(s.generation_began, p.stands_since)) as turn_seconds
  from open_finding as p
  inner join step as s on p.cluster = s.cluster and p.group_id = s.group_id and p.stands_since < s.began_at
  cross join lateral jsonb_to_recordset(s.gone) as g (client_id text, host text, assignment jsonb)
  where g.assignment -> p.topic @> to_jsonb(p.partition)
),

paced as (
  select
    *,
    abs(turn_seconds * 1000 - poll_interval_ms) <= :tolerance * poll_interval_ms as is_paced
  from loss
),

turns as (
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

stated as (
  select
    p.*,
    t.lost_members,
    t.paced_members,
    t.turn_seconds,
    t.owners,
    t.lost_at,
    (t.paced_members >= :loop_turns) is true as loops,
    (t.lost_members > :loop_turns and t.over_seconds >= :still_minutes * 60) is true as kills
  from open_finding as p
  left join turns as t using (cluster, group_id, topic, partition)
),

worst as (
  select distinct on (cluster, group_id)
    *,
    jsonb_agg(jsonb_build_object('topic', topic, 'partition', partition)) filter (where loops or kills)
      over (partition by cluster, group_id) as affected
  from stated
  order by cluster asc, group_id asc, loops desc, kills desc, waited_seconds desc, topic asc, partition asc
),

-- A member that is kept busy by one record leaves all that it has.
neighbours as (
  select
    w.cluster,
    w.group_id,
    count(*) as beside_partitions
  from worst as w
  inner join stated as s using (cluster, group_id)
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
    when g.rebalances is null then 'unread'
    when r.cluster is null then 'calm'
    when w.cluster is null then 'moves'
    when b.cluster is not null then 'restores'
    when w.moving_partitions = 0 or w.standing_partitions - coalesce(n.beside_partitions, 0) > greatest(1, :few_share * w.partitions)
      then 'group_stands'
    when w.loops then 'loops'
    when w.kills then 'kills'
    else 'no_loop'
  end as reason,
  case when kept.left_seconds < :retention_hours * 3600 then 'critical' end as severity,
  g.cluster,
  g.group_id,
  w.topic || '-' || w.partition as place,
  w.topic,
  w.partition,
  w.committed_offset,
  w.committed_offset + 1 as next_offset,
  extract(epoch from r.as_of - coalesce(since.moved_at, w.stands_since)) as stood_seconds,
  coalesce(since.moved_at, w.stands_since) as standing_since,
  w.lost_members,
  w.turn_seconds,
  w.poll_interval_ms,
  x.process_latency_max_ms,
  nullif(cast(floor(w.poll_interval_ms / nullif(x.process_latency_max_ms, 0)) as bigint), 0) as advised_poll_records,
  w.lag_records as waiting_records,
  kept.left_seconds as retention_left_seconds,
  w.owners,
  w.standing_partitions,
  n.beside_partitions,
  w.moving_partitions,
  w.partitions,
  g.rebalances,
  w.affected
from metrics.consumer_group_hourly as g
left join restless as r using (cluster, group_id)
left join worst as w using (cluster, group_id)
left join neighbours as n using (cluster, group_id)
left join latency as x on g.cluster = x.cluster and g.group_id = x.application_id
left join restoring as b on g.cluster = b.cluster and g.group_id = b.application_id
left join inventory.topic_hourly as t
  on g.hour = t.hour and w.cluster = t.cluster and w.topic = t.topic and t.cleanup_policy like '%delete%' and t.retention_ms > 0
cross join lateral (
  select case when t.cluster is not null then greatest(t.retention_ms / 1000.0 - w.lag_seconds, 0) end as left_seconds
) as kept
left join lateral (
  select max(h.moved_at) as moved_at
  from metrics.consumer_partition_hourly as h
  where
    h.hour between g.hour - interval '7 days' and g.hour and h.cluster = w.cluster and h.group_id = w.group_id
    and h.topic = w.topic and h.partition = w.partition
) as since on true
where g.hour = :hour
