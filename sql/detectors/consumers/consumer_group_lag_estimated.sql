/*
title: Consumer lag not recovering, by CloudWatch
resource_kind: group
owner_role: platform
maturity: experimental
is_mutation_tested: false
reads: [metrics.msk_consumer_lag_hourly]
params:
  late_seconds: {default: 600, unit: seconds, why: "users of a stream notice a delay of ten minutes"}
  recover_seconds: {default: 3600, unit: seconds, why: "a lag that recovers within the next hour needs no action"}
  known_minutes: {default: 15, unit: minutes, why: "fewer of the hour's minutes do not show a trend"}
key_metrics: [lag_seconds, lag_records, lag_records_before, catches_up_in_seconds]
verdicts:
  falling_behind:
    status: firing
    severity: warning
    message: >-
      Consumer group {{ group_id }} is about {{ lag_seconds }} behind on topic {{ topic }} ({{ lag_records }}), and its lag
      does not fall.
    details: &details
      - "At the start of the hour the lag was {{ lag_records_before }}."
      - "{% if late_topics > 1 %}The group lags on {{ late_topics.value }} topics.{% endif %}"
    impact: &impact "Records wait until the group processes them, and retention may delete them first."
    actions: &actions
      - "Check whether the application of the group runs, and on how many instances."
      - "Add members, up to the number of partitions, or speed up the processing of records."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"
  slow_recovery:
    status: firing
    severity: warning
    message: >-
      Consumer group {{ group_id }} is about {{ lag_seconds }} behind on topic {{ topic }} ({{ lag_records }}) and needs
      {{ catches_up_in_seconds }} to recover.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  recovers:
    status: ok
    message: >-
      Consumer group {{ group_id }} is about {{ lag_seconds }} behind on topic {{ topic }} and recovers
      {%- if catches_up_in_seconds %} within {{ catches_up_in_seconds }}{% endif %}.
  keeps_up:
    status: ok
    message: "Consumer group {{ group_id }} keeps up, at most {{ lag_seconds }} behind (topic {{ topic }})."
  lag_unknown:
    status: unknown
    message: "Not evaluated: CloudWatch did not return all lag metrics of group {{ group_id }} ({{ minutes_present.value or 0 }} minutes)."
causes:
  lag_delays_records: [falling_behind, slow_recovery]
caused_by:
  broker_delays_consumers: [falling_behind, slow_recovery]
  outage_delays_consumers: [falling_behind, slow_recovery]
open_after_hours: 1
clear_after_hours: 2
description: |
  Evaluates consumer groups of Amazon MSK clusters whose offsets are not read over Kafka's protocol (`connect: false`), by
  CloudWatch: SumOffsetLag, and EstimatedMaxTimeLag, MSK's estimate of the time to work off the worst partition's lag.

  Warning: the estimate exceeds late_seconds in every minute of the hour, and the lag in records does not fall, or would
  take more than recover_seconds to recover at its current rate. The topic with the largest estimate counts.
runbook: |
  ## Meaning
  The consumer lag of the group is high and does not recover within recover_seconds.

  ## Impact
  Records wait until the group processes them, and retention may delete them first.

  ## Diagnosis
  1. Check whether the application of the group runs.
  2. `kafka-consumer-groups.sh --describe` shows whether one partition is stuck, or all fall behind.

  ## Mitigation
  1. Start the application, or delete the group if it is retired: this deletes its committed offsets.
  2. Add members up to the number of partitions, or speed up processing.
limitations: |
  Partitions, members, and commits are not exposed: one stuck partition, or a group without members, looks like a slow
  group. Let Streamwarden connect to Kafka (consumer_group_lagging) for these. CloudWatch exposes groups that consumed
  within the last days only.
*/
with reading as (
  select
    *,
    time_lag_seconds_min > :late_seconds as is_late,
    -- Records that were worked off in the hour, beyond those that arrived.
    sum_offset_lag_last * 60 * minutes_present / nullif(greatest(sum_offset_lag_first - sum_offset_lag_last, 0), 0)
      as catches_up_in_seconds
  from metrics.msk_consumer_lag_hourly
  where hour = :hour
),

worst as (
  select distinct on (cluster, group_id)
    *,
    count(*) filter (where is_late) over (partition by cluster, group_id) as late_topics,
    max(minutes_present) over (partition by cluster, group_id) as known_minutes,
    bool_or(num_nulls(time_lag_seconds_min, time_lag_seconds_last) > 0) over (partition by cluster, group_id) as has_gaps
  from reading
  order by cluster asc, group_id asc, time_lag_seconds_last desc nulls last, topic asc
)

select
  case
    when known_minutes is null or known_minutes < :known_minutes or time_lag_seconds_last is null then 'lag_unknown'
    when is_late and sum_offset_lag_last >= sum_offset_lag_first then 'falling_behind'
    when is_late and catches_up_in_seconds > :recover_seconds then 'slow_recovery'
    when has_gaps or is_late and num_nulls(sum_offset_lag_first, sum_offset_lag_last) > 0 then 'lag_unknown'
    when is_late then 'recovers'
    else 'keeps_up'
  end as reason,
  cluster,
  group_id,
  topic,
  time_lag_seconds_last as lag_seconds,
  sum_offset_lag_last as lag_records,
  sum_offset_lag_first as lag_records_before,
  catches_up_in_seconds,
  late_topics,
  known_minutes as minutes_present
from worst
