/*
title: CPU credits exhausted
resource_kind: instance
owner_role: platform
maturity: stable
is_mutation_tested: false
reads: [metrics.instance_health_hourly, metrics.instance_network_hourly, metrics.instance_hourly,
  inventory.msk_broker_hourly, inventory.msk_cluster_hourly]
params:
  warning_hours: {default: 12, unit: h, why: "a night"}
  spent_hours: {default: 3, unit: h, why: "a batch or a deployment spends for an hour or two, and earns it back"}
  empty_credits: {default: 1, unit: credits, why: "one minute of one vCPU: earned credits are spent at once"}
  recurring_days: {default: 3, unit: days, why: "of the last 7, with as few credits at this hour and never exhausted: a recurring load"}
  recurring_ratio: {default: 1.25, unit: ratio, why: "of the current balance: up to this, another day's balance counts as equally low"}
  charged_hours: {default: 12, unit: h, why: "of the last 24; so many are not a burst but the regular load"}
  vcpu_usd_per_hour: {default: 0.05, unit: USD, why: "AWS's price of surplus credits for T2, T3, and T3a with Linux; 0.04 for T4g"}
key_metrics: [cpu_credits, spent_credits_per_hour, hours_to_empty, cpu_mean_percent, charged_usd_per_month]
verdicts:
  throttled:
    status: firing
    severity: critical
    message: >-
      Instance {{ name }} ({{ instance_type or 'unknown type' }}) has no CPU credits left and uses no surplus credits:
      its CPU is capped at the baseline.
    details:
      - "{% if cpu_mean_percent %}Mean CPU utilization in this hour was {{ cpu_mean_percent }}.{% endif %}"
    impact: "All processes on the instance slow down: brokers lose replicas, consumers fall behind."
    actions:
      - &unlimited >-
        {% if not cluster_arn %}Switch the instance to unlimited mode until it is replaced; each surplus vCPU hour is
        charged.{% endif %}
      - &larger >-
        {% if not cluster_arn %}Change to a type without CPU credits (M, C, or R), or to a larger type of the same family.{%
        else %}Change the brokers of {{ msk_cluster }} from {{ instance_type }} to {{ larger_broker_size }}, which has no CPU
        credits. MSK replaces one broker after the other.{% endif %}
    commands: &commands
      - >-
        {% if not cluster_arn %}aws ec2 describe-instance-credit-specifications --region {{ region }}
        --instance-ids {{ instance_id }}{% endif %}
      - >-
        {% if not cluster_arn %}aws ec2 modify-instance-credit-specification --region {{ region }}
        --instance-credit-specifications 'InstanceId={{ instance_id }},CpuCredits=unlimited'{% endif %}
      - >-
        {% if cluster_arn %}aws kafka update-broker-type --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-instance-type {{ larger_broker_size }}{% endif %}
  credits_draining:
    status: firing
    severity: warning
    message: >-
      CPU credits of instance {{ name }} ({{ instance_type or 'unknown type' }}) will be exhausted in {{ hours_to_empty }}:
      {{ cpu_credits }} left, net use {{ spent_credits_per_hour }} for {{ spent_hours }}.
    impact: >-
      Without credits, CPU is capped at the baseline of the instance type; in unlimited mode, surplus credits are charged
      instead.
    actions:
      - "Reduce CPU load on the instance: pause restores, backfills, and backups."
      - *unlimited
      - *larger
    commands: *commands
  surplus_charged:
    status: firing
    severity: info
    message: >-
      Sustained use of surplus CPU credits: instance {{ name }} ({{ instance_type or 'unknown type' }}) was charged in
      {{ hours_charged }} of the last 24 h, at {{ charged_usd_per_month }}.
    impact: "Surplus credits cost {{ charged_usd_per_month }} on top of the price of the instance."
    actions:
      - "Change to a type without CPU credits (M, C, or R) if that costs less, or to a larger type of the same family."
  surplus_used:
    status: ok
    message: "Instance {{ name }} uses surplus CPU credits ({{ surplus_credits }}) and repays them from earned credits."
  recurring_load:
    status: ok
    message: >-
      CPU credit balance of instance {{ name }} is {{ cpu_credits }}, as low as on {{ days_alike }} of the last 7 days at this hour,
      without exhausting them.
  credits_sufficient:
    status: ok
    message: >-
      CPU credit balance of instance {{ name }} is {{ cpu_credits }}
      {%- if hours_to_empty %}, enough for {{ hours_to_empty }} at its current use{% endif %}.
  no_response: {status: unknown, message: "Not evaluated: CloudWatch did not return all CPU credit metrics of instance {{ name }}."}
  short_history:
    status: unknown
    message: >-
      Not evaluated: the credit use of instance {{ name }} ({{ cpu_credits }} left) is known for only {{ known_hours }} of
      the last {{ spent_hours }}.
causes:
  cpu_slows_broker: [throttled]
  broker_loses_replicas: [throttled]
  leader_loses_followers: [throttled]
  broker_delays_consumers: [throttled]
  instance_delays_consumers: [throttled]
open_after_hours: 1
clear_after_hours: 3
description: |
  Evaluates instance types that earn CPU credits (T2, T3, T4g). Critical: at most empty_credits at any time of the hour,
  and no surplus credits. Warning: the balance fell in each of the last spent_hours, and the rest lasts for at most
  warning_hours at the mean of them. A balance that was as low at this hour on recurring_days of the last week, and never
  exhausted in it, does not fire. Information: surplus credits were charged in charged_hours of the last 24.
runbook: |
  ## Meaning
  The instance has no CPU credits left, will have none soon, or is charged for surplus credits.

  ## Impact
  In standard mode CPU is capped at the baseline of the instance type. In unlimited mode surplus credits are charged.

  ## Diagnosis
  1. Find the process that uses the CPU: a restore, a compaction, a backup, or the regular load.
  2. `aws ec2 describe-instance-credit-specifications` returns whether the instance is in unlimited mode.

  ## Mitigation
  1. Switch to unlimited mode for now.
  2. Regular load above the baseline needs another instance type.
  3. A stop discards the credits of T2; T3 and T4g keep them for seven days.
limitations: |
  Unlimited mode is not visible before surplus credits are used: such an instance fires as surplus_charged, not as
  throttled. A balance that falls and rises within the hour is not detected. Only T families are
  known to be burstable.
*/
with burstable as (
  select
    h.*,
    n.instance_type,
    i.cpu_mean_percent
  from metrics.instance_health_hourly as h
  left join metrics.instance_network_hourly as n
    on h.hour = n.hour and h.account = n.account and h.region = n.region and h.instance_id = n.instance_id
    and n.direction = 'in'
  left join metrics.instance_hourly as i
    on h.hour = i.hour and h.account = i.account and h.region = i.region and h.instance_id = i.instance_id
  where h.hour = :hour and h.is_burstable
),

-- Decrease of the balance in each of the last spent_hours.
spent as (
  select
    b.account,
    b.region,
    b.instance_id,
    count(p.cpu_credits - a.cpu_credits) as known_hours,
    avg(p.cpu_credits - a.cpu_credits) as credits_per_hour,
    min(p.cpu_credits - a.cpu_credits) as least
  from burstable as b
  inner join metrics.instance_health_hourly as a
    on b.account = a.account and b.region = a.region and b.instance_id = a.instance_id
    and b.hour - make_interval(hours => :spent_hours) < a.hour and b.hour >= a.hour
  inner join metrics.instance_health_hourly as p
    on a.hour - interval '1 hour' = p.hour and a.account = p.account and a.region = p.region
    and a.instance_id = p.instance_id
  group by b.account, b.region, b.instance_id
),

charged as (
  select
    b.account,
    b.region,
    b.instance_id,
    count(*) filter (where d.cpu_credits_charged > 0) as hours_charged,
    count(*) filter (where d.cpu_credits_charged is null) as unknown_hours,
    avg(d.cpu_credits_charged) as credits_per_hour
  from burstable as b
  inner join metrics.instance_health_hourly as d
    on b.account = d.account and b.region = d.region and b.instance_id = d.instance_id
    and b.hour - interval '24 hours' < d.hour and b.hour >= d.hour
  group by b.account, b.region, b.instance_id
),

evaluated as (
  select
    b.*,
    coalesce(s.known_hours, 0) as known_hours,
    c.hours_charged,
    c.unknown_hours,
    c.credits_per_hour as charged_per_hour,
    case when s.credits_per_hour > 0 then s.credits_per_hour end as spent_credits_per_hour,
    case when s.credits_per_hour > 0 then b.cpu_credits / s.credits_per_hour end as hours_to_empty,
    s.least > 0 and s.known_hours = :spent_hours as is_spending
  from burstable as b
  left join spent as s using (account, region, instance_id)
  left join charged as c using (account, region, instance_id)
),

-- For instances with a falling balance: days with as few credits at this hour, and the minimum of the week.
week as (
  select
    j.account,
    j.region,
    j.instance_id,
    count(distinct floor((extract(epoch from j.hour - w.hour) / 3600 + 1) / 24)) filter (
      where w.cpu_credits <= :recurring_ratio * j.cpu_credits
      and mod((extract(epoch from j.hour - w.hour) / 3600)::integer + 1, 24) <= 2
    ) as days_alike,
    min(w.cpu_credits) as fewest
  from evaluated as j
  inner join metrics.instance_health_hourly as w
    on j.account = w.account and j.region = w.region and j.instance_id = w.instance_id
    and j.hour - interval '169 hours' <= w.hour and j.hour - interval '20 hours' > w.hour
  where j.is_spending and j.hours_to_empty <= :warning_hours
  group by j.account, j.region, j.instance_id
)

select
  case
    when j.cpu_credits is null then 'no_response'
    when j.hours_charged >= :charged_hours then 'surplus_charged'
    when j.cpu_credits_borrowed > 0 and j.hours_charged + j.unknown_hours >= :charged_hours then 'no_response'
    when j.cpu_credits_borrowed > 0 or j.cpu_credits_charged > 0 then 'surplus_used'
    when j.cpu_credits_most <= :empty_credits then 'throttled'
    when j.cpu_credits_most is null then 'no_response'
    when j.known_hours < :spent_hours then 'short_history'
    when j.is_spending and j.hours_to_empty <= :warning_hours
      then case when w.days_alike >= :recurring_days and w.fewest > :empty_credits then 'recurring_load' else 'credits_draining' end
    else 'credits_sufficient'
  end as reason,
  account,
  region,
  instance_id,
  j.instance_type,
  j.cpu_credits,
  j.spent_credits_per_hour,
  j.hours_to_empty,
  j.known_hours,
  j.cpu_mean_percent,
  j.cpu_credits_borrowed as surplus_credits,
  j.hours_charged,
  j.charged_per_hour / 60 * :vcpu_usd_per_hour * 730 as charged_usd_per_month,
  w.days_alike,
  k.msk_cluster,
  k.cluster_arn,
  k.current_version,
  k.larger_broker_size
from evaluated as j
left join week as w using (account, region, instance_id)
left join (
  select account, region, instance_id, msk_cluster, cluster_arn, current_version, larger_broker_size
  from inventory.msk_brokers(:hour)
) as k using (account, region, instance_id)
