/*
title: Consumer group lags and doesn't catch up
severity: warning
owner: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly]
identity: [cluster, group_id]
params:
  late_seconds: {default: 600, unit: seconds, why: "readers of a stream notice ten minutes"}
  recover_seconds: {default: 3600, unit: seconds, why: "a lag that is gone within the next hour needs nobody"}
open_after_hours: 1
clear_after_hours: 2
follows_from: [ebs_volume_starving, app_memory_heavy, state_store_schema_drift, partitions_under_replicated, consumer_rogue]
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
    w.lag_slope_per_second,
    w.client_id,
    w.host,
    format('%s-%s', w.topic, w.partition) as worst_place,
    case
      when s.bad_places > 0 then 'alarm'
      when s.unknown_places > 0 or (s.places is null and (g.state is null or g.partitions is null)) then 'skip'
      else 'ok'
    end as status
  from metrics.consumer_group_hourly as g
  left join summary as s using (cluster, group_id)
  left join worst as w using (cluster, group_id)
  where g.hour = cast(:hour as timestamptz)
)

select
  format('%s/%s', cluster, group_id) as resource,
  status,
  case
    when status = 'skip' and places is null then 'The group''s committed offsets aren''t known.'
    when status = 'skip' then format('The lag of %s of %s partitions isn''t known.', unknown_places, places)
    when coalesce(places, 0) = 0 then 'The group has no committed offsets.'
    when status = 'ok' and coalesce(lag_records, 0) = 0 then format('No lag on %s partitions.', places)
    when status = 'ok'
      then format('Keeps up, at most %s s behind (%s).', lag_seconds, worst_place)
    when still_places > 0 and members = 0
      then format(
        'Nobody runs in the group, and %s is %s min behind with %s records to read.',
        worst_place, lag_seconds / 60, worst_lag_records
      )
    when still_places > 0 and moving_places > 0
      then format(
        '%s stands still at offset %s while %s other partitions move; it is %s min behind, %s records.',
        worst_place, committed_offset, moving_places, lag_seconds / 60, worst_lag_records
      )
    when still_places > 0
      then format(
        '%s stands still at offset %s, %s min behind, %s records; %s of %s partitions are so.',
        worst_place, committed_offset, lag_seconds / 60, worst_lag_records, still_places, places
      )
    else format(
      '%s is %s min behind, %s records, and %s.',
      worst_place, lag_seconds / 60, worst_lag_records,
      case
        when recover_seconds is null then 'the lag doesn''t fall'
        else format('needs %s h more to catch up', round((recover_seconds / 3600)::numeric, 1))
      end
    )
  end as reason,
  cluster,
  group_id,
  case
    when status <> 'alarm' then null
    when still_places > 0 and members = 0
      then format(
        'Start the application of group %s; if it is retired, delete the group with kafka-consumer-groups --delete.',
        group_id
      )
    when still_places > 0
      then format(
        'Look at the log of %s for the record at %s offset %s. If it takes longer than max.poll.interval.ms, lower'
        || ' max.poll.records or skip it.',
        coalesce(format('client %s on %s', client_id, host), 'the member that owns the partition'),
        worst_place, committed_offset
      )
    else format(
      'The worst partition gets about %s records/s and is read at %s: speed the processing up, or add members (now %s)'
      || ' up to the number of partitions.',
      coalesce(round((consumed_per_second + lag_slope_per_second)::numeric, 1)::text, 'an unknown number of'),
      coalesce(round(consumed_per_second::numeric, 1)::text, 'an unknown rate'),
      coalesce(members::text, 'unknown')
    )
  end as advice,
  jsonb_build_array(format('group:%s/%s', cluster, group_id), format('app:%s', group_id))
  || case
    when topic is null then '[]'::jsonb else jsonb_build_array(format('topic:%s/%s', cluster, topic))
  end as touches,
  state,
  members,
  rebalances,
  places as partitions,
  bad_places as late_partitions,
  moving_places as moving_partitions,
  topic as worst_topic,
  partition as worst_partition,
  partition_status as worst_partition_status,
  committed_offset,
  committed_at,
  moved_at,
  lag_records as total_lag_records,
  worst_lag_records,
  lag_seconds,
  recover_seconds as catches_up_in_seconds,
  consumed_per_second as consumed_records_per_second,
  client_id,
  host
from verdict
order by cluster, group_id
