/*
title: Consumer lag not recovering
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly,
  inventory.consumer_group_hourly]
params:
  late_seconds: {default: 600, unit: seconds, why: "users of a stream notice a delay of ten minutes"}
  recover_seconds: {default: 3600, unit: seconds, why: "a lag that recovers within the next hour needs no action"}
  still_seconds:
    default: 300
    unit: seconds
    why: "the default of max.poll.interval.ms, after which another member gets the partition"
  still_gaps:
    default: 3
    unit: commit gaps
    why: "a group that commits every 20 minutes is stuck after an hour; twice the typical gap is a slow batch"
  tail_records:
    default: 1
    unit: records
    why: "clients that commit the last offset instead of the next, and transaction markers, leave one record"
  speed_seconds: {default: 120, unit: seconds, why: "a rate over fewer seconds covers one or two polls"}
key_metrics: [lag_seconds, worst_lag_records, late_partitions, partitions, members]
verdicts:
  no_members:
    status: firing
    severity: warning
    message: >
      Consumer group {{ group_id }} {{ "no longer commits offsets" if commits_alone else "has no members" }} and is
      {{ lag_seconds }} behind on {{ worst_topic_partition }} ({{ worst_lag_records }}).
    details:
      - "{% if commits_alone %}A job commits offsets for the group without members, as Flink and Samza do.{% endif %}"
    impact: &impact "Records wait until the group processes them, and retention may delete them first."
    actions:
      - >
        {% if commits_alone %}Check whether the Flink or Samza job runs and whether its checkpoints complete.{% endif %}
      - "{% if not commits_alone %}Start the application of the group.{% endif %}"
      - "If the group is retired, delete {{ 'its checkpoint topic' if is_samza else 'the group with its offsets (kafka-consumer-groups.sh --delete)' }}."
    commands:
      - "{% if not is_samza %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}{% endif %}"
  partition_stuck:
    status: firing
    severity: warning
    message: >
      Consumer group {{ group_id }} is stuck on
      {{ worst_topic_partition }}{% if committed_offset.value is not none %} at offset {{ committed_offset.value }}{% endif %}, {{ lag_seconds }} behind ({{ worst_lag_records }}).
    details:
      - "{{ moving_partitions | counted('other partition') }} {{ moving_partitions | plural('progresses', 'progress') }}."
    impact: *impact
    actions: &stuck_actions
      - "Check the log of the consumer that reads {{ worst_topic_partition }}{% if committed_offset.value is not none %} at offset {{ committed_offset.value }}{% endif %}."
      - "{% if client_id %}Check client {{ client_id }} on {{ host }} first: this partition is assigned to it.{% endif %}"
      - "{% if commits_alone and not client_id %}Check the Flink or Samza job that commits offsets for the group.{% endif %}"
      - "If processing takes longer than max.poll.interval.ms, lower max.poll.records, or skip the record."
    commands: &print_record
      - "{% if committed_offset.value is not none %}kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ worst_topic }} --partition {{ worst_partition }} --offset {{ committed_offset }} --max-messages 1{% endif %}"
  stuck:
    status: firing
    severity: warning
    message: >
      Consumer group {{ group_id }} is stuck on {{ stuck_partitions }} of {{ partitions }} partitions, {{ lag_seconds }}
      behind on {{ worst_topic_partition }} ({{ worst_lag_records }}).
    details:
      - "{% if committed_offset.value is not none %}The committed offset of {{ worst_topic_partition }} is {{ committed_offset.value }}.{% endif %}"
      - "{% if moving_partitions %}{{ moving_partitions | counted('other partition') }} {{ moving_partitions | plural('progresses', 'progress') }}.{% endif %}"
    impact: *impact
    actions: *stuck_actions
    commands: *print_record
  falling_behind:
    status: firing
    severity: warning
    message: >
      Consumer group {{ group_id }} is {{ lag_seconds }} behind on {{ worst_topic_partition }} ({{ worst_lag_records }}), and its lag
      does not recover.
    details: &rates
      - >
        {% if speed_known %}Records arrive on {{ worst_topic_partition }} at {{ arriving_records_per_second }} and are consumed at
        {{ consumed_records_per_second }}.{% endif %}
    impact: *impact
    actions: &scale
      - "{% if commits_alone %}Raise the parallelism of the job, up to the number of partitions.{% endif %}"
      - "{% if not commits_alone %}Add members (now {{ members }}), up to the number of partitions.{% endif %}"
      - "Speed up the processing of records."
    commands: &members
      - "{% if not is_samza and not commits_alone %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose{% endif %}"
      - "{% if not is_samza and commits_alone %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}{% endif %}"
  slow_recovery:
    status: firing
    severity: warning
    message: >
      Consumer group {{ group_id }} is {{ lag_seconds }} behind on {{ worst_topic_partition }} ({{ worst_lag_records }}) and needs at
      least {{ catches_up_in_seconds }} to recover.
    details:
      - "{% if catches_up_in_at_most_seconds %}Recovery takes at most {{ catches_up_in_at_most_seconds }}.{% endif %}"
    impact: *impact
    actions: *scale
    commands: *members
  recovery_unknown:
    status: unknown
    message: >
      Not evaluated: group {{ group_id }} is {{ lag_seconds }} behind on {{ worst_topic_partition }}, and the rate does not show
      whether it recovers within {{ recover_seconds }}.
    details:
      - "{% if catches_up_in_seconds %}Recovery takes at least {{ catches_up_in_seconds }}.{% endif %}"
  lag_uncertain:
    status: unknown
    message: >
      Not evaluated: the lag of {{ worst_topic_partition }} is an estimate of at least {{ lag_at_least_seconds }}, as record
      timestamps are missing.
  offset_out_of_range:
    status: unknown
    message: >
      Not evaluated: {{ beyond_partitions | counted("committed offset") }} {{ beyond_partitions | plural("is", "are") }}
      above the log-end offset, such as {{ beyond_topic_partition }}.
    details:
      - "The topic was recreated, or offsets were set manually."
    actions:
      - >
        {% if is_samza %}Stop the job, and reset its checkpoint (Samza CheckpointTool).{% else %}Stop the group, and reset its
        offsets (--execute instead of --dry-run): --to-earliest reads all records that the topic has now, --to-latest skips
        them.{% endif %}
    commands:
      - "{% if not is_samza %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --topic {{ beyond_topic }} --reset-offsets --to-earliest --dry-run{% endif %}"
  keeps_up: {status: ok, message: "Consumer group {{ group_id }} keeps up, at most {{ lag_seconds }} behind ({{ worst_topic_partition }})."}
  stale_offsets:
    status: ok
    message: "Consumer group {{ group_id }} keeps up; it has stale offsets on {{ stale_partitions | counted('partition') }}."
    details:
      - "No member is assigned {{ stale_topics }} now."
    actions:
      - "Delete the stale offsets, or fix the subscription if the group should still read the topic."
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --delete-offsets {% for topic in stale_topics.value %}--topic {{ topic }} {% endfor %}"
  no_lag: {status: ok, message: "Consumer group {{ group_id }} has no lag on {{ partitions | counted('partition') }}."}
  no_commits: {status: ok, message: "Consumer group {{ group_id }} has no committed offsets."}
  lag_unknown:
    status: unknown
    message: "Not evaluated: the lag of {{ unknown_partitions }} of {{ partitions | counted('partition') }} is unknown, in records or in seconds."
  share_group:
    status: unknown
    message: "Not evaluated: {{ group_id }} is a share group, and the Kafka clients for Python do not report its lag."
  commits_unknown:
    status: unknown
    message: "Not evaluated: committed offsets of group {{ group_id }} were not reported."
causes:
  lag_delays_records: [partition_stuck, stuck, falling_behind, slow_recovery]
  lag_nears_retention: [no_members, partition_stuck, stuck, falling_behind, slow_recovery]
caused_by:
  broker_delays_consumers: [stuck, falling_behind, slow_recovery]
  outage_delays_consumers: [stuck, falling_behind, slow_recovery]
  instance_delays_consumers: [stuck, falling_behind, slow_recovery]
  claimed_volume_delays_consumers: [stuck, falling_behind, slow_recovery]
  offline_partition_stops_consumers: [partition_stuck, stuck, falling_behind]
  transaction_stops_consumers: [partition_stuck, stuck]
  reassignment_delays_consumers: [stuck, falling_behind, slow_recovery]
  failed_connector_stops_group: [no_members, partition_stuck, stuck, falling_behind, slow_recovery]
  dead_threads_stop_group: [no_members, partition_stuck, stuck, falling_behind, slow_recovery]
  memory_stops_group: [no_members]
  garbage_collection_slows_group: [stuck, falling_behind, slow_recovery]
  external_calls_slow_group: [stuck, falling_behind, slow_recovery]
  rebalances_stop_group: [stuck, falling_behind, slow_recovery]
  poison_pill_stops_partition: [partition_stuck, stuck]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  ## Meaning
  The consumer lag of the group is high and does not recover within recover_seconds.

  ## Impact
  Records wait until the group processes them, and retention may delete them first.

  ## Diagnosis
  1. Without members, check whether the application of the group runs.
  2. If one partition is stuck while others progress, check the member's log for a record slower than max.poll.interval.ms.
  3. If all partitions fall behind, compare the rates of arriving and consumed records.

  ## Mitigation
  1. Start the application, or delete the group if it is retired: this deletes its committed offsets.
  2. Lower max.poll.records, set a timeout for processing, or skip the record.
  3. Add members up to the number of partitions, or speed up processing. One member at most processes a partition.
limitations: |
  Lag is the age of the first uncommitted record by its producer's clock. A clock that is ahead hides lag until its time has
  passed, unless commits, the log-end offset of an hour ago, or later records refute it. Where Streamwarden may not read a
  topic, aborted records at the end of its logs count until others follow. Not covered: groups that store offsets
  elsewhere, deleted topics, and a single record at the end of a log until a second one follows.
*/
with alone as materialized (
  select *
  from public.commits_without_members(:hour)
),

partition_lag as (
  select
    p.*,
    g.members,
    a.cluster is not null as commits_alone,
    p.lag_records is null or (p.lag_records > 0 and p.lag_seconds is null) as is_unknown,
    coalesce(p.waiting_records, p.lag_records) > :tail_records as has_lag,
    p.lag_records is null and p.committed_offset > p.log_end_offset as is_beyond,
    coalesce(p.lag_seconds_low, p.lag_seconds) as lag_low,
    case when p.lag_seconds_low is null then p.lag_seconds else coalesce(p.lag_seconds_high, 'infinity') end as lag_high,
    coalesce(p.reading_seconds >= :speed_seconds, false) as has_speed,
    p.lag_records / nullif(greatest(p.reading_per_second_high - p.arriving_per_second, 0), 0) as soonest,
    p.lag_records / nullif(greatest(p.reading_per_second_low - p.arriving_per_second, 0), 0) as latest
  from metrics.consumer_partition_hourly as p
  left join metrics.consumer_group_hourly as g using (hour, cluster, group_id)
  left join alone as a using (cluster, group_id)
  where p.hour = :hour
  and (
    (p.cluster, p.topic) in (
      select t.cluster, t.topic from inventory.topic_hourly as t where t.hour = :hour
    )
    -- A backfilled hour has no list of topics; a topic with a log-end offset existed.
    or (
      p.log_end_offset is not null and p.cluster not in (
        select t.cluster from inventory.topic_hourly as t where t.hour = :hour
      )
    )
  )
),

-- The typical time between two commits of the partitions of groups with lag.
rhythm as (
  select
    g.cluster,
    g.group_id,
    r.*
  from (select distinct cluster, group_id from partition_lag where lag_seconds >= :still_seconds) as g
  cross join lateral public.commit_gaps(g.cluster, g.group_id, :hour, 0.95) as r
),

paced as (
  select
    p.*,
    coalesce(r.gap_seconds, 0) as gap_seconds,
    -- A group without members will not commit again, so one gap is enough. A job that commits without members may run.
    greatest(:still_seconds, case when p.members = 0 and not p.commits_alone then 1 else :still_gaps end * r.gap_seconds) as still_limit
  from partition_lag as p
  left join rhythm as r
    on p.cluster = r.cluster and p.group_id = r.group_id and p.topic = r.topic and p.partition = r.partition
    and p.lag_seconds >= :still_seconds
),

-- A partition with infrequent commits has a lag since its last commit without being late.
paused as (
  select
    *,
    case when commits = 0 then gap_seconds else least(coalesce(silent_seconds, 0), gap_seconds) end as pause_seconds,
    case when has_speed then soonest end as recover_seconds,
    case when has_speed then latest end as recover_latest
  from paced
),

observed as (
  select
    *,
    has_lag and still_seconds >= still_limit and lag_low >= still_limit as is_still,
    has_lag and still_seconds >= still_limit and lag_high >= still_limit as is_perhaps_still,
    has_lag and lag_low - pause_seconds >= :late_seconds as is_late,
    has_lag and lag_high - pause_seconds >= :late_seconds as is_perhaps_late,
    silent_seconds >= still_limit as is_silent,
    coalesce(recover_seconds <= :recover_seconds, rewinds > 0 and not has_speed, false) as may_recover,
    coalesce(recover_latest <= :recover_seconds, false) as recovers
  from paused
),

stated as (
  select
    *,
    coalesce(is_still and not is_assigned and members > 0, false) as is_stale,
    is_still and coalesce(is_assigned or members = 0, true) as is_stuck
  from observed
),

classified as (
  select
    *,
    not is_stale and (is_stuck or (is_late and not may_recover)) as is_bad,
    not is_stale and is_late and may_recover and not recovers as is_open,
    not is_stale and not recovers and (
      (is_perhaps_still and not is_still) or (is_perhaps_late and not is_late and not may_recover)
    ) as is_uncertain
  from stated
),

worst as (
  select distinct on (cluster, group_id) *
  from classified
  where lag_records is not null and not is_stale
  order by
    cluster asc, group_id asc, is_bad desc nulls last, is_open desc nulls last, is_uncertain desc nulls last, lag_seconds desc nulls last, lag_records desc,
    topic asc, partition asc
),

summary as (
  select
    cluster,
    group_id,
    count(*) as partitions,
    count(*) filter (where is_unknown) as unknown_partitions,
    count(*) filter (where is_bad) as late_partitions,
    (
      array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by lag_seconds desc, topic asc, partition asc)
        filter (where is_bad)
    )[:500] as affected,
    count(*) filter (where is_stuck) as stuck_partitions,
    count(*) filter (where records_consumed > 0 and is_stuck is not true) as moving_partitions,
    count(*) filter (where is_open) as open_partitions,
    count(*) filter (where is_uncertain) as uncertain_partitions,
    count(*) filter (where is_beyond) as beyond_partitions,
    min(topic) filter (where is_beyond) as beyond_topic,
    min(topic || '-' || partition) filter (where is_beyond) as beyond_topic_partition,
    count(*) filter (where is_stale) as stale_partitions,
    to_jsonb(array_agg(distinct topic) filter (where is_stale)) as stale_topics,
    bool_and(is_silent) filter (where is_stuck) as is_silent,
    sum(lag_records) filter (where not is_stale) as lag_records
  from classified
  group by cluster, group_id
)

select
  case
    when g.members = 0 and s.is_silent then 'no_members'
    when s.stuck_partitions = 1 and s.moving_partitions > 0 then 'partition_stuck'
    when s.stuck_partitions > 0 then 'stuck'
    when s.late_partitions > 0 and w.recover_seconds is null then 'falling_behind'
    when s.late_partitions > 0 then 'slow_recovery'
    when s.open_partitions > 0 then 'recovery_unknown'
    when s.uncertain_partitions > 0 then 'lag_uncertain'
    when s.beyond_partitions > 0 then 'offset_out_of_range'
    when s.unknown_partitions > 0 then 'lag_unknown'
    when s.partitions is null and i.protocol = 'share' then 'share_group'
    when s.partitions is null and (g.state is null or g.partitions is null) then 'commits_unknown'
    when s.partitions is null then 'no_commits'
    when s.stale_partitions > 0 then 'stale_offsets'
    when s.lag_records = 0 then 'no_lag'
    else 'keeps_up'
  end as reason,
  g.cluster,
  g.group_id,
  w.lag_seconds,
  w.lag_low as lag_at_least_seconds,
  w.lag_records as worst_lag_records,
  s.lag_records as total_lag_records,
  coalesce(s.late_partitions, 0) as late_partitions,
  coalesce(s.stuck_partitions, 0) as stuck_partitions,
  coalesce(s.moving_partitions, 0) as moving_partitions,
  coalesce(s.unknown_partitions, 0) as unknown_partitions,
  coalesce(s.stale_partitions, 0) as stale_partitions,
  s.stale_topics,
  coalesce(s.beyond_partitions, 0) as beyond_partitions,
  s.beyond_topic,
  s.beyond_topic_partition,
  coalesce(s.partitions, 0) as partitions,
  g.members,
  a.cluster is not null as commits_alone,
  i.protocol = 'samza' as is_samza,
  g.state,
  g.rebalances,
  w.topic as worst_topic,
  w.partition as worst_partition,
  w.topic || '-' || w.partition as worst_topic_partition,
  w.status as worst_partition_status,
  w.committed_offset,
  w.committed_at,
  w.moved_at,
  w.recover_seconds as catches_up_in_seconds,
  w.recover_latest as catches_up_in_at_most_seconds,
  w.has_speed as speed_known,
  w.arriving_per_second as arriving_records_per_second,
  w.reading_per_second_high as consumed_records_per_second,
  w.client_id,
  w.host,
  s.affected
from metrics.consumer_group_hourly as g
left join summary as s using (cluster, group_id)
left join worst as w using (cluster, group_id)
left join alone as a using (cluster, group_id)
left join inventory.consumer_group_hourly as i on g.hour = i.hour and g.cluster = i.cluster and g.group_id = i.group_id
where g.hour = :hour
