/*
title: Consumer group lags and doesn't catch up
about: group
owner: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly]
params:
  late_seconds: {default: 600, unit: seconds, why: "readers of a stream notice ten minutes"}
  recover_seconds: {default: 3600, unit: seconds, why: "a lag that is gone within the next hour needs nobody"}
convinces: [lag_seconds, worst_lag_records, late_partitions, partitions, members]
says:
  nobody:
    status: alarm
    severity: warning
    reason: "Nobody runs in the group, and {{ worst_place }} is {{ lag_seconds }} behind with {{ worst_lag_records }} to read."
    cure: "Start the application of the group; if it is retired, delete the group."
    commands: ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --delete --group {{ group_id }}"]
  one_stands:
    status: alarm
    severity: warning
    reason: "{{ worst_place }} stands still at offset {{ committed_offset.value }} while {{ moving_partitions }} other partitions move; it is {{ lag_seconds }} behind, {{ worst_lag_records }}."
    cure: "Look in the log of {% if client_id %}client {{ client_id }} on {{ host }}{% else %}the member that owns the partition{% endif %} for the record at {{ worst_place }} offset {{ committed_offset.value }}. If it takes longer than max.poll.interval.ms, lower max.poll.records or skip it."
    commands: &the_record
      - "kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ worst_topic }} --partition {{ worst_partition }} --offset {{ committed_offset }} --max-messages 1"
  stands:
    status: alarm
    severity: warning
    reason: "{{ worst_place }} stands still at offset {{ committed_offset.value }}, {{ lag_seconds }} behind, {{ worst_lag_records }}; {{ still_partitions }} of {{ partitions }} partitions are so."
    cure: "Look in the log of {% if client_id %}client {{ client_id }} on {{ host }}{% else %}the member that owns the partition{% endif %} for the record at {{ worst_place }} offset {{ committed_offset.value }}. If it takes longer than max.poll.interval.ms, lower max.poll.records or skip it."
    commands: *the_record
  falls_behind:
    status: alarm
    severity: warning
    reason: "{{ worst_place }} is {{ lag_seconds }} behind, {{ worst_lag_records }}, and the lag doesn't fall."
    cure: &faster "The worst partition gets {{ arriving_records_per_second }} and is read at {{ consumed_records_per_second }}: speed the processing up, or add members (now {{ members }}) up to the number of partitions."
  catches_up_slowly:
    status: alarm
    severity: warning
    reason: "{{ worst_place }} is {{ lag_seconds }} behind, {{ worst_lag_records }}, and needs {{ catches_up_in_seconds }} more to catch up."
    cure: *faster
  keeps_up: {status: ok, reason: "Keeps up, at most {{ lag_seconds }} behind ({{ worst_place }})."}
  no_lag: {status: ok, reason: "No lag on {{ partitions | counted('partition') }}."}
  no_commits: {status: ok, reason: "The group has no committed offsets."}
  lag_unknown: {status: skip, reason: "The lag of {{ unknown_partitions }} of {{ partitions }} partitions isn't known."}
  commits_unknown: {status: skip, reason: "The group's committed offsets aren't known."}
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. Nobody runs in the group: start it, or delete the group if it is retired.
  2. One partition stands still while others move: look for a record that takes longer than max.poll.interval.ms (5 min)
     in the member's log; lower max.poll.records, bound the processing time, or skip that record.
  3. All partitions fall behind: compare what arrives with what is consumed; add members up to the number of
     partitions, or make the processing faster. One partition is never processed by more than one member.
blind_spots: |
  Lag is the age of the first uncommitted record by the record's own timestamp: wrong clocks of producers show. Groups
  that keep their offsets elsewhere aren't seen. A topic that was deleted doesn't count.
*/
with place as (
  select
    p.*,
    p.lag_records is null or (p.lag_records > 0 and p.lag_seconds is null) as is_unknown,
    p.status in ('stop', 'stall') and p.lag_seconds > 0 as stands_still,
    case when p.lag_slope_per_second < 0 then p.lag_records / -p.lag_slope_per_second end as recover_seconds,
    case when p.consumed_seconds > 0 then p.records_consumed / p.consumed_seconds end as consumed_per_second
  from metrics.consumer_partition_hourly as p
  where p.hour = cast(:hour as timestamptz)
  and exists (
    select 1 from inventory.topic_hourly as t where t.hour = p.hour and t.cluster = p.cluster and t.topic = p.topic
  )
),

judged as (
  select
    *,
    stands_still
    or (lag_seconds >= :late_seconds and coalesce(recover_seconds > :recover_seconds, true)) as is_bad
  from place
),

worst as (
  select distinct on (cluster, group_id) *
  from judged
  where lag_records is not null
  order by cluster asc, group_id asc, is_bad desc nulls last, lag_seconds desc nulls last, lag_records desc, partition asc
),

summary as (
  select
    cluster,
    group_id,
    count(*) as places,
    count(*) filter (where is_unknown) as unknown_places,
    count(*) filter (where is_bad) as bad_places,
    count(*) filter (where stands_still) as still_places,
    count(*) filter (where records_consumed > 0 and not stands_still) as moving_places,
    sum(lag_records) as lag_records
  from judged
  group by cluster, group_id
),

verdict as (
  select
    g.cluster,
    g.group_id,
    g.state,
    g.partitions as known_partitions,
    g.members,
    g.rebalances,
    s.places,
    s.unknown_places,
    s.bad_places,
    s.still_places,
    s.moving_places,
    s.lag_records,
    w.topic,
    w.partition,
    w.lag_records as worst_lag_records,
    w.lag_seconds,
    w.status as partition_status,
    w.committed_offset,
    w.committed_at,
    w.moved_at,
    w.recover_seconds,
    w.consumed_per_second,
    w.consumed_per_second + w.lag_slope_per_second as arriving_per_second,
    w.client_id,
    w.host
  from metrics.consumer_group_hourly as g
  left join summary as s using (cluster, group_id)
  left join worst as w using (cluster, group_id)
  where g.hour = cast(:hour as timestamptz)
)

select
  case
    when bad_places > 0 and still_places > 0 and members = 0 then 'nobody'
    when bad_places > 0 and still_places > 0 and moving_places > 0 then 'one_stands'
    when bad_places > 0 and still_places > 0 then 'stands'
    when bad_places > 0 and recover_seconds is null then 'falls_behind'
    when bad_places > 0 then 'catches_up_slowly'
    when unknown_places > 0 then 'lag_unknown'
    when places is null and (state is null or known_partitions is null) then 'commits_unknown'
    when places is null then 'no_commits'
    when coalesce(lag_records, 0) = 0 then 'no_lag'
    else 'keeps_up'
  end as because,
  cluster,
  group_id,
  lag_seconds,
  worst_lag_records,
  lag_records as total_lag_records,
  coalesce(bad_places, 0) as late_partitions,
  coalesce(still_places, 0) as still_partitions,
  coalesce(moving_places, 0) as moving_partitions,
  coalesce(unknown_places, 0) as unknown_partitions,
  coalesce(places, 0) as partitions,
  members,
  state,
  rebalances,
  topic as worst_topic,
  partition as worst_partition,
  topic || '-' || partition as worst_place,
  partition_status as worst_partition_status,
  committed_offset,
  committed_at,
  moved_at,
  recover_seconds as catches_up_in_seconds,
  arriving_per_second as arriving_records_per_second,
  consumed_per_second as consumed_records_per_second,
  client_id,
  host
from verdict
