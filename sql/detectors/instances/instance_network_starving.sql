/*
title: Instance network bandwidth exhausted
resource_kind: instance
owner_role: platform
maturity: stable
is_mutation_tested: false
reads: [metrics.instance_network_hourly, metrics.broker_hourly, inventory.msk_broker_hourly,
  inventory.msk_cluster_hourly]
params:
  lasting_minutes: {default: 15, unit: minutes, why: "queues absorb shorter peaks; a deployment or a flush takes less"}
  lately_minutes: {default: 13, unit: minutes, why: "of the last 15: one or two data points may be late"}
  burst_minutes:
    default: 5
    unit: minutes
    why: "AWS: a burst lasts 5 to 60 minutes; a rate at the baseline without an earlier burst is just that load"
  burst_ratio: {default: 1.1, unit: ratio, why: "a type with a peak hardly above its baseline has no burst"}
  known_percent: {default: 50, unit: "%", why: "with fewer of the hour's minutes the hour cannot be evaluated"}
  recurring_days: {default: 3, unit: days, why: "of the last 7, with an equally long burst at this hour and never throttled: a recurring load"}
  headroom_ratio: {default: 1.2, unit: ratio, why: "of recommended bandwidth over the 99th percentile of the rate"}
  step_ratio: {default: 2, unit: ratio, why: "demand above a limit is not measurable: recommend twice as much, then measure again"}
key_metrics:
  - bytes_per_second_now
  - baseline_bytes_per_second
  - peak_bytes_per_second
  - minutes_above_baseline
  - minutes_at_peak
verdicts:
  at_peak:
    status: firing
    severity: critical
    message: >-
      Instance {{ name }} ({{ instance_type }}) {{ 'received' if direction.value == 'in' else 'sent' }} at its peak bandwidth
      of {{ peak_bytes_per_second }} for {{ minutes_at_peak }} of this hour.
    details: &details
      - "{% if broker %}The instance runs {{ broker }}.{% endif %}"
      - >-
        {% if broker %}The broker sends {{ consumers_bytes_per_second }} to consumers and
        {{ replication_bytes_per_second }} to other brokers.{% endif %}
    impact: &impact "Packets beyond the limit are queued or dropped: replicas and consumers fall behind, and requests time out."
    actions: &actions
      - >-
        {% if broker %}Move partition leaders off this broker, throttle reassignments, and let consumers fetch from the
        nearest replica.{% endif %}
      - >-
        {% if not cluster_arn %}Change to an instance type with a baseline of at least {{ wanted_bytes_per_second }}, or
        spread the load.{% endif %}
      - >-
        {% if cluster_arn %}Change the brokers of {{ msk_cluster }} from {{ instance_type }} to {{ larger_broker_size or
        'another family' }}, or add brokers and move partitions to them.{% endif %}
      - >-
        {% if is_cut_off %}Measure again one day later: demand above the limit is not visible.{% endif %}
    commands: &types
      - >-
        {% if wanted_bytes_per_second and not cluster_arn %}aws ec2 describe-instance-types --region {{ region }}
        --query 'InstanceTypes[?NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps >= `{{ '%.2f' | format(wanted_bytes_per_second.value * 8 / 1000000000) }}`].InstanceType'
        --output text{% endif %}
      - >-
        {% if larger_broker_size %}aws kafka update-broker-type --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-instance-type {{ larger_broker_size }}{% endif %}
      - >-
        {% if cluster_arn %}aws kafka update-broker-count --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-number-of-broker-nodes {{ more_brokers }}{% endif %}
  allowance_exceeded:
    status: firing
    severity: critical
    message: >-
      Instance {{ name }} ({{ instance_type }}) exceeded its network allowances for {{ minutes_allowance_exceeded }} of this
      hour: AWS queued or dropped packets.
    details:
      - "{% if broker %}The instance runs {{ broker }}.{% endif %}"
      - >-
        {% if bytes_per_second_now and baseline_bytes_per_second %}Traffic is {{ bytes_per_second_now }} of a baseline of
        {{ baseline_bytes_per_second }}.{% endif %}
      - >-
        {% if monitoring_level == 'DEFAULT' %}Enhanced monitoring PER_BROKER shows which allowance: bandwidth, packets, or connections.{% endif %}
    impact: *impact
    actions: *actions
    commands: *types
  throttled:
    status: firing
    severity: critical
    message: >-
      Network burst of instance {{ name }} ({{ instance_type }}) is exhausted: it
      {{ 'receives' if direction.value == 'in' else 'sends' }} {{ bytes_per_second_now }}, capped at
      {{ baseline_bytes_per_second }}.
    details:
      - "The highest rate of the last 24 h was {{ highest_bytes_per_second }}."
      - "{% if broker %}The instance runs {{ broker }}.{% endif %}"
      - >-
        {% if broker %}The broker sends {{ consumers_bytes_per_second }} to consumers and
        {{ replication_bytes_per_second }} to other brokers.{% endif %}
    impact: *impact
    actions: *actions
    commands: *types
  bursting:
    status: firing
    severity: warning
    message: >-
      Instance {{ name }} ({{ instance_type }}) has {{ 'received' if direction.value == 'in' else 'sent' }} more than its
      baseline of {{ baseline_bytes_per_second }} for {{ minutes_above }}, now {{ bytes_per_second_now }}.
    details: *details
    impact: "AWS allows bursts for 5 to 60 minutes; then the rate is capped at the baseline, and replicas and consumers fall behind."
    actions: *actions
    commands: *types
  recurring_burst:
    status: ok
    message: >-
      Instance {{ name }} bursts as on {{ days_alike }} of the last 7 days at this hour, and was never throttled.
  short_burst:
    status: ok
    message: >-
      Instance {{ name }} exceeded its baseline of {{ baseline_bytes_per_second }} for {{ minutes_above_baseline }} of this
      hour; now it transfers {{ bytes_per_second_now }}.
  within_limits:
    status: ok
    message: >-
      Instance {{ name }} transfers {{ bytes_per_second_now }} of its baseline of {{ baseline_bytes_per_second }}.
  within_allowances:
    status: ok
    message: "Instance {{ name }} stayed within its network allowances: no packets were queued or dropped."
    details: ["Enhanced monitoring PER_BROKER is required to compare traffic with the baseline."]
  no_response: {status: unknown, message: "Not evaluated: CloudWatch returned no network metrics for instance {{ name }}."}
  datapoints_missing:
    status: unknown
    message: >-
      Not evaluated: CloudWatch returned {{ minutes_present.value }} of {{ minutes_expected.value }} minutes for instance
      {{ name }}.
  limits_unknown:
    status: unknown
    message: >-
      Not evaluated: EC2 did not return the network baseline of instance {{ name }} ({{ instance_type or 'unknown type' }}).
causes:
  broker_loses_replicas: &hurting [at_peak, throttled, allowance_exceeded]
  leader_loses_followers: *hurting
  broker_delays_consumers: *hurting
  instance_delays_consumers: *hurting
open_after_hours: 1
clear_after_hours: 2
description: |
  In each direction an instance has a baseline bandwidth and a peak that it reaches while it has network credits, which
  AWS does not expose. The worse direction counts.

  Critical: lasting_minutes at 95 % of the peak. Or throttled: the rate lies at the baseline (within 5 %) for
  lately_minutes of the last 15, and at the end of each hour since it exceeded the baseline for burst_minutes, within a day.

  Amazon MSK reports packets that AWS queued or dropped (TrafficShaping, and by allowance at the monitoring level
  PER_BROKER): critical after lasting_minutes of them, whatever the bytes.

  Warning: above the baseline for lately_minutes of the last 15 and for lasting_minutes in total. An equally long burst at
  this hour on recurring_days of the last week, never throttled in it, does not fire.
runbook: |
  ## Meaning
  The instance uses its peak bandwidth, is capped at its baseline, or bursts for so long that the cap is near.

  ## Impact
  Packets are queued or dropped. Replicas and consumers fall behind, and requests time out.

  ## Diagnosis
  1. Find the traffic: cold reads by consumers, replication after a restart, or a reassignment without a throttle.
  2. On the instance, `ethtool -S` counts throttled packets: bw_in_allowance_exceeded and bw_out_allowance_exceeded.

  ## Mitigation
  1. Throttle the reassignment or the consumer, or move leaders to other brokers.
  2. Change to a larger instance type. Traffic to other regions and through gateways has lower limits.
limitations: |
  Peaks within a minute are hidden by the mean, with basic monitoring within five minutes. Network credits are not exposed
  by AWS. A load that falls to exactly the baseline after a burst is reported as throttled for an hour. Limits of packets
  and of connections are evaluated on Amazon MSK only.
*/
with network as (
  select
    n.*,
    b.minutes_above_baseline as minutes_above_before,
    n.peak_bytes_per_second >= :burst_ratio * n.baseline_bytes_per_second as has_burst
  from metrics.instance_network_hourly as n
  left join metrics.instance_network_hourly as b
    on n.hour - interval '1 hour' = b.hour and n.account = b.account and n.region = b.region
    and n.instance_id = b.instance_id and n.direction = b.direction
  where n.hour = :hour
),

-- For rates at the baseline: the last burst, and the last hour that did not end at the baseline.
day as (
  select
    n.account,
    n.region,
    n.instance_id,
    n.direction,
    max(d.hour) filter (where d.minutes_above_baseline >= :burst_minutes) as burst_hour,
    max(d.hour) filter (where d.hour < n.hour and d.minutes_at_baseline_lately < :lately_minutes) as free_hour,
    max(d.bytes_per_second_max) as highest_bytes_per_second
  from network as n
  inner join metrics.instance_network_hourly as d
    on n.account = d.account and n.region = d.region and n.instance_id = d.instance_id and n.direction = d.direction
  where n.has_burst and n.minutes_at_baseline_lately >= :lately_minutes
  and d.hour > n.hour - interval '24 hours' and d.hour <= n.hour
  group by n.account, n.region, n.instance_id, n.direction
),

-- Days with an equally long burst at this hour, and whether the instance was throttled in the week.
week as (
  select
    n.account,
    n.region,
    n.instance_id,
    n.direction,
    count(distinct floor((extract(epoch from n.hour - w.hour) / 3600 + 1) / 24)) filter (
      where w.minutes_above_baseline >= 0.75 * n.minutes_above_baseline
      and mod((extract(epoch from n.hour - w.hour) / 3600)::integer + 1, 24) <= 2
    ) as days_alike,
    bool_or(w.minutes_at_baseline_lately >= :lately_minutes and w.minutes_above_baseline >= :burst_minutes) as was_throttled
  from network as n
  inner join metrics.instance_network_hourly as w
    on n.account = w.account and n.region = w.region and n.instance_id = w.instance_id and n.direction = w.direction
  where w.hour >= n.hour - interval '169 hours' and w.hour < n.hour - interval '20 hours'
  and n.minutes_above_lately >= :lately_minutes
  group by n.account, n.region, n.instance_id, n.direction
),

evaluated as (
  select
    n.*,
    w.days_alike,
    d.highest_bytes_per_second,
    n.minutes_above_baseline + case when n.minutes_above_baseline >= 45 then coalesce(n.minutes_above_before, 0) else 0 end
      as minutes_above,
    case
      when n.minutes_allowance_exceeded >= :lasting_minutes then 'allowance_exceeded'
      when n.minutes_present is null and n.minutes_allowance_exceeded is not null then 'within_allowances'
      when n.minutes_present is null then 'no_response'
      when n.minutes_present < :known_percent / 100.0 * n.minutes_expected then 'datapoints_missing'
      when n.baseline_bytes_per_second is null or n.peak_bytes_per_second is null then 'limits_unknown'
      when n.minutes_at_peak >= :lasting_minutes then 'at_peak'
      when coalesce(d.free_hour <= d.burst_hour, d.burst_hour is not null) then 'throttled'
      when n.has_burst and n.minutes_above_lately >= :lately_minutes and n.minutes_above_baseline >= :lasting_minutes
        then case when w.days_alike >= :recurring_days and w.was_throttled is not true then 'recurring_burst' else 'bursting' end
      when num_nulls(n.minutes_at_peak, n.minutes_above_baseline, n.minutes_above_lately, n.minutes_at_baseline_lately) > 0
        then 'datapoints_missing'
      when n.minutes_above_baseline > 0 then 'short_burst'
      else 'within_limits'
    end as finding
  from network as n
  left join week as w
    on n.account = w.account and n.region = w.region and n.instance_id = w.instance_id and n.direction = w.direction
  left join day as d
    on n.account = d.account and n.region = d.region and n.instance_id = d.instance_id and n.direction = d.direction
),

worst as (
  select distinct on (account, region, instance_id) *
  from evaluated
  order by
    account asc,
    region asc,
    instance_id asc,
    array_position(
      array[
        'allowance_exceeded', 'at_peak', 'throttled', 'bursting', 'no_response', 'datapoints_missing', 'limits_unknown',
        'recurring_burst', 'short_burst', 'within_limits', 'within_allowances'
      ],
      finding
    ) asc,
    bytes_per_second_now desc nulls last,
    direction asc
),

-- The 99th percentile of the rate of the last 24 hours.
wanted as (
  select
    w.account,
    w.region,
    w.instance_id,
    max(d.bytes_per_second_p99) as bytes_per_second_p99
  from worst as w
  inner join metrics.instance_network_hourly as d
    on w.account = d.account and w.region = d.region and w.instance_id = d.instance_id and w.direction = d.direction
  where d.hour > w.hour - interval '24 hours' and d.hour <= w.hour
  and w.finding in ('allowance_exceeded', 'at_peak', 'throttled', 'bursting')
  group by w.account, w.region, w.instance_id
)

select
  case
    when w.finding = 'allowance_exceeded' then 'allowance_exceeded'
    when w.finding = 'within_allowances' then 'within_allowances'
    when w.finding = 'at_peak' then 'at_peak'
    when w.finding = 'throttled' then 'throttled'
    when w.finding = 'bursting' then 'bursting'
    when w.finding = 'no_response' then 'no_response'
    when w.finding = 'datapoints_missing' then 'datapoints_missing'
    when w.finding = 'limits_unknown' then 'limits_unknown'
    when w.finding = 'recurring_burst' then 'recurring_burst'
    when w.finding = 'short_burst' then 'short_burst'
    else 'within_limits'
  end as reason,
  w.account,
  w.region,
  w.instance_id,
  w.direction,
  w.instance_type,
  w.baseline_bytes_per_second,
  w.peak_bytes_per_second,
  w.bytes_per_second_now,
  w.highest_bytes_per_second,
  w.minutes_above_baseline,
  w.minutes_above,
  w.minutes_at_peak,
  w.minutes_present,
  w.minutes_expected,
  w.days_alike,
  w.finding in ('allowance_exceeded', 'at_peak', 'throttled') as is_cut_off,
  d.bytes_per_second_p99
  * case when w.finding in ('allowance_exceeded', 'at_peak', 'throttled') then cast(:step_ratio as double precision) else :headroom_ratio end
    as wanted_bytes_per_second,
  b.cluster || ' broker ' || b.broker_id as broker,
  b.bytes_out_per_second as consumers_bytes_per_second,
  b.replication_bytes_out_per_second as replication_bytes_per_second,
  w.minutes_allowance_exceeded,
  k.msk_cluster,
  k.cluster_arn,
  k.current_version,
  k.larger_broker_size,
  k.monitoring_level,
  k.broker_count + greatest(k.broker_count / 3, 1) as more_brokers
from worst as w
left join inventory.msk_brokers(:hour) as k
  on w.account = k.account and w.region = k.region and w.instance_id = k.instance_id
left join wanted as d on w.account = d.account and w.region = d.region and w.instance_id = d.instance_id
left join lateral (
  select
    m.cluster,
    m.broker_id,
    m.bytes_out_per_second,
    m.replication_bytes_out_per_second
  from metrics.broker_hourly as m
  where m.hour = w.hour and m.instance_id = w.instance_id and m.bytes_out_per_second is not null
  order by m.bytes_out_per_second desc, m.cluster asc, m.broker_id asc
  limit 1
) as b on true
