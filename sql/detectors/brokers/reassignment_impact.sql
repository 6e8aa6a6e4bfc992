/*
title: Partition reassignment impact
resource_kind: cluster
owner_role: platform
maturity: stable
reads:
  - inventory.reassignment_hourly
  - inventory.broker_hourly
  - inventory.topic_hourly
  - metrics.broker_hourly
  - metrics.partition_hourly
  - metrics.topic_hourly
  - metrics.consumer_group_hourly
  - metrics.consumer_partition_hourly
params:
  change_ratio: {default: 1.8, unit: ratio, why: "flushes of 20 ms instead of 10 ms are noticeable downstream"}
  change_floor_ms: {default: 10, unit: ms, why: "no client notices a smaller difference"}
  least_history: {default: 168, unit: h, why: "a week contains every hour that is regularly busy"}
  late_seconds: {default: 600, unit: seconds, why: "users of a streaming application notice a lag of ten minutes"}
  lag_ratio:
    default: 2
    unit: ratio
    why: "of the maximum lag on the day before the reassignment, and in this hour of the four weeks before"
  led_share: {default: 0.8, unit: ratio, why: "so much of the lagging partitions must be led by brokers that take part"}
  groups_ratio:
    default: 0.5
    unit: ratio
    why: "a slow broker delays all groups that it serves; if one of many lags, the reason is its own"
  copied_ratio: {default: 0.1, unit: ratio, why: "less than a tenth of a broker's traffic does not slow it"}
  throttle_ratio: {default: 0.5, unit: ratio, why: "half of the rate that causes the impact is a first step"}
  written_ratio:
    default: 1.5
    unit: ratio
    why: "with a throttle below the rate of producers, new replicas never join the ISR"
key_metrics: [left_bytes, moved_in_at_least_seconds, copied_bytes_per_second, throttle_bytes_per_second, lagging_groups]
verdicts:
  affects_others:
    status: firing
    severity: warning
    message: >
      Reassignment of {{ moving_partitions | counted("partition") }} since {{ running_since }} affects cluster
      {{ cluster }}: {{ symptoms | join(", ") | words }}.
    details:
      - >
        {% if lagging_replicas %}{{ lagging_replicas | counted("replica") }} left the ISR on brokers that take part, not
        counting the new ones.{% endif %}
      - >
        {% for one in slow_brokers or [] %}Log flush latency (p95) of broker {{ one.broker_id.value }} is
        {{ one.log_flush_p95_ms }} (baseline {{ one.baseline_ms }}). {% endfor %}
      - >
        {% if lagging_groups %}{{ lagging_groups | counted("consumer group") }} {{ lagging_groups | plural("lags", "lag") }}
        by {{ lag_at_least_seconds }} or more on partitions led by these brokers.{% endif %}
      - &left "{% if left_bytes %}At least {{ left_bytes }} are left to copy.{% endif %}"
      - "{% if moved_in_at_least_seconds %}At the current rate that takes at least {{ moved_in_at_least_seconds }}.{% endif %}"
      - "{% if throttle_bytes_per_second %}The replication throttle is {{ throttle_bytes_per_second }} per broker.{% endif %}"
      - >
        {% if written_bytes_per_second %}Producers write {{ written_bytes_per_second }} to the moving partitions; a throttle
        must exceed it.{% endif %}
    impact: "Producers and consumers of these brokers wait, and partitions have fewer in-sync replicas."
    actions:
      - >
        {% if throttle_to_set_bytes_per_second %}Throttle the reassignment to {{ throttle_to_set_bytes_per_second }} per
        broker.{% endif %}
      - >
        {% if not throttle_to_set_bytes_per_second %}Cancel the reassignment, and repeat it with fewer partitions at a
        time.{% endif %}
      - "If the impact persists, cancel the reassignment and continue in an hour with less traffic."
      - "At the end, run kafka-reassign-partitions.sh --verify: it removes the throttle."
    commands:
      - "kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }} --list"
      - >
        {% if throttle_to_set_bytes_per_second %}kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }}
        --reassignment-json-file reassignment.json --execute --additional --throttle
        {{ throttle_to_set_bytes_per_second.value | int }}{% endif %}
  no_impact:
    status: ok
    message: "Reassignment of {{ moving_partitions | counted('partition') }} affects no broker or group of cluster {{ cluster }}."
    details:
      - *left
  no_reassignment: {status: ok, message: "No partition of cluster {{ cluster }} is being reassigned."}
  flush_latency_unknown:
    status: unknown
    message: >
      Not evaluated: log flush latency or its baseline is unknown for {{ unresponsive_brokers | counted("broker") }} that
      {{ unresponsive_brokers | plural("takes", "take") }} part in a reassignment.
  isr_unknown:
    status: unknown
    message: "Not evaluated: cluster {{ cluster }} did not report the in-sync replicas of the partitions being reassigned."
  not_reported: {status: unknown, message: "Not evaluated: cluster {{ cluster }} did not list its partition reassignments."}
causes:
  reassignment_slows_brokers: [affects_others]
  reassignment_delays_consumers: [affects_others]
open_after_hours: 1
clear_after_hours: 2
description: |
  While partitions are reassigned, brokers take part that receive replicas or lead a moving partition. The detector fires
  on one of three symptoms. Lagging replicas: on brokers that take part, more replicas are out of sync than before the
  reassignment; new replicas and replicas of brokers that are down or restarted in the hour do not count. Slow log
  flushes: the 95th percentile is change_ratio times its baseline from before the reassignment (same hour of the week)
  and change_floor_ms more, and the copied bytes are copied_ratio of the broker's traffic or more. Lagging groups: those
  that lag by late_seconds, and by lag_ratio times their maximum in the hours compared, have led_share of their late
  partitions on these brokers, and are groups_ratio of all groups that read there.
runbook: |
  ## Meaning
  A partition reassignment copies so fast that it slows brokers, replicas, or consumer groups.
  ## Impact
  Producers and consumers of these brokers wait. Partitions with fewer in-sync replicas tolerate fewer failures.
  ## Diagnosis
  1. Find who reassigns: kafka-reassign-partitions.sh --list, and the state of Cruise Control.
  2. Check the symptoms in the details, and how long the rest takes.
  ## Mitigation
  1. Throttle the reassignment, above the rate that producers write to the moving partitions.
  2. Otherwise cancel it, and move fewer partitions at a time, or in an hour with less traffic.
limitations: |
  Reassignments are listed once an hour; those that begin and end between two runs are not detected. Sizes are those of
  log directories: a compacted copy can be smaller than its source, and records written meanwhile are added to what is
  left. A symptom at the time of a reassignment can have another reason. Moves between log directories of one broker are
  not evaluated.
*/
with running as materialized (
  select *
  from public.reassignments(:hour)
),

-- Null if the in-sync replicas of one moving partition are unknown.
reported as (
  select
    cluster,
    bool_and(isr is not null) as is_isr_reported
  from public.partitions_moving(:hour)
  group by cluster
),

evaluated_broker as (
  select
    *,
    coalesce(copied_ratio >= :copied_ratio, true)
    and log_flush_p95_ms >= greatest(:change_ratio * baseline_ms, baseline_ms + :change_floor_ms) as is_slow,
    samples is null or (log_flushes_per_second is distinct from 0 and (log_flush_p95_ms is null or baseline_ms is null))
      as is_unknown
  from public.reassignment_flushes(:hour, cast(:least_history as integer))
),

slow as (
  select
    cluster,
    jsonb_agg(
      jsonb_build_object('broker_id', broker_id, 'log_flush_p95_ms', log_flush_p95_ms, 'baseline_ms', baseline_ms)
      order by broker_id
    ) filter (where is_slow) as slow_brokers,
    count(*) filter (where is_unknown) as unresponsive_brokers,
    max(copied_bytes_per_second) as busiest_bytes_per_second
  from evaluated_broker
  group by cluster
),

-- Groups that read from these brokers.
late_group as materialized (
  select
    *,
    has_risen and led_late_partitions > 0 and led_late_partitions >= :led_share * late_partitions as is_late
  from public.reassignment_groups(:hour, :late_seconds, :lag_ratio)
),

lagging_group as (
  select
    g.cluster,
    g.lagging_groups,
    g.lag_at_least_seconds,
    g.lagging_group_ids,
    (
      select (jsonb_agg(one.partition order by one.partition))
      from (
        select distinct e.partition
        from late_group as l
        cross join lateral jsonb_array_elements(l.affected) as e (partition)
        where l.cluster = g.cluster and l.is_late
        order by e.partition asc
        limit 500
      ) as one
    ) as affected
  from (
    select
      cluster,
      count(*) filter (where is_late) as lagging_groups,
      min(lag_seconds) filter (where is_late) as lag_at_least_seconds,
      to_jsonb((array_agg(group_id order by lag_seconds desc, group_id asc) filter (where is_late))[:20]) as lagging_group_ids,
      count(*) as groups
    from late_group
    group by cluster
  ) as g
  where g.lagging_groups >= :groups_ratio * g.groups
),

measured as (
  select
    c.*,
    l.broker_ids as lagging_brokers,
    p.is_isr_reported,
    s.slow_brokers,
    s.unresponsive_brokers,
    s.busiest_bytes_per_second,
    case when p.is_isr_reported then greatest(l.replicas - l.replicas_before, 0) end as lagging_replicas,
    case when p.cluster is not null then coalesce(a.lagging_groups, 0) end as lagging_groups,
    a.lagging_group_ids,
    a.lag_at_least_seconds,
    a.affected,
    greatest(
      :throttle_ratio * coalesce(s.busiest_bytes_per_second, c.throttle_bytes_per_second),
      :written_ratio * c.written_bytes_per_second
    ) as throttle_to_set
  from running as c
  left join reported as p using (cluster)
  left join slow as s using (cluster)
  left join public.reassignment_out_of_sync(:hour) as l using (cluster)
  left join lagging_group as a using (cluster)
),

symptom as (
  select
    *,
    array_remove(
      array[
        case when lagging_replicas > 0 then 'lagging_replicas' end,
        case when slow_brokers is not null then 'slow_log_flushes' end,
        case when lagging_groups > 0 then 'lagging_groups' end
      ], null
    ) as symptoms
  from measured
),

evaluated as (
  select
    *,
    case
      when not is_reported or (is_running and moving_partitions is null) then 'not_reported'
      when not is_running then 'no_reassignment'
      when symptoms <> '{}' then 'affects_others'
      when unresponsive_brokers > 0 then 'flush_latency_unknown'
      when not is_isr_reported then 'isr_unknown'
      else 'no_impact'
    end as reason
  from symptom
)

select
  reason,
  cluster,
  running_since,
  to_jsonb(symptoms) as symptoms,
  moving_partitions,
  left_bytes,
  moving_bytes,
  copied_bytes_per_second,
  left_bytes / nullif(copied_bytes_per_second, 0) as moved_in_at_least_seconds,
  lagging_replicas,
  slow_brokers,
  unresponsive_brokers,
  lagging_groups,
  lagging_group_ids,
  lag_at_least_seconds,
  is_isr_reported,
  written_bytes_per_second,
  throttle_bytes_per_second,
  case
    when reason = 'affects_others' and throttle_to_set < least(busiest_bytes_per_second, throttle_bytes_per_second)
      then throttle_to_set
  end as throttle_to_set_bytes_per_second,
  case
    when reason = 'affects_others' then (
      select jsonb_agg(distinct public.resource_key('broker', evaluated.cluster, b.broker_id))
      from (
        select one ->> 'broker_id' as broker_id from jsonb_array_elements(slow_brokers) as one
        union all
        select one from unnest(lagging_brokers) as one where lagging_replicas > 0
      ) as b
    )
  end as slowed_brokers,
  case when reason = 'affects_others' then affected end as affected
from evaluated
