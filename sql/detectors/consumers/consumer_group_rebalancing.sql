/*
title: Continuous rebalancing
resource_kind: group
owner_role: application
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.group_step_hourly, metrics.consumer_partition_hourly,
  metrics.partition_hourly, metrics.jvm_app_hourly]
params:
  steps: {default: 6, unit: rebalances, why: "per hour; one every ten minutes is not a deployment"}
  slots:
    default: 4
    unit: slots
    why: "of the six ten-minute slots of the hour; the rebalances of a deployment fall into one or two"
  merge_seconds:
    default: 60
    unit: s
    why: "cooperative rebalancing takes two rebalances for one change, some seconds apart"
  lost_share: {default: 0.3, unit: share of the incoming records, why: "a smaller backlog has no impact"}
  tolerance:
    default: 0.25
    unit: ratio
    why: "of a timeout; clients notice it up to one heartbeat or poll later"
key_metrics: [rebalances, gone_client, gone_times, arrived_records, read_records]
verdicts:
  poll_interval_exceeded:
    status: firing
    severity: warning
    message: &message >
      Group {{ group_id }} rebalanced {{ rebalances | counted("time") }} in one hour and processed {{ read_records }} of
      {{ arrived_records }} that arrived.
    details:
      - >
        Client {{ gone_client }} on {{ gone_host }} left {{ gone_times | counted("time") }}, every {{ spacing_seconds }}
        (max.poll.interval.ms {{ poll_interval_ms }}).
      - "Processing the records of one poll takes longer than max.poll.interval.ms."
    impact: &impact "Consumers stop during each rebalance, and the lag of the group grows."
    actions:
      - "Lower max.poll.records of {{ gone_client }}, so that one poll is processed well within {{ poll_interval_ms }}."
      - "Or raise max.poll.interval.ms."
      - "Set a timeout for calls to other systems, and check whether a single record takes this long."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"
  session_expired:
    status: firing
    severity: warning
    message: *message
    details:
      - >
        Client {{ gone_client }} on {{ gone_host }} was removed {{ gone_times | counted("time") }}, every
        {{ spacing_seconds }} (session.timeout.ms {{ session_timeout_ms }}).
      - "The client sent no heartbeat within session.timeout.ms."
    impact: *impact
    actions:
      - "Check {{ gone_client }} on {{ gone_host }} for OOM kills, restarts, GC pauses, and network failures."
      - "Set group.instance.id (static membership): a member that returns in time causes no rebalance."
    commands: *commands
  member_leaves:
    status: firing
    severity: warning
    message: *message
    details:
      - "Client {{ gone_client }} on {{ gone_host }} left most often: {{ gone_times | counted('time') }}."
    impact: *impact
    actions:
      - "Read the log of {{ gone_client }} on {{ gone_host }}: it exits or leaves the group, then joins again."
    commands: *commands
  members_unchanged:
    status: firing
    severity: warning
    message: *message
    details:
      - "Most rebalances ended with the same members."
    impact: *impact
    actions:
      - "Check whether members subscribe by a pattern that new topics match, or change their subscription."
      - "Check whether all members use the same partition.assignment.strategy."
    commands: *commands
  members_not_reported:
    status: firing
    severity: warning
    message: *message
    details:
      - "Groups of this protocol do not report which member left."
    impact: *impact
    actions:
      - "Read the logs of the members: find the one that exits or is removed, then joins again."
    commands: *commands
  no_impact:
    status: ok
    message: "Group {{ group_id }} rebalanced {{ rebalances | counted('time') }} and processed {{ read_records }} of {{ arrived_records }}."
  restoring:
    status: ok
    message: "Group {{ group_id }} rebalanced {{ rebalances | counted('time') }} while Kafka Streams restored state stores."
  deployment:
    status: ok
    message: "Group {{ group_id }} rebalanced {{ rebalances | counted('time') }} within {{ slots_hit | counted('ten-minute slot') }}."
  new_group:
    status: ok
    message: "Group {{ group_id }} rebalanced {{ rebalances | counted('time') }} in its first hour, while its members start."
  stable: {status: ok, message: "Group {{ group_id }} rebalanced {{ rebalances | counted('time') }} in one hour."}
  history_unreadable:
    status: unknown
    message: "Not evaluated: the commit and membership history of group {{ group_id }} is unreadable."
  impact_unknown:
    status: unknown
    message: >
      Not evaluated: group {{ group_id }} rebalanced {{ rebalances | counted("time") }}, but arrived records,
      processed records, or lag were not reported.
causes:
  rebalances_stop_group:
    [poll_interval_exceeded, session_expired, member_leaves, members_unchanged, members_not_reported]
caused_by:
  poison_pill_rebalances_group: [poll_interval_exceeded, session_expired, member_leaves]
  garbage_collection_slows_group: [poll_interval_exceeded, session_expired, member_leaves]
  restarts_rebalance_group: [session_expired, member_leaves, members_not_reported]
open_after_hours: 2
clear_after_hours: 3
description: |
  Fires on at least `steps` rebalances per hour in at least `slots` of its six ten-minute slots, if they have an impact:
  lost_share or more of the incoming records was not processed, or the lag grew by as much. Rebalances within
  merge_seconds of the previous one are not counted; where they follow each other all the time, every second minute is.
  The reason follows from the client that left most often. If the median time between two departures is near its
  max.poll.interval.ms, processing is too slow; near its session.timeout.ms, its session expires.
runbook: |
  ## Meaning
  The group rebalances so often that it cannot keep up.

  ## Impact
  Consumers stop during each rebalance, and the lag grows.

  ## Diagnosis
  1. Check which client leaves and how often. metrics.group_step_hourly lists the members of each rebalance.
  2. At the pace of max.poll.interval.ms, processing is too slow for max.poll.records, or a single record is.
  3. At the pace of session.timeout.ms, the process is OOM-killed, paused by GC, or disconnected.
  4. Otherwise check subscriptions by pattern, assignors that differ between members, and deployments in a loop.

  ## Mitigation
  1. Lower max.poll.records, or raise max.poll.interval.ms.
  2. Set group.instance.id (static membership).
limitations: |
  Members that join and leave within one generation are not detected. Groups of newer protocols (KIP-848, KIP-1071) do not
  report their members here, and their epochs do not stop consumers; they fire only with an impact. A broker restart moves
  its groups to another coordinator without a new generation.
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
    bool_and(members is null) as is_unreported,
    count(*) filter (where jsonb_array_length(gone) + jsonb_array_length(come) = 0) * 2 > count(*) as is_same_members
  from step
  group by cluster, group_id
),

rebalancing as materialized (
  select * from pace where rebalances >= :steps
),

-- A client that leaves and returns has a new member ID each time, but the same client ID and host.
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
  from rebalancing
  inner join metrics.consumer_partition_hourly as c using (cluster, group_id)
  left join metrics.partition_hourly as p using (hour, cluster, topic, partition)
  cross join lateral (select p.log_end_offset_last - p.log_end_offset_first as records) as one
  where c.hour = :hour
  group by cluster, group_id
),

-- A group that is missing in the previous hour, in a cluster that is not, is new.
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
    when g.rebalances is null then 'history_unreadable'
    when r.cluster is null then 'stable'
    when p.slots_hit < :slots then 'deployment'
    when e.is_known is null and exists (select from earlier where earlier.cluster = g.cluster) then 'new_group'
    when w.cluster is not null then 'restoring'
    when a.records is null or g.records_consumed is null then 'impact_unknown'
    when i.keeps_up and (g.lag_records is null or (e.is_known and e.lag_records is null)) then 'impact_unknown'
    when i.keeps_up and coalesce(g.lag_records - e.lag_records <= :lost_share * a.records, true) then 'no_impact'
    when p.is_unreported then 'members_not_reported'
    when p.is_same_members or o.times is null then 'members_unchanged'
    when abs(o.spacing_seconds * 1000 - p.poll_interval_ms) <= :tolerance * p.poll_interval_ms then 'poll_interval_exceeded'
    when abs(o.spacing_seconds * 1000 - p.session_timeout_ms) <= :tolerance * p.session_timeout_ms then 'session_expired'
    else 'member_leaves'
  end as reason,
  g.cluster,
  g.group_id,
  coalesce(p.rebalances, 0) as rebalances,
  p.slots_hit,
  o.client_id as gone_client,
  ltrim(o.host, '/') as gone_host,
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
left join rebalancing as r on g.cluster = r.cluster and g.group_id = r.group_id
left join gone as o on g.cluster = o.cluster and g.group_id = o.group_id
left join arrived as a on g.cluster = a.cluster and g.group_id = a.group_id
left join earlier as e on g.cluster = e.cluster and g.group_id = e.group_id
left join restoring as w on g.cluster = w.cluster and g.group_id = w.application_id
cross join lateral (select g.records_consumed >= (1 - :lost_share) * a.records as keeps_up) as i
where g.hour = :hour
