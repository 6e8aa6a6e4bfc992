/*
title: Machine's CPU credits run out
resource_kind: instance
owner_role: platform
maturity: stable
reads: [metrics.instance_health_hourly, metrics.instance_network_hourly, metrics.instance_hourly]
params:
  warning_hours: {default: 12, unit: h, why: "a night"}
  spent_hours: {default: 3, unit: h, why: "a batch or a deploy spends for an hour or two, and earns it back"}
  empty_credits: {default: 1, unit: credits, why: "a minute of one vCPU: what is earned is spent at once"}
  habit_days: {default: 3, unit: days, why: "of the last 7: what was as low at this hour, and never ran out, comes back"}
  habit_ratio: {default: 1.25, unit: ratio, why: "so near to the balance now the balance of another day is as low"}
  charged_hours: {default: 12, unit: h, why: "of the last 24: then it isn't a burst, but what it needs"}
  vcpu_usd_per_hour: {default: 0.05, unit: USD, why: "AWS' price of borrowed CPU for T2, T3 and T3a with Linux; 0.04 for T4g"}
key_metrics: [cpu_credits, spent_credits_per_hour, hours_to_empty, cpu_mean_percent, charged_usd_per_month]
verdicts:
  held:
    status: firing
    severity: critical
    message: "Its CPU credits are spent, and it borrows none: it is held to what its type{% if instance_type %} ({{ instance_type }}){% endif %} sustains{% if cpu_mean_percent %}, and did {{ cpu_mean_percent }} in this hour{% endif %}."
    actions:
      - &cure "Take a type without credits (M, C or R), or a larger one of the same family: it earns more. Until then let it borrow (unlimited): each vCPU hour is charged."
    commands: &commands
      - "aws ec2 describe-instance-credit-specifications --region {{ region }} --instance-ids {{ instance_id }}"
      - "aws ec2 modify-instance-credit-specification --region {{ region }} --instance-credit-specifications 'InstanceId={{ instance_id }},CpuCredits=unlimited'"
  spending:
    status: firing
    severity: warning
    message: "It spends {{ spent_credits_per_hour }} of CPU more than its type{% if instance_type %} ({{ instance_type }}){% endif %} earns, for {{ spent_hours }} on end: the {{ cpu_credits }} that are left last {{ hours_to_empty }}. Then it is held to its baseline, or borrows for money if it is unlimited."
    actions:
      - *cure
    commands: *commands
  charged:
    status: firing
    severity: info
    message: "It lives on borrowed CPU: credits were charged in {{ hours_charged }} of the last 24, {{ charged_usd_per_month }} at this rate beside the price of its type{% if instance_type %} ({{ instance_type }}){% endif %}."
    actions:
      - "Take a type without credits (M, C or R) if it costs less than that more, or a larger one of the same family."
  borrows: {status: ok, message: "It has borrowed {{ borrowed_credits }} of CPU, and pays them back from what it earns."}
  habit: {status: ok, message: "It has {{ cpu_credits }} of CPU, as few as at this hour on {{ days_alike }} of the last 7 days, and never ran out of them."}
  enough: {status: ok, message: "It has {{ cpu_credits }} of CPU{% if hours_to_empty %}, for {{ hours_to_empty }} at what it spends{% endif %}."}
  no_answer: {status: unknown, message: "CloudWatch does not tell its CPU credits."}
  short_history: {status: unknown, message: "It has {{ cpu_credits }} of CPU; whether it spends them isn't known: only {{ known_hours }} of the last {{ spent_hours }} are."}
causes:
  cpu_slows_broker: [held]
  broker_loses_replicas: [held]
  leader_loses_followers: [held]
  broker_delays_consumers: [held]
  instance_delays_consumers: [held]
open_after_hours: 1
clear_after_hours: 3
description: |
  Of types that earn CPU credits (T2, T3, T4g). Critical: none but empty_credits at any time of the hour, and none borrowed.
  Warning: the balance fell in each of the last spent_hours, and what is left lasts warning_hours at the mean of them. What
  was as low at this hour on habit_days of the last week, and never ran out in it, is a habit. Information: what was
  borrowed is charged in charged_hours of the last 24.
runbook: |
  1. Which process takes the CPU: a restore, a compaction, a backup, or what the machine is there for?
  2. What it is there for wants more than its baseline day and night: another type. `aws ec2 describe-instance-credit-specifications` says whether it borrows.
  3. A launch or a stop takes the credits of T2; T3 and T4g keep them for seven days.
limitations: |
  Whether an instance borrows (unlimited) isn't told before it does: one that will isn't held, but charged. A balance that
  falls and rises within the hour. Types by the letter t: other burstable ones aren't known.
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

-- By how much the balance fell in each of the last hours.
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
    avg(d.cpu_credits_charged) as credits_per_hour
  from burstable as b
  inner join metrics.instance_health_hourly as d
    on b.account = d.account and b.region = d.region and b.instance_id = d.instance_id
    and b.hour - interval '24 hours' < d.hour and b.hour >= d.hour
  group by b.account, b.region, b.instance_id
),

judged as (
  select
    b.*,
    coalesce(s.known_hours, 0) as known_hours,
    c.hours_charged,
    c.credits_per_hour as charged_per_hour,
    case when s.credits_per_hour > 0 then s.credits_per_hour end as spent_credits_per_hour,
    case when s.credits_per_hour > 0 then b.cpu_credits / s.credits_per_hour end as hours_to_empty,
    s.least > 0 and s.known_hours = :spent_hours as is_spending
  from burstable as b
  left join spent as s using (account, region, instance_id)
  left join charged as c using (account, region, instance_id)
),

-- Of those that spend: days on which they had as few at this hour, and the fewest they had.
week as (
  select
    j.account,
    j.region,
    j.instance_id,
    count(distinct floor((extract(epoch from j.hour - w.hour) / 3600 + 1) / 24)) filter (
      where w.cpu_credits <= :habit_ratio * j.cpu_credits
      and mod((extract(epoch from j.hour - w.hour) / 3600)::integer + 1, 24) <= 2
    ) as days_alike,
    min(w.cpu_credits) as fewest
  from judged as j
  inner join metrics.instance_health_hourly as w
    on j.account = w.account and j.region = w.region and j.instance_id = w.instance_id
    and j.hour - interval '169 hours' <= w.hour and j.hour - interval '20 hours' > w.hour
  where j.is_spending and j.hours_to_empty <= :warning_hours
  group by j.account, j.region, j.instance_id
)

select
  case
    when j.cpu_credits is null then 'no_answer'
    when j.hours_charged >= :charged_hours then 'charged'
    when j.cpu_credits_borrowed > 0 or j.cpu_credits_charged > 0 then 'borrows'
    when j.cpu_credits_most <= :empty_credits then 'held'
    when j.known_hours < :spent_hours then 'short_history'
    when j.is_spending and j.hours_to_empty <= :warning_hours
      then case when w.days_alike >= :habit_days and w.fewest > :empty_credits then 'habit' else 'spending' end
    else 'enough'
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
  j.cpu_credits_borrowed as borrowed_credits,
  j.hours_charged,
  j.charged_per_hour / 60 * :vcpu_usd_per_hour * 730 as charged_usd_per_month,
  w.days_alike
from judged as j
left join week as w using (account, region, instance_id)
