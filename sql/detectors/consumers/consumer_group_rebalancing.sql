/*
title: Consumer group comes to no rest
resource_kind: group
owner_role: application
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.group_step_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly, metrics.jvm_app_hourly]
params:
  steps: {default: 6, unit: rebalances, why: "an hour: one in ten minutes is no deploy"}
  slots: {default: 4, unit: slots, why: "of the hour's six of ten minutes: a deploy's rebalances fall into one or two"}
  merge_seconds: {default: 60, unit: s, why: "the cooperative protocol takes two rebalances for one change, some seconds apart"}
  lost_share: {default: 0.3, unit: share of what came in, why: "less costs nobody"}
  tolerance: {default: 0.25, unit: ratio, why: "of a timeout: clients notice it up to a heartbeat or a poll later"}
key_metrics: [rebalances, gone_client, gone_times, arrived_records, read_records]
verdicts:
  slow_records:
    status: firing
    severity: warning
    message: "{{ rebalances }} rebalances in the hour; {{ arrived_records }} came, {{ read_records }} were read. {{ gone_client }} on {{ gone_host }} left {{ gone_times | counted('time') }}, every {{ spacing_seconds }}: its max.poll.interval.ms is {{ poll_interval_ms }}, so what a poll gives it takes longer than that."
    actions:
      - "Lower max.poll.records of {{ gone_client }} until a poll's records are done well within {{ poll_interval_ms }}, or raise max.poll.interval.ms; bound calls to other systems by a timeout. If one record takes so long, see what it is."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"]
  expires:
    status: firing
    severity: warning
    message: "{{ rebalances }} rebalances in the hour; {{ arrived_records }} came, {{ read_records }} were read. {{ gone_client }} on {{ gone_host }} was dropped {{ gone_times | counted('time') }}, every {{ spacing_seconds }}: about its session.timeout.ms of {{ session_timeout_ms }}, so its heartbeats stop."
    actions:
      - "See whether {{ gone_client }} on {{ gone_host }} is killed and started again, is paused by its garbage collector, or loses the network. A static name (group.instance.id) spares the group the rebalance when it comes back in time."
    commands: *commands
  leaves:
    status: firing
    severity: warning
    message: "{{ rebalances }} rebalances in the hour; {{ arrived_records }} came, {{ read_records }} were read. {{ gone_client }} on {{ gone_host }} left most often: {{ gone_times | counted('time') }}."
    actions:
      - "Read the log of {{ gone_client }} on {{ gone_host }}: it ends, or leaves the group, and comes back."
    commands: *commands
  nobody_leaves:
    status: firing
    severity: warning
    message: "{{ rebalances }} rebalances in the hour, most of them with the same members; {{ arrived_records }} came, {{ read_records }} were read."
    actions:
      - "Nobody leaves, so members ask for it: see whether they subscribe by a pattern that new topics match, change their subscription, or disagree on the assignor."
    commands: *commands
  epochs:
    status: firing
    severity: warning
    message: "{{ rebalances }} rebalances in the hour; {{ arrived_records }} came, {{ read_records }} were read. Groups of its protocol don't tell who left."
    actions:
      - "Read the logs of its members: which of them ends, or is dropped, and comes back?"
    commands: *commands
  no_cost: {status: ok, message: "{{ rebalances }} rebalances in the hour; {{ arrived_records }} came, {{ read_records }} were read: they cost nobody."}
  restores: {status: ok, message: "{{ rebalances }} rebalances in the hour, while state is restored: Kafka Streams probes for finished warm-ups."}
  burst: {status: ok, message: "{{ rebalances }} rebalances, all in {{ slots_hit | counted('slot') }} of ten minutes: a deploy, or members that were added."}
  young: {status: ok, message: "{{ rebalances }} rebalances in its first hour: its members are being started."}
  calm: {status: ok, message: "{{ rebalances | counted('rebalance') }} in the hour."}
  unread: {status: unknown, message: "The history of its commits and members couldn't be read."}
  cost_unknown: {status: unknown, message: "{{ rebalances }} rebalances in the hour; whether they cost anything isn't known, as what came in or was read isn't."}
causes:
  rebalances_stop_group: [slow_records, expires, leaves, nobody_leaves, epochs]
caused_by:
  poison_pill_rebalances_group: [slow_records, expires, leaves]
  restarts_rebalance_group: [expires, leaves, epochs]
open_after_hours: 2
clear_after_hours: 3
description: |
  At least `steps` rebalances (those within merge_seconds of the one before don't count; where one follows the other all
  the time, every second minute does), in at least `slots` of the hour's six slots of ten minutes, and they cost something: of what came in, lost_share or more wasn't read, or the lag grew by
  as much. Why: by the client that left most often; its median time between two leaves is near its max.poll.interval.ms
  (slow records) or its session.timeout.ms (it is dropped); or in most steps nobody left.
runbook: |
  1. Who leaves, and how often? The plot has the rebalances; metrics.group_step_hourly has who was gone and who came.
  2. At the pace of max.poll.interval.ms: processing is too slow for max.poll.records. Does one record take so long?
  3. At the pace of session.timeout.ms: is the process killed (out of memory), paused (GC) or cut off?
  4. Otherwise: subscriptions by pattern, assignors that differ between members, deployments in a loop.
limitations: |
  Members that come and go within one generation. Groups of newer protocols (KIP-848, KIP-1071) don't tell their members
  here; their epochs stop nobody, so that only those that cost are told. A broker that restarts moves its groups to
  another coordinator, without a new generation.
*/
with step as (
  select
    *,
    began_at - lag(began_at) over (partition by cluster, group_id order by began_at) < make_interval(secs => :merge_seconds)
      as is_same_change
  from metrics.group_step_hourly
  where hour = :hour
),

pace as (
  select
    cluster,
    group_id,
    greatest(
      count(*) filter (where is_same_change is not true),
      count(distinct date_bin(make_interval(secs => :merge_seconds), began_at, :hour)) / 2
    ) as rebalances,
    count(distinct date_bin('10 minutes', began_at, :hour)) as slots_hit,
    max(poll_interval_ms) as poll_interval_ms,
    max(session_timeout_ms) as session_timeout_ms,
    bool_and(members is null) as is_untold,
    count(*) filter (where jsonb_array_length(gone) + jsonb_array_length(come) = 0) * 2 > count(*) as is_same_members
  from step
  group by cluster, group_id
),

restless as materialized (
  select * from pace where rebalances >= :steps
),

-- A client that leaves and comes back has another member id each time; its name and its host stay.
leave as (
  select
    s.cluster,
    s.group_id,
    g.client_id,
    g.host,
    s.began_at,
    s.began_at - lag(s.began_at) over (partition by s.cluster, s.group_id, g.client_id, g.host order by s.began_at) as since_last
  from step as s
  cross join lateral jsonb_to_recordset(s.gone) as g (client_id text, host text)
),

gone as (
  select distinct on (cluster, group_id)
    cluster,
    group_id,
    client_id,
    host,
    count(*) as times,
    percentile_cont(0.5) within group (order by extract(epoch from since_last)) as spacing_seconds
  from leave
  group by cluster, group_id, client_id, host
  order by cluster asc, group_id asc, count(*) desc, client_id asc, host asc
),

arrived as (
  select
    cluster,
    group_id,
    case when count(one.records) = count(*) then sum(one.records) end as records
  from restless
  inner join metrics.consumer_partition_hourly as c using (cluster, group_id)
  left join metrics.partition_hourly as p using (hour, cluster, topic, partition)
  cross join lateral (select p.log_end_offset_last - p.log_end_offset_first as records) as one
  where c.hour = :hour
  group by cluster, group_id
),

-- What was there the hour before: a group that wasn't, in a cluster that was, is new.
earlier as (
  select
    cluster,
    group_id,
    lag_records,
    true as is_known
  from metrics.consumer_group_hourly
  where hour = :hour - interval '1 hour'
),

restoring as (
  select distinct cluster, application_id
  from public.processes_restoring(:hour, :hour)
)

select
  case
    when g.rebalances is null then 'unread'
    when r.cluster is null then 'calm'
    when p.slots_hit < :slots then 'burst'
    when e.is_known is null and exists (select from earlier where earlier.cluster = g.cluster) then 'young'
    when w.cluster is not null then 'restores'
    when a.records is null or g.records_consumed is null then 'cost_unknown'
    when
      g.records_consumed >= (1 - :lost_share) * a.records
      and coalesce(g.lag_records - e.lag_records <= :lost_share * a.records, true)
      then 'no_cost'
    when p.is_untold then 'epochs'
    when p.is_same_members or o.times is null then 'nobody_leaves'
    when abs(o.spacing_seconds * 1000 - p.poll_interval_ms) <= :tolerance * p.poll_interval_ms then 'slow_records'
    when abs(o.spacing_seconds * 1000 - p.session_timeout_ms) <= :tolerance * p.session_timeout_ms then 'expires'
    else 'leaves'
  end as reason,
  g.cluster,
  g.group_id,
  coalesce(p.rebalances, 0) as rebalances,
  p.slots_hit,
  o.client_id as gone_client,
  o.host as gone_host,
  o.times as gone_times,
  o.spacing_seconds,
  p.poll_interval_ms,
  p.session_timeout_ms,
  a.records as arrived_records,
  g.records_consumed as read_records,
  g.lag_records,
  g.members
from metrics.consumer_group_hourly as g
left join pace as p on g.cluster = p.cluster and g.group_id = p.group_id
left join restless as r on g.cluster = r.cluster and g.group_id = r.group_id
left join gone as o on g.cluster = o.cluster and g.group_id = o.group_id
left join arrived as a on g.cluster = a.cluster and g.group_id = a.group_id
left join earlier as e on g.cluster = e.cluster and g.group_id = e.group_id
left join restoring as w on g.cluster = w.cluster and g.group_id = w.application_id
where g.hour = :hour
