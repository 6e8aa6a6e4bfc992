/*
title: Consumer group lags and doesn't catch up
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly, inventory.consumer_group_hourly]
params:
  late_seconds: {default: 600, unit: seconds, why: "readers of a stream notice ten minutes"}
  recover_seconds: {default: 3600, unit: seconds, why: "a lag that is gone within the next hour needs nobody"}
  still_seconds: {default: 300, unit: seconds, why: "max.poll.interval.ms by default: what takes longer than that is given to another member"}
  still_gaps: {default: 3, unit: commit gaps, why: "who commits every 20 minutes stands still after an hour; a gap of twice the usual is a slow batch"}
  tail_records: {default: 1, unit: records, why: "clients that commit the last offset instead of the next, and the marker at the end of a transaction, leave one"}
  speed_seconds: {default: 120, unit: seconds, why: "a speed of fewer seconds is of one poll or two"}
key_metrics: [lag_seconds, worst_lag_records, late_partitions, partitions, members]
verdicts:
  nobody:
    status: firing
    severity: warning
    message: "{% if commits_alone %}Nobody commits for the group any more{% else %}Nobody runs in the group{% endif %}, and {{ worst_place }} is {{ lag_seconds }} behind with {{ worst_lag_records }} to read."
    actions:
      - "{% if commits_alone %}In the last 24 hours nobody was seen in the group while offsets were committed for it, as {% if is_samza %}Samza's{% else %}Flink's{% endif %} jobs do with each checkpoint: see whether the job runs and its checkpoints complete; if{% else %}Start the application of the group; if{% endif %} it is retired, delete {% if is_samza %}its checkpoint topic{% else %}the group{% endif %}."
    commands: ["{% if not is_samza %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --delete --group {{ group_id }}{% endif %}"]
  one_stands:
    status: firing
    severity: warning
    message: "{{ worst_place }} stands still at offset {{ committed_offset.value }} while {{ moving_partitions }} other partitions move; it is {{ lag_seconds }} behind, {{ worst_lag_records }}."
    actions:
      - "Look in the log of {% if client_id %}client {{ client_id }} on {{ host }}{% elif commits_alone %}the job that commits for the group without being a member, as {% if is_samza %}Samza's{% else %}Flink's{% endif %} do,{% else %}the member that owns the partition{% endif %} for the record at {{ worst_place }} offset {{ committed_offset.value }}. If it takes longer than max.poll.interval.ms, lower max.poll.records or skip it."
    commands: &the_record
      - "kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ worst_topic }} --partition {{ worst_partition }} --offset {{ committed_offset }} --max-messages 1"
  stands:
    status: firing
    severity: warning
    message: "{{ worst_place }} stands still at offset {{ committed_offset.value }}, {{ lag_seconds }} behind, {{ worst_lag_records }}; {{ still_partitions }} of {{ partitions }} partitions are so."
    actions:
      - "Look in the log of {% if client_id %}client {{ client_id }} on {{ host }}{% elif commits_alone %}the job that commits for the group without being a member, as {% if is_samza %}Samza's{% else %}Flink's{% endif %} do,{% else %}the member that owns the partition{% endif %} for the record at {{ worst_place }} offset {{ committed_offset.value }}. If it takes longer than max.poll.interval.ms, lower max.poll.records or skip it."
    commands: *the_record
  falls_behind:
    status: firing
    severity: warning
    message: "{{ worst_place }} is {{ lag_seconds }} behind, {{ worst_lag_records }}, and {% if speed_known %}the lag doesn't fall{% else %}nothing shows that the lag falls{% endif %}."
    actions:
      - &faster "{% if speed_known %}The worst partition gets {{ arriving_records_per_second }} and is read at {{ consumed_records_per_second }}: speed{% else %}Speed{% endif %} the processing up, or {% if commits_alone %}raise the parallelism of the job that commits for the group{% else %}add members (now {{ members }}){% endif %} up to the number of partitions."
    commands: &who_reads ["{% if not is_samza %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}{% if not commits_alone %} --members --verbose{% endif %}{% endif %}"]
  catches_up_slowly:
    status: firing
    severity: warning
    message: "{{ worst_place }} is {{ lag_seconds }} behind, {{ worst_lag_records }}, and needs {{ catches_up_in_seconds }}{% if catches_up_in_at_most_seconds.value and catches_up_in_at_most_seconds.value > 1.2 * catches_up_in_seconds.value %} to {{ catches_up_in_at_most_seconds }}{% endif %} more to catch up."
    actions:
      - *faster
    commands: *who_reads
  may_catch_up:
    status: unknown
    message: "{{ worst_place }} is {{ lag_seconds }} behind, {{ worst_lag_records }}; whether that is gone within {{ recover_seconds }} can't be said yet{% if catches_up_in_seconds %}: in {{ catches_up_in_seconds }} at best{% endif %}."
  guessed:
    status: unknown
    message: "{{ worst_place }} is at least {{ lag_at_least_seconds }} behind; whether it is late can't be said, as the time of its first unread record is only guessed."
  beyond_the_end:
    status: unknown
    message: "{{ beyond_partitions | counted('partition') }} with commits beyond the log's end, as of {{ beyond_place }}: the topic was made anew, or offsets were set by hand."
    actions:
      - "A consumer there starts by auto.offset.reset, or waits for offsets that may never come: set {% if is_samza %}the job's checkpoint anew (Samza's CheckpointTool){% else %}the group's offsets anew{% endif %} while it is stopped."
    commands: ["{% if not is_samza %}kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --topic {{ beyond_topic }} --reset-offsets --to-latest --dry-run{% endif %}"]
  keeps_up: {status: ok, message: "Keeps up, at most {{ lag_seconds }} behind ({{ worst_place }})."}
  left_offsets:
    status: ok
    message: "Keeps up with what it reads. No member reads {{ left_topics }} any more: {{ left_partitions | counted('partition') }} with old offsets, not judged."
    actions:
      - "Delete the offsets that the group has left behind; where it should still read the topic, look at its subscription."
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --delete-offsets {% for topic in left_topics.value %}--topic {{ topic }} {% endfor %}"
  no_lag: {status: ok, message: "No lag on {{ partitions | counted('partition') }}."}
  no_commits: {status: ok, message: "The group has no committed offsets."}
  lag_unknown: {status: unknown, message: "The lag of {{ unknown_partitions }} of {{ partitions }} partitions isn't known."}
  commits_unknown: {status: unknown, message: "The group's committed offsets aren't known."}
causes:
  lag_delays_records: [one_stands, stands, falls_behind, catches_up_slowly]
  lag_nears_retention: [nobody, one_stands, stands, falls_behind, catches_up_slowly]
caused_by:
  broker_delays_consumers: [stands, falls_behind, catches_up_slowly]
  instance_delays_consumers: [stands, falls_behind, catches_up_slowly]
  offline_partition_stops_consumers: [one_stands, stands, falls_behind]
  transaction_stops_consumers: [one_stands, stands, falls_behind]
  reassignment_delays_consumers: [stands, falls_behind, catches_up_slowly]
  dead_threads_stop_group: [nobody, one_stands, stands, falls_behind, catches_up_slowly]
  external_calls_slow_group: [stands, falls_behind, catches_up_slowly]
  rebalances_stop_group: [stands, falls_behind, catches_up_slowly]
  poison_pill_stops_partition: [one_stands, stands]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. Nobody runs in the group: start it, or delete the group if it is retired.
  2. One partition stands still while others move: look for a record that takes longer than max.poll.interval.ms (5 min)
     in the member's log; lower max.poll.records, bound the processing time, or skip that record.
  3. All partitions fall behind: compare what arrives with what is consumed; add members up to the number of
     partitions, or make the processing faster. One partition is never processed by more than one member.
limitations: |
  Lag is the age of the first uncommitted record by its producer's clock: one that is ahead hides a lag until its time has
  passed, unless commits, the log's end of an hour ago or the records behind it refute it. Where Streamwarden may not
  read a topic, aborted records at the end of its logs count until others come behind them. Groups
  that keep their offsets elsewhere aren't seen. A topic that was deleted doesn't count. A single record that is left at
  the end of a log isn't judged until a second one comes.
*/
with alone as materialized (
  select *
  from public.commits_without_members(:hour)
),

place as (
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
  and exists (
    select 1 from inventory.topic_hourly as t where t.hour = p.hour and t.cluster = p.cluster and t.topic = p.topic
  )
),

-- What lies between two commits of a place by its last day: the usual gap within an hour, or, of who commits seldom, since
-- the commit before, as in most hours: one that wasn't gathered spoils one.
rhythm as (
  select
    cluster,
    group_id,
    topic,
    partition,
    greatest(
      percentile_cont(0.95) within group (order by commit_gap_p95_seconds),
      percentile_cont(0.5) within group (
        order by extract(epoch from committed_at - committed_before)::double precision / commits
      )
    ) as gap_seconds
  from (
    select
      d.*,
      lag(d.committed_at) over (partition by cluster, group_id, topic, partition order by d.hour) as committed_before
    from place as p
    inner join metrics.consumer_partition_hourly as d using (cluster, group_id, topic, partition)
    where p.lag_seconds >= :still_seconds
    and d.hour > p.hour - interval '24 hours' and d.hour <= p.hour
    and d.commits > 0
  ) as hours
  group by cluster, group_id, topic, partition
),

paced as (
  select
    p.*,
    coalesce(r.gap_seconds, 0) as gap_seconds,
    -- Where nobody runs nobody will commit either: one gap will do. Who commits without being a member may run.
    greatest(:still_seconds, case when p.members = 0 and not p.commits_alone then 1 else :still_gaps end * r.gap_seconds) as still_limit
  from place as p
  left join rhythm as r using (cluster, group_id, topic, partition)
),

-- A place that commits seldom is behind by what came since its commit without being late.
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
    coalesce(is_still and not is_assigned and members > 0, false) as is_left,
    is_still and coalesce(is_assigned or members = 0, true) as stands_still
  from observed
),

judged as (
  select
    *,
    not is_left and (stands_still or (is_late and not may_recover)) as is_bad,
    not is_left and is_late and may_recover and not recovers as is_open,
    not is_left and not recovers and (
      (is_perhaps_still and not is_still) or (is_perhaps_late and not is_late and not may_recover)
    ) as is_guess
  from stated
),

worst as (
  select distinct on (cluster, group_id) *
  from judged
  where lag_records is not null and not is_left
  order by
    cluster asc, group_id asc, is_bad desc nulls last, is_open desc nulls last, is_guess desc nulls last, lag_seconds desc nulls last, lag_records desc,
    topic asc, partition asc
),

summary as (
  select
    cluster,
    group_id,
    count(*) as places,
    count(*) filter (where is_unknown) as unknown_places,
    count(*) filter (where is_bad) as bad_places,
    (
      array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by lag_seconds desc, topic asc, partition asc)
        filter (where is_bad)
    )[:500] as affected,
    count(*) filter (where stands_still) as still_places,
    count(*) filter (where records_consumed > 0 and stands_still is not true) as moving_places,
    count(*) filter (where is_open) as open_places,
    count(*) filter (where is_guess) as guessed_places,
    count(*) filter (where is_beyond) as beyond_places,
    min(topic) filter (where is_beyond) as beyond_topic,
    min(topic || '-' || partition) filter (where is_beyond) as beyond_place,
    count(*) filter (where is_left) as left_places,
    to_jsonb(array_agg(distinct topic) filter (where is_left)) as left_topics,
    bool_and(is_silent) filter (where stands_still) as is_silent,
    sum(lag_records) filter (where not is_left) as lag_records
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
    a.cluster is not null as commits_alone,
    i.protocol = 'samza' as is_samza,
    s.places,
    s.unknown_places,
    s.bad_places,
    s.affected,
    s.still_places,
    s.moving_places,
    s.open_places,
    s.guessed_places,
    s.beyond_places,
    s.beyond_topic,
    s.beyond_place,
    s.left_places,
    s.left_topics,
    s.is_silent,
    s.lag_records,
    w.topic,
    w.partition,
    w.lag_records as worst_lag_records,
    w.lag_seconds,
    w.status as partition_status,
    w.committed_offset,
    w.committed_at,
    w.moved_at,
    w.lag_low,
    w.has_speed,
    w.recover_seconds,
    w.recover_latest,
    w.reading_per_second_high,
    w.arriving_per_second,
    w.client_id,
    w.host
  from metrics.consumer_group_hourly as g
  left join summary as s using (cluster, group_id)
  left join worst as w using (cluster, group_id)
  left join alone as a using (cluster, group_id)
  left join inventory.consumer_group_hourly as i on g.hour = i.hour and g.cluster = i.cluster and g.group_id = i.group_id
  where g.hour = :hour
)

select
  case
    when members = 0 and is_silent then 'nobody'
    when still_places > 0 and moving_places > 0 then 'one_stands'
    when still_places > 0 then 'stands'
    when bad_places > 0 and recover_seconds is null then 'falls_behind'
    when bad_places > 0 then 'catches_up_slowly'
    when open_places > 0 then 'may_catch_up'
    when guessed_places > 0 then 'guessed'
    when beyond_places > 0 then 'beyond_the_end'
    when unknown_places > 0 then 'lag_unknown'
    when places is null and (state is null or known_partitions is null) then 'commits_unknown'
    when places is null then 'no_commits'
    when left_places > 0 then 'left_offsets'
    when lag_records = 0 then 'no_lag'
    else 'keeps_up'
  end as reason,
  cluster,
  group_id,
  lag_seconds,
  lag_low as lag_at_least_seconds,
  worst_lag_records,
  lag_records as total_lag_records,
  coalesce(bad_places, 0) as late_partitions,
  coalesce(still_places, 0) as still_partitions,
  coalesce(moving_places, 0) as moving_partitions,
  coalesce(unknown_places, 0) as unknown_partitions,
  coalesce(left_places, 0) as left_partitions,
  left_topics,
  coalesce(beyond_places, 0) as beyond_partitions,
  beyond_topic,
  beyond_place,
  coalesce(places, 0) as partitions,
  members,
  commits_alone,
  is_samza,
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
  recover_latest as catches_up_in_at_most_seconds,
  has_speed as speed_known,
  arriving_per_second as arriving_records_per_second,
  reading_per_second_high as consumed_records_per_second,
  client_id,
  host,
  affected
from verdict
