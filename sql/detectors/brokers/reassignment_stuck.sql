/*
title: Partition reassignment stuck
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
params:
  stuck_hours: {default: 2, unit: h, why: "at any rate, fewer bytes are left by then"}
  written_ratio:
    default: 1.5
    unit: ratio
    why: "with a throttle below the rate of producers, new replicas never join the ISR"
key_metrics: [moving_partitions, left_bytes, copied_bytes_per_second, throttle_bytes_per_second, down_brokers]
verdicts:
  stuck:
    status: firing
    severity: warning
    message: >
      Reassignment of {{ moving_partitions | counted("partition") }} in cluster {{ cluster }} has made no progress for
      {{ stuck_hours }}{% if left_bytes %}: at least {{ left_bytes }} are left to copy{% endif %}.
    details:
      - "{% if down_brokers %}Target brokers of the reassignment are down: {{ down_brokers }}.{% endif %}"
      - "{% if throttle_bytes_per_second %}The replication throttle is {{ throttle_bytes_per_second }} per broker.{% endif %}"
      - "{% if written_bytes_per_second %}Producers write {{ written_bytes_per_second }} to the moving partitions.{% endif %}"
    impact: "The new replicas do not join the ISR, and the load stays on the old brokers."
    actions:
      - "{% if down_brokers %}Start broker {{ down_brokers }}.{% endif %}"
      - >
        {% if throttle_to_set_bytes_per_second %}Raise the throttle from {{ throttle_bytes_per_second }} to
        {{ throttle_to_set_bytes_per_second }}.{% endif %}
      - "Check server.log of the receiving brokers for replica fetcher errors, and their disks for free space."
      - "If the reassignment stays stuck, cancel it."
    commands:
      - "kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }} --list"
      - >
        {% if throttle_to_set_bytes_per_second %}kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }}
        --reassignment-json-file reassignment.json --execute --additional --throttle
        {{ throttle_to_set_bytes_per_second.value | int }}{% endif %}
  progressing:
    status: ok
    message: "Reassignment of {{ moving_partitions | counted('partition') }} in cluster {{ cluster }} is progressing."
    details:
      - "{% if left_bytes %}At least {{ left_bytes }} are left to copy.{% endif %}"
  no_reassignment: {status: ok, message: "No partition of cluster {{ cluster }} is being reassigned."}
  progress_unknown:
    status: unknown
    message: "Not evaluated: cluster {{ cluster }} did not report how many bytes its reassignment has left to copy."
  not_reported: {status: unknown, message: "Not evaluated: cluster {{ cluster }} did not list its partition reassignments."}
open_after_hours: 1
clear_after_hours: 2
description: |
  A reassignment is stuck if none of the partitions that were moving stuck_hours ago is done, and no fewer bytes of them
  are left. Partitions that move to a broker that is down make no progress, whatever is left of them.
runbook: |
  ## Meaning
  A partition reassignment runs and copies nothing.
  ## Impact
  The new replicas never join the ISR. The reassignment blocks others of the same partitions.
  ## Diagnosis
  1. Check whether the receiving brokers run and have free disk space.
  2. Compare the replication throttle with the rate that producers write to the moving partitions.
  3. Check server.log of the receiving brokers for replica fetcher errors.
  ## Mitigation
  1. Start the receiving brokers, or raise the throttle.
  2. Otherwise cancel the reassignment: kafka-reassign-partitions.sh --cancel with its JSON file.
limitations: |
  Reassignments are listed once an hour. Sizes are those of log directories: records written meanwhile are added to what
  is left, so a reassignment that is slower than its producers counts as stuck. Moves between log directories of one
  broker are not evaluated.
*/
with running as materialized (
  select *
  from public.reassignments(:hour)
),

earlier as (
  select *
  from inventory.reassignment_hourly
  where hour = :hour - make_interval(hours => cast(:stuck_hours as integer)) and adding <> '[]'
),

moving as materialized (
  select
    m.*,
    b.left_bytes as before_left_bytes,
    b.cluster is not null as moved_before,
    d.is_target_down
  from public.partitions_moving(:hour) as m
  left join earlier as b
    on m.cluster = b.cluster and m.topic = b.topic and m.partition = b.partition and m.adding = b.adding
  cross join lateral (
    select count(*) > 0 as is_target_down
    from inventory.broker_hourly as o
    where o.hour = :hour and o.cluster = m.cluster and not o.is_listed and m.adding @> to_jsonb(o.broker_id)
  ) as d
),

done as (
  select distinct b.cluster
  from earlier as b
  left join moving as m on b.cluster = m.cluster and b.topic = m.topic and b.partition = m.partition and b.adding = m.adding
  where m.cluster is null
),

progress as (
  select
    cluster,
    bool_or(moved_before and not is_target_down and (left_bytes is null or before_left_bytes is null)) as is_unknown,
    bool_or(moved_before)
    and coalesce(
      sum(left_bytes) filter (where moved_before and not is_target_down)
      >= sum(before_left_bytes) filter (where moved_before and not is_target_down), true
    ) as is_stuck
  from moving
  group by cluster
),

down as (
  select
    o.cluster,
    string_agg(cast(o.broker_id as text), ', ' order by o.broker_id) as down_brokers
  from inventory.broker_hourly as o
  inner join public.reassignment_brokers(:hour) as t on o.cluster = t.cluster and o.broker_id = t.broker_id
  where o.hour = :hour and not o.is_listed
  group by o.cluster
),

evaluated as (
  select
    r.*,
    d.down_brokers,
    case
      when not r.is_reported or (r.is_running and r.moving_partitions is null) then 'not_reported'
      when not r.is_running then 'no_reassignment'
      when p.is_stuck and not p.is_unknown and r.cluster not in (select done.cluster from done) then 'stuck'
      when p.is_unknown then 'progress_unknown'
      else 'progressing'
    end as reason
  from running as r
  left join progress as p using (cluster)
  left join down as d using (cluster)
)

select
  reason,
  cluster,
  running_since,
  moving_partitions,
  left_bytes,
  moving_bytes,
  copied_bytes_per_second,
  down_brokers,
  written_bytes_per_second,
  throttle_bytes_per_second,
  case
    when reason = 'stuck' and down_brokers is null and throttle_bytes_per_second is not null
      then :written_ratio * greatest(written_bytes_per_second, throttle_bytes_per_second)
  end as throttle_to_set_bytes_per_second
from evaluated
