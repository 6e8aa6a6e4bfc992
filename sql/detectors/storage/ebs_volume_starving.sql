/*
title: EBS volume I/O-starved
resource_kind: volume
owner_role: platform
maturity: stable
is_mutation_tested: false
reads:
  - inventory.volume_hourly
  - inventory.instance_hourly
  - inventory.ebs_price
  - inventory.msk_broker_hourly
  - inventory.msk_cluster_hourly
  - inventory.pod_hourly
  - inventory.pod_claim_hourly
  - metrics.volume_hourly
  - metrics.volume_sample
  - metrics.instance_sample
params:
  warn_hours: {default: 6, unit: hours, why: "one on-call shift to react before the burst balance is exhausted"}
  soon_hours: {default: 4, unit: hours, why: "a longer forecast is confirmed by the next hour, still 2 h ahead"}
  draining_minutes: {default: 7, unit: minutes, why: "half of the last 15; shorter load is a deployment or a spike"}
  lasting_minutes: {default: 15, unit: minutes, why: "queues absorb shorter throttling"}
  short_minutes:
    default: 4
    unit: minutes
    why: "enough where throttling continues: the burst balance is 0 %, or the previous hour was throttled as well"
  stalled_minutes: {default: 2, unit: minutes, why: "no application tolerates two minutes without I/O; one may be a failover"}
  slow_ms: {default: 20, unit: ms, why: "SSD volumes respond within single-digit milliseconds (EBS User Guide); twice that"}
  slow_ratio: {default: 5, unit: ratio, why: "times the volume's own baseline latency"}
  baseline_hours: {default: 12, unit: hours, why: "of the last 7 days; fewer hours give no baseline"}
  low_percent: {default: 5, unit: "%", why: "a burst balance this low that still falls is practically exhausted"}
  known_percent: {default: 50, unit: "%", why: "with fewer of the hour's minutes the hour cannot be evaluated"}
  bursting_minutes:
    default: 25
    unit: minutes
    why: "an instance's burst covers 15 minutes of a deployment or a flush; 5-minute data points add up to 10"
  fall_percent_per_hour:
    default: 5
    unit: "%"
    why: "of an instance's burst; a slower fall is a load that varies around its baseline during the day"
  part_percent: {default: 10, unit: "%", why: "a volume with a smaller part of its instance's I/O does not drain it"}
  recurring_days: {default: 3, unit: days, why: "of the last 7, with the same drain at this hour and never exhausted: a recurring batch"}
  recurring_percent: {default: 3, unit: "%", why: "tolerance of burst balance between days; below it, the batch overruns"}
  recurring_burn_ratio: {default: 0.75, unit: ratio, why: "of the current drain rate; a lighter load is another one"}
  headroom_ratio: {default: 1.2, unit: ratio, why: "of recommended capacity over the 99th percentile of demand"}
  step_ratio: {default: 2, unit: ratio, why: "demand above a limit is not measurable: recommend twice as much, then measure again"}
key_metrics:
  - throttled_minutes
  - hours_to_exhaustion
  - hours_to_instance_burst_end
  - demand_over_baseline_ratio
  - burst_balance_last_percent
verdicts:
  bucket_empty:
    status: firing
    severity: critical
    message: >-
      Volume {{ name }} is throttled: burst balance is {{ burst_balance_last_percent }}, I/O has been capped at
      {{ baseline_iops }} and {{ baseline_bytes_per_second }} for {{ throttled_minutes }}.
    details: &details
      - "{% if claim %}Pod {{ claim_pod }} of namespace {{ namespace }} claims the volume as {{ claim }}.{% endif %}"
      - "{% if throttled_since %}Throttled continuously since {{ throttled_since }}.{% endif %}"
      - "{% if demand_over_baseline_ratio > 1.1 %}Demand (p95) is {{ demand_over_baseline_ratio }} of the baseline.{% endif %}"
      - "{% if queue_length_mean %}The mean queue length is {{ queue_length_mean }} requests.{% endif %}"
      - &history >-
        {% if minutes_throttled_in_14_days and minutes_throttled_in_14_days >= throttled_minutes %}The volume was throttled for {{ minutes_throttled_in_14_days }} in the last 14 days.{% endif %}
      - &replay >-
        {% if replay == 'throttled' %}With the recommended change, it would have been throttled for {{ minutes_throttled_in_14_days_if_changed }}.{% endif %}
      - &replay_none >-
        {% if replay == 'not_throttled' %}With the recommended change, it would not have been throttled.{% endif %}
      - &replay_at_least >-
        {% if replay == 'throttled_at_least' %}With the recommended change: throttled for at least {{ minutes_throttled_in_14_days_if_changed }}, unknown for
        {{ minutes_unknown_in_14_days }}.{% endif %}
      - &replay_unknown >-
        {% if replay == 'unknown' %}For {{ minutes_unknown_in_14_days }} of them the effect of the recommended
        change is unknown, because demand was capped.{% endif %}
      - &price >-
        {% if is_modifiable and are_prices_known %}The recommended volume costs
        {{ advised_price_usd_per_month }} instead of {{ price_usd_per_month }} (list prices of {{ prices_as_of }}).{% endif %}
      - &no_price >-
        {% if is_modifiable and not are_prices_known %}No list price is known for
        {{ region }}.{% endif %}
    impact: &impact >-
      Reads, writes, and flushes on this volume queue: brokers or stream tasks that use it slow down, and replicas or
      consumers fall behind.
    actions: &actions
      - "Reduce I/O until the change takes effect: pause restores, backfills, and reassignments that use this volume."
      - >-
        {% if msk_volume_gib and not provisioned_mib_s %}Enlarge the storage of all brokers of {{ msk_cluster }} from {{ size_gib }} to
        {{ msk_volume_gib }}: its baseline grows to {{ msk_baseline_iops }}. MSK allows one change in six hours.{% endif %}
      - >-
        {% if msk_throughput_mib_s %}Provision {{ msk_throughput_mib_s }} of storage throughput for the brokers of
        {{ msk_cluster }} (at most {{ most_mib_s }} with {{ broker_size }}).{% endif %}
      - >-
        {% if larger_broker_size and not most_mib_s %}Storage throughput can be provisioned from broker size
        kafka.m5.4xlarge or kafka.m7g.2xlarge on; this cluster has {{ broker_size }}.{% endif %}
      - >-
        {% if cluster_arn %}If one broker alone is throttled, move partition leaders and replicas off broker
        {{ msk_broker_id }}; otherwise add brokers.{% endif %}
      - >-
        {% if is_modifiable %}Change the volume from {{ volume_type }} ({{ size_gib }}) to
        {{ advised_volume_type }} ({{ advised_size_gib }}) with
        {{ [advised_iops, advised_throughput_mib_s] | select | join(' and ') }}.{% endif %}
      - >-
        {% if not cluster_arn and (is_at_type_maximum or not is_sufficient) %}Spread the load over several volumes: one {{ volume_type }} volume
        cannot serve this demand.{% endif %}
      - >-
        {% if is_demand_lower_bound and not is_at_type_maximum %}Measure again one day later: demand is at least
        {{ [demand_at_least_iops, demand_at_least_bytes_per_second] | select | join(' and ') }}, but the limit hides the rest.{% endif %}
    commands: &modify
      - "{% if claim %}kubectl -n {{ namespace }} describe pvc {{ claim }}{% endif %}"
      - "{% if not cluster_arn %}aws ec2 describe-volumes-modifications --region {{ region }} --volume-ids {{ volume_id }}{% endif %}"
      - >-
        {% if msk_volume_gib and not provisioned_mib_s %}aws kafka update-broker-storage --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-broker-ebs-volume-info
        '[{"KafkaBrokerNodeId": "All", "VolumeSizeGB": {{ msk_volume_gib }}}]'{% endif %}
      - >-
        {% if msk_throughput_mib_s %}aws kafka update-broker-storage --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-broker-ebs-volume-info '[{"KafkaBrokerNodeId": "All",
        "ProvisionedThroughput": {"Enabled": true, "VolumeThroughput": {{ msk_throughput_mib_s }}}}]'{% endif %}
      - >-
        {% if cluster_arn %}aws kafka update-broker-count --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-number-of-broker-nodes {{ more_brokers }}{% endif %}
      - >-
        {% if is_modifiable and advised_throughput_mib_s %}aws ec2 modify-volume --region {{ region }}
        --volume-id {{ volume_id }} --volume-type {{ advised_volume_type }} --size {{ advised_size_gib }}
        --iops {{ advised_iops }} --throughput {{ advised_throughput_mib_s }}{% endif %}
      - >-
        {% if is_modifiable and not advised_throughput_mib_s %}aws ec2 modify-volume --region {{ region }}
        --volume-id {{ volume_id }} --volume-type {{ advised_volume_type }} --size {{ advised_size_gib }}
        --iops {{ advised_iops }}{% endif %}
  at_iops_limit:
    status: firing
    severity: critical
    message: "Volume {{ name }} has been throttled at its limit of {{ burst_iops }} for {{ throttled_minutes }}."
    details: *details
    impact: *impact
    actions: *actions
    commands: *modify
  at_throughput_limit:
    status: firing
    severity: critical
    message: "Volume {{ name }} has been throttled at its limit of {{ burst_bytes_per_second }} for {{ throttled_minutes }}."
    details: *details
    impact: *impact
    actions: *actions
    commands: *modify
  instance_limit:
    status: firing
    severity: critical
    message: >-
      Instance {{ instance_id }} ({{ instance_type or 'unknown type' }}) of volume {{ name }} has been throttled at its EBS
      limit for {{ throttled_minutes }}.
    details:
      - >-
        The instance sustains {{ instance_baseline_iops }} and {{ instance_baseline_bytes_per_second }} for all its volumes
        together.
      - "{% if queue_length_mean %}The mean queue length is {{ queue_length_mean }} requests.{% endif %}"
    impact: *impact
    actions:
      - >-
        Move load off the instance: lead fewer partitions there
        {%- if not cluster_arn %}, or attach one of its volumes to another instance{% endif %}.
      - &larger_instance >-
        Change to {{ 'a broker size' if cluster_arn else 'an instance type' }} with an EBS baseline above {{ instance_wanted_iops }} and
        {{ instance_wanted_bytes_per_second }}. A larger volume does not help.
      - "Measure again one day later: demand above the instance's limit is not visible."
    commands: &instance_types
      - &larger_broker >-
        {% if larger_broker_size %}aws kafka update-broker-type --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-instance-type {{ larger_broker_size }}{% endif %}
      - >-
        {% if not cluster_arn and instance_wanted_iops %}aws ec2 describe-instance-types --region {{ region }}
        --query 'InstanceTypes[?EbsInfo.EbsOptimizedInfo.BaselineIops > `{{ instance_wanted_iops }}` &&
        EbsInfo.EbsOptimizedInfo.BaselineThroughputInMBps > `{{ instance_wanted_bytes_per_second.value / 1000000 }}`].InstanceType'
        --output text{% endif %}
  stalled:
    status: firing
    severity: critical
    message: "I/O of volume {{ name }} is stalled: no progress for {{ minutes_without_progress }}."
    details:
      - "{% if queue_length_mean %}The mean queue length is {{ queue_length_mean }} requests.{% endif %}"
    impact: "Every read and write of this volume hangs; a broker or stream task on it stops."
    actions:
      - "Fail over to replicas on other volumes."
      - >-
        {% if not cluster_arn %}Move the data to a new volume. A larger volume does not help.{% else %}Reboot broker
        {{ msk_broker_id }}: MSK replaces storage that is impaired.{% endif %}
      - "Open a case with AWS Support if the volume status is impaired."
    commands:
      - >-
        {% if not cluster_arn %}aws ec2 describe-volume-status --region {{ region }} --volume-ids {{ volume_id }}{% endif %}
      - >-
        {% if cluster_arn %}aws kafka reboot-broker --region {{ region }} --cluster-arn {{ cluster_arn }}
        --broker-ids {{ msk_broker_id }}{% endif %}
  slow:
    status: firing
    severity: warning
    message: >-
      Latency (p75) of volume {{ name }} is {{ latency_p75_ms }} (limit {{ slow_latency_ms }}); requests were slow for at
      least {{ slow_minutes }}.
    details:
      - "{% if baseline_latency_ms %}Its baseline latency is {{ baseline_latency_ms }}.{% endif %}"
      - >-
        The volume is not throttled: {{ iops_now }} of {{ baseline_iops }}, {{ bytes_per_second_now }} of
        {{ baseline_bytes_per_second }}.
    impact: *impact
    actions:
      - >-
        {% if not cluster_arn %}If the volume was created from a snapshot, read all of it once: first reads come from
        S3.{% endif %}
      - >-
        {% if not cluster_arn %}Otherwise move its data to a new volume, and open a case with AWS Support. A larger volume
        does not help.{% else %}Move leaders off broker {{ msk_broker_id }}, and open a case with AWS Support.{% endif %}
      - >-
        {% if not cluster_arn %}Create volumes from snapshots with an initialization rate, or with fast snapshot
        restore.{% endif %}
    commands:
      - >-
        {% if not cluster_arn %}aws ec2 describe-volume-status --region {{ region }} --volume-ids {{ volume_id }}{% endif %}
      - >-
        {% if not cluster_arn %}aws ec2 describe-volumes --region {{ region }} --volume-ids {{ volume_id }}
        --query 'Volumes[].[SnapshotId,CreateTime]' --output text{% endif %}
  bucket_draining:
    status: firing
    severity: warning
    message: >-
      Burst balance of volume {{ name }} is {{ burst_balance_last_percent }};
      {{ 'it is nearly exhausted' if hours_to_exhaustion.value == 0 else 'at the current load, it will be exhausted in ' ~ hours_to_exhaustion }}.
    details:
      - >-
        {% if hours_to_exhaustion_low < hours_to_exhaustion %}The earliest forecast is
        {{ hours_to_exhaustion_low }}.{% endif %}
      - &load >-
        The load is {{ iops_now }} and {{ bytes_per_second_now }}; the baseline is {{ baseline_iops }} and
        {{ baseline_bytes_per_second }}.
      - *history
      - *replay
      - *replay_none
      - *replay_at_least
      - *replay_unknown
      - *price
      - *no_price
    impact: >-
      With an exhausted burst balance, I/O is capped at {{ baseline_iops }} and {{ baseline_bytes_per_second }}: brokers and
      stream tasks on this volume slow down.
    actions: *actions
    commands: *modify
  instance_burst_ending:
    status: firing
    severity: warning
    message: >-
      Instance {{ instance_id }} ({{ instance_type or 'unknown type' }}) of volume {{ name }} exhausts its EBS burst in
      {{ hours_to_instance_burst_end }}: {{ instance_burst_percent }} is left.
    impact: >-
      After that, its volumes share {{ instance_baseline_iops }} and {{ instance_baseline_bytes_per_second }}: I/O of all of them
      is throttled.
    actions:
      - "Reduce I/O on the instance: pause restores, backfills, and reassignments."
      - *larger_instance
    commands: *instance_types
  recurring_drain:
    status: ok
    message: >-
      Burst balance of volume {{ name }} ({{ burst_balance_last_percent }}) drains as on {{ days_alike }} of the last 7 days,
      when it fell to {{ lowest_then_percent }} and refilled.
  within_limits:
    status: ok
    message: >-
      Volume {{ name }} is within its limits: {{ iops_now }} of {{ baseline_iops }}, {{ bytes_per_second_now }} of
      {{ baseline_bytes_per_second }}{% if throttled_minutes %}, throttled for {{ throttled_minutes }}{% endif %}.
  bucket_lasts:
    status: ok
    message: >-
      Burst balance of volume {{ name }} ({{ burst_balance_last_percent }}) lasts {{ hours_to_exhaustion }} at the current
      load.
    details: [*load]
  demand_below_baseline:
    status: ok
    message: >-
      Burst balance of volume {{ name }} is {{ burst_balance_last_percent }}, but its load is below the baseline
      again{% if throttled_minutes %}: throttled for {{ throttled_minutes }} (limit {{ lasting_minutes }}){% endif %}.
  bucket_refills:
    status: ok
    message: "Burst balance of volume {{ name }} ({{ burst_balance_last_percent }}) is refilling."
    details: [*load]
  bucket_full:
    status: ok
    message: "Burst balance of volume {{ name }} is 100 %."
    details: [*load]
  detached:
    status: unknown
    is_not_applicable: true
    message: "Not applicable: volume {{ name }} is not attached to an instance."
  magnetic:
    status: unknown
    is_not_applicable: true
    message: "Not applicable: AWS publishes no limits for volume type standard."
  recently_attached: {status: unknown, message: "Not evaluated: volume {{ name }} was attached too late in this hour."}
  no_response: {status: unknown, message: "Not evaluated: CloudWatch returned no metrics for volume {{ name }}."}
  monitoring_level_too_low:
    status: unknown
    message: >-
      Not evaluated: volume {{ name }} has no burst balance and needs enhanced monitoring PER_BROKER
      {%- if monitoring_usd_per_month %} (at most {{ monitoring_usd_per_month }} for
      {{ monitored_brokers | counted("broker") }}){% endif %}.
    details: ["The cluster's monitoring level is {{ monitoring_level }}. AWS charges for metrics beyond it."]
  limits_unknown:
    status: unknown
    message: "Not evaluated: EC2 did not return the type, size, or IOPS of volume {{ name }}."
  recently_modified:
    status: unknown
    message: "Not evaluated: volume {{ name }} was modified in this hour; evaluation continues with the next one."
    details:
      - >-
        Before: {{ [was_volume_type, was_size_gib, was_provisioned_iops, was_provisioned_mib_s] | select | join(', ') }}.
  datapoints_missing:
    status: unknown
    message: >-
      Not evaluated: CloudWatch returned {{ minutes_present.value }} of {{ minutes_expected.value }} minutes for volume
      {{ name }}.
  burst_balance_missing:
    status: unknown
    message: "Not evaluated: CloudWatch returned no BurstBalance for volume {{ name }} ({{ volume_type }})."
description: |
  A volume has three limits: its IOPS, its throughput, and the EBS limits of its instance. For gp2, st1, and sc1 the first
  two are the burst values while burst balance is left, and the baseline afterwards.

  Critical: a limit throttled the volume for longer than lasting_minutes; the limit that bound for most minutes is named.
  short_minutes are enough if the burst balance is exhausted or the previous hour was throttled, and stalled_minutes if
  I/O makes no progress. Minutes count across hours, until the first pause.

  Warning: at the load of the last 15 minutes the burst balance is exhausted within warn_hours, or the instance's EBS
  burst is; the latter must have fallen for bursting_minutes and by fall_percent_per_hour. Burst balance is simulated from
  the operations of each minute, starting from BurstBalance, and follows BurstBalance where that falls faster. The whole
  hour must have drained it; an intermittent load is forecast over whole cycles. A newer load counts if it drained it in
  draining_minutes of the last 15 and soon_hours are left. A batch that drained as much on recurring_days of the last
  week, within an hour of this time, and never exhausted it, does not fire. A warning continues while the balance falls
  and lasts no longer than warn_hours.

  Slow: no limit binds, and in a quarter of the hour's minutes latency exceeds slow_ms and slow_ratio times the baseline
  (median of 7 days, and of this time of day). For a new SSD volume slow_ms alone counts.

  A limit hides the demand above it, also in micro-bursts, when the mean of each minute is far below it. If only capped
  demand is known, the recommendation is step_ratio times the limit, and its effect on the last 14 days is unknown. A missing
  BurstBalance counts neither as 0 nor as healthy: the volume is not evaluated.
causes:
  disk_slows_broker: &hurting [bucket_empty, at_iops_limit, at_throughput_limit, instance_limit, stalled, slow]
  broker_loses_replicas: *hurting
  leader_loses_followers: *hurting
  broker_delays_consumers: *hurting
  instance_delays_consumers: *hurting
  claimed_volume_delays_consumers: *hurting
caused_by:
  cold_reads_starve_disk: [bucket_empty, at_iops_limit, at_throughput_limit, bucket_draining]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  ## Meaning
  The volume is throttled, stalled, or slow, or will be throttled soon. The message names the limit: burst balance, IOPS,
  throughput, or the instance.

  ## Impact
  I/O queues. Brokers and stream tasks on this volume slow down; replicas and consumers fall behind.

  ## Diagnosis
  1. Compare the chart's lines with 100 %: the line at 100 % is the limit that binds.
  2. Find the load: cold reads by consumers, a restore, a compaction, or a reassignment.
  3. Stalled or slow at low load is a fault of the volume.

  ## Mitigation
  1. Pause restores, backfills, and reassignments that use the volume.
  2. Run modify-volume. It works while the volume is in use, takes minutes to hours, and is possible once in six hours.
  3. At the instance's limit: change to a larger type, or move a volume away.
  4. Stalled I/O: fail over to a replica, and open a case with AWS Support.
limitations: |
  Storage of Amazon MSK at the monitoring level DEFAULT exposes its burst balance only: throughput, queue length, and
  latency are not evaluated, and a volume without burst balance (1,000 GiB or more) is not evaluated at all. MSK does not
  state the IOPS of storage with provisioned throughput; only its throughput counts as a limit.

  A throttled volume exposes what it got, not what was demanded; without earlier load the recommendation is a step.
  Volumes on instances without Nitro, with Multi-Attach, or of magnetic type expose no throttling metrics: there only a
  rate at its limit in the busy seconds of a minute is detected.

  A burst balance that drains within the hour after a sudden load is detected when it is exhausted. A load that began in
  the last minutes of an hour, or an instance burst that began to fall in the last bursting_minutes, is detected an hour
  later. The forecast assumes the load of the last 15 minutes; a new batch fires until it is recurring, and a batch that
  overruns fires once it leaves its hours. A new volume is compared with slow_ms alone, and latency that lasted for half a
  week becomes the baseline.

  Prices are list prices of the stated day. The 14 days include only hours that are in the warehouse; the effect of a
  change is known only for types without burst balance (gp3, io1, io2). A volume is not evaluated in the hour in which it
  was modified.
*/
with volume as (
  select *
  from inventory.volume_hourly
  left join metrics.volume_hourly using (hour, account, region, volume_id)
  left join metrics.instance_ebs(:hour, :step_ratio) using (account, region, instance_id)
  left join metrics.volume_throttling(:hour) using (account, region, volume_id)
  left join inventory.volume_modifications(:hour) using (account, region, volume_id)
  left join inventory.msk_brokers(:hour) as msk (account, region, msk_instance_id)  -- noqa: AL05
    using (account, region, volume_id)
  where hour = :hour
),

measured as (
  select
    *,
    -- If the baseline equals the burst, no credits are spent, and AWS exposes no BurstBalance.
    bucket_credits is not null
    and (baseline_iops < burst_iops or baseline_bytes_per_second < burst_bytes_per_second) as has_bucket,
    greatest(demand_iops_p95 / baseline_iops, demand_bytes_per_second_p95 / baseline_bytes_per_second)
      as demand_over_baseline_ratio,
    coalesce(
      hours_to_instance_burst_end <= :warn_hours
      and instance_burst_falling_minutes >= :bursting_minutes
      and greatest(
        iops_now / nullif(instance_baseline_iops, 0),
        bytes_per_second_now / nullif(instance_baseline_bytes_per_second, 0)
      ) >= :part_percent / 100.0
      and instance_burst_percent > :fall_percent_per_hour * hours_to_instance_burst_end,
      false
    ) as is_instance_draining,
    (account, region, volume_id) in (
      select d.account, d.region, d.volume_id
      from metrics.draining_volumes(:hour, :warn_hours, :soon_hours, :draining_minutes) as d
    ) as is_draining
  from volume
),

evaluated as (
  select
    m.*,
    slowness.baseline_latency_ms,
    slowness.slow_latency_ms,
    slowness.slow_minutes,
    cycle.days_alike,
    cycle.lowest_percent,
    case
      when m.state <> 'in-use' or m.instance_id is null then 'detached'
      when m.volume_type = 'standard' then 'magnetic'
      when m.monitoring_level = 'DEFAULT' and not m.has_bucket and m.minutes_present is null
        then 'monitoring_level_too_low'
      when m.minutes_present is null then 'no_response'
      when m.minutes_expected = 0 then 'recently_attached'
      when m.baseline_iops is null then 'limits_unknown'
      when m.is_modified then 'recently_modified'
      when m.minutes_present < m.minutes_expected * :known_percent / 100.0 then 'datapoints_missing'
      when m.has_bucket and coalesce(m.minutes_balance, 0) = 0 then 'burst_balance_missing'
      when
        m.throttled_minutes >= :lasting_minutes
        or (m.throttled_minutes >= :short_minutes and m.was_minutes_throttled >= :lasting_minutes)
        then case
          when m.most_minutes = m.minutes_stalled then 'stalled'
          when m.most_minutes = m.minutes_at_instance_limit then 'instance_limit'
          -- A bucket that refills after the throttling was empty all the same.
          when least(m.burst_balance_min_percent, m.burst_balance_last_percent) <= :low_percent then 'bucket_empty'
          when m.minutes_at_throughput_limit > m.minutes_at_iops_limit then 'at_throughput_limit'
          else 'at_iops_limit'
        end
      when m.stalled_minutes >= :stalled_minutes then 'stalled'
      when
        m.throttled_minutes >= :short_minutes
        and m.throttled_since is not null
        and m.burst_balance_last_percent <= :low_percent
        then 'bucket_empty'
      when m.latency_p75_ms >= slowness.slow_latency_ms then 'slow'
      when
        m.is_draining
        and not (cycle.days_alike >= :recurring_days and cycle.lowest_percent > :low_percent)
        and (not m.is_instance_draining or m.hours_to_exhaustion <= m.hours_to_instance_burst_end)
        then 'bucket_draining'
      when m.is_instance_draining then 'instance_burst_ending'
      when m.is_draining then 'recurring_drain'
      when not m.has_bucket then 'within_limits'
      when m.hours_to_exhaustion = 0 then 'demand_below_baseline'
      when m.hours_to_exhaustion is not null then 'bucket_lasts'
      when m.burst_balance_last_percent < 100 then 'bucket_refills'
      else 'bucket_full'
    end as reason
  from measured as m
  left join lateral (
    select * from metrics.burst_balance_cycle(
      :hour, m.account, m.region, m.volume_id, :recurring_percent, :recurring_burn_ratio
    )
    where m.is_draining
    -- Without `offset 0` PostgreSQL calls the function for every volume, and filters afterwards.
    offset 0  -- noqa: AM09
  ) as cycle on true
  left join lateral (
    select * from metrics.volume_slowness(
      :hour, m.account, m.region, m.volume_id, :slow_ms, :slow_ratio, :baseline_hours
    )
    where m.latency_p75_ms >= :slow_ms
    offset 0  -- noqa: AM09
  ) as slowness on true
)

select
  j.reason,
  j.account,
  j.region,
  j.volume_id,
  j.volume_type,
  j.size_gib,
  j.instance_id,
  j.instance_type,
  j.throttled_minutes,
  -- With pauses, the minutes of the hour count, not the time since the last pause.
  case when j.known_until - j.throttling_began_at >= make_interval(mins => j.minutes_throttled) then j.throttling_began_at end
    as throttled_since,
  j.burst_balance_last_percent,
  j.burst_balance_min_percent,
  j.modelled_balance_last_percent,
  j.hours_to_exhaustion,
  j.hours_to_exhaustion_low,
  j.hours_to_exhaustion_high,
  j.minutes_draining,
  j.cycle_minutes,
  j.credits_per_hour,
  j.days_alike,
  j.lowest_percent as lowest_then_percent,
  j.instance_burst_percent,
  j.hours_to_instance_burst_end,
  j.instance_baseline_iops,
  j.instance_baseline_bytes_per_second,
  j.instance_wanted_iops,
  j.instance_wanted_bytes_per_second,
  j.demand_over_baseline_ratio,
  j.demand_iops_p95,
  j.demand_iops_p99,
  j.demand_bytes_per_second_p95,
  j.demand_bytes_per_second_p99,
  j.demand_hours,
  j.iops_now,
  j.iops_p99,
  j.busy_iops_p95,
  j.baseline_iops,
  j.burst_iops,
  j.bytes_per_second_now,
  j.bytes_per_second_p99,
  j.baseline_bytes_per_second,
  j.burst_bytes_per_second,
  j.queue_length_mean,
  j.read_latency_ms,
  j.write_latency_ms,
  j.latency_p75_ms,
  j.baseline_latency_ms,
  j.slow_latency_ms,
  j.slow_minutes,
  j.minutes_expected,
  j.minutes_present,
  j.minutes_empty,
  j.minutes_at_iops_limit,
  j.minutes_at_throughput_limit,
  j.minutes_at_instance_limit,
  j.minutes_stalled,
  case when j.minutes_stalled >= j.minutes_throttled then j.throttled_minutes else j.stalled_minutes end
    as minutes_without_progress,
  j.was_volume_type,
  j.was_size_gib,
  j.was_provisioned_iops,
  j.was_provisioned_mib_s,
  advice.volume_type as advised_volume_type,
  advice.size_gib as advised_size_gib,
  advice.iops as advised_iops,
  advice.throughput_mib_s as advised_throughput_mib_s,
  advice.suffices as is_sufficient,
  advice.is_at_its_end as is_at_type_maximum,
  advice.wants_at_least as is_demand_lower_bound,
  advice.demand_iops as demand_at_least_iops,
  advice.demand_bytes_per_second as demand_at_least_bytes_per_second,
  advice.now_usd_per_month as price_usd_per_month,
  advice.usd_per_month as advised_price_usd_per_month,
  advice.now_usd_per_month > 0 and advice.usd_per_month > 0 as are_prices_known,
  advice.prices_as_of,
  advice.options,
  advice.known_hours as hours_known_in_14_days,
  advice.throttled_minutes as minutes_throttled_in_14_days,
  advice.then_throttled_minutes as minutes_throttled_in_14_days_if_changed,
  advice.unknown_minutes as minutes_unknown_in_14_days,
  case
    when (advice.throttled_minutes > 0 and advice.throttled_minutes >= j.throttled_minutes) is not true then null
    when advice.unknown_minutes > 0 and advice.then_throttled_minutes > 0 then 'throttled_at_least'
    when advice.unknown_minutes > 0 then 'unknown'
    when advice.then_throttled_minutes > 0 then 'throttled'
    when advice.then_throttled_minutes = 0 then 'not_throttled'
  end as replay,
  j.cluster_arn is null and advice.is_at_its_end is not true as is_modifiable,
  j.msk_cluster,
  j.msk_broker_id::text as msk_broker_id,
  j.cluster_arn,
  j.current_version,
  j.broker_size,
  j.larger_broker_size,
  j.monitoring_level,
  case when j.reason = 'monitoring_level_too_low' then j.monitoring_price end as monitoring_usd_per_month,
  case when j.reason = 'monitoring_level_too_low' then j.broker_count end as monitored_brokers,
  j.provisioned_mib_s,
  j.most_mib_s,
  j.broker_count + greatest(j.broker_count / 3, 1) as more_brokers,
  msk.size_gib as msk_volume_gib,
  msk.baseline_iops as msk_baseline_iops,
  msk.throughput_mib_s as msk_throughput_mib_s,
  claimed.claim_namespace as namespace,
  claimed.claim,
  claimed.claim_pod
from evaluated as j
left join inventory.pod_volumes(:hour) as claimed using (volume_id)
left join lateral (
  select * from metrics.volume_advice(
    :hour, j.account, j.region, j.volume_id, j.reason = 'at_throughput_limit', :headroom_ratio, :step_ratio
  )
  where j.reason in ('bucket_empty', 'bucket_draining', 'at_iops_limit', 'at_throughput_limit')
  offset 0  -- noqa: AM09
) as advice on true
left join lateral (
  select * from metrics.msk_storage_advice(
    :hour, j.account, j.region, j.volume_id, j.reason = 'at_throughput_limit', :headroom_ratio, :step_ratio
  )
  where j.cluster_arn is not null
  and j.reason in ('bucket_empty', 'bucket_draining', 'at_iops_limit', 'at_throughput_limit')
  offset 0  -- noqa: AM09
) as msk on true
