/*
title: Machine's network is starving
resource_kind: instance
owner_role: platform
maturity: stable
reads: [metrics.instance_network_hourly, metrics.broker_hourly]
params:
  lasting_minutes: {default: 15, unit: minutes, why: "queues absorb shorter peaks; a deploy or a flush takes less"}
  lately_minutes: {default: 13, unit: minutes, why: "of the last 15: a point or two may be late"}
  burst_minutes: {default: 5, unit: minutes, why: "AWS: a burst lasts 5 to 60 minutes, by the instance's size; a rate at the baseline without one before is only that large"}
  burst_ratio: {default: 1.1, unit: ratio, why: "a type whose peak is hardly above its baseline has no burst"}
  known_percent: {default: 50, unit: "%", why: "with fewer of the hour's minutes known nothing can be said of it"}
  habit_days: {default: 3, unit: days, why: "of the last 7: what bursts as long at this hour, and never was held back, is a habit"}
  headroom_ratio: {default: 1.2, unit: ratio, why: "what to buy, over the 99th percentile of what it did"}
  step_ratio: {default: 2, unit: ratio, why: "what is asked for beyond a limit isn't seen: buy twice as much, and look again"}
key_metrics: [bytes_per_second_now, baseline_bytes_per_second, peak_bytes_per_second, minutes_above_baseline, minutes_at_peak]
verdicts:
  at_peak:
    status: firing
    severity: critical
    message: "It has {{ 'received' if direction.value == 'in' else 'sent' }} all that its type ({{ instance_type }}) gives, {{ peak_bytes_per_second }}, for {{ minutes_at_peak }} of the hour: what is beyond waits, or is dropped.{% if broker %} It is {{ broker }}: {{ consumers_bytes_per_second }} go to consumers, {{ replication_bytes_per_second }} to other brokers.{% endif %}"
    actions:
      - &larger "Take a type that sustains {{ wanted_bytes_per_second }}, or spread the load{% if broker %}: move leaders away from this broker, throttle reassignments, let consumers read from the nearest replica{% endif %}.{% if is_cut_off %} How much is asked for beyond the limit nothing tells, so this is a step: look again a day after it.{% endif %}"
    commands: &types
      - "aws ec2 describe-instance-types --region {{ region }} --query 'InstanceTypes[?NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps >= `{{ '%.2f' | format(wanted_bytes_per_second.value * 8 / 1000000000) }}`].InstanceType' --output text"
  held:
    status: firing
    severity: critical
    message: "Its burst is spent: it is held to the {{ baseline_bytes_per_second }} that its type ({{ instance_type }}) sustains, and has {{ 'received' if direction.value == 'in' else 'sent' }} {{ bytes_per_second_now }} for a quarter of an hour; before that it reached {{ highest_bytes_per_second }}.{% if broker %} It is {{ broker }}: {{ consumers_bytes_per_second }} go to consumers, {{ replication_bytes_per_second }} to other brokers.{% endif %}"
    actions:
      - *larger
    commands: *types
  bursting:
    status: firing
    severity: warning
    message: "It spends its network's burst: for {{ minutes_above }} it has {{ 'received' if direction.value == 'in' else 'sent' }} more than the {{ baseline_bytes_per_second }} that its type ({{ instance_type }}) sustains, {{ bytes_per_second_now }} now. AWS gives that for an hour at most, and doesn't tell what is left.{% if broker %} It is {{ broker }}: {{ consumers_bytes_per_second }} go to consumers, {{ replication_bytes_per_second }} to other brokers.{% endif %}"
    actions:
      - *larger
    commands: *types
  habit: {status: ok, message: "It bursts as at this hour on {{ days_alike }} of the last 7 days, and was never held back."}
  peak: {status: ok, message: "It did more than the {{ baseline_bytes_per_second }} that its type sustains for {{ minutes_above_baseline }} of the hour; now it does {{ bytes_per_second_now }}."}
  within: {status: ok, message: "It does {{ bytes_per_second_now }} of the {{ baseline_bytes_per_second }} that its type sustains."}
  no_answer: {status: unknown, message: "CloudWatch did not answer for it."}
  minutes_missing: {status: unknown, message: "CloudWatch has only {{ minutes_present.value }} of the {{ minutes_expected.value }} minutes."}
  limits_unknown: {status: unknown, message: "EC2 does not tell what the network of its type{% if instance_type %} ({{ instance_type }}){% endif %} sustains."}
causes:
  broker_loses_replicas: &hurting [at_peak, held]
  leader_loses_followers: *hurting
  broker_delays_consumers: *hurting
  instance_delays_consumers: *hurting
open_after_hours: 1
clear_after_hours: 2
description: |
  An instance lives within what its type sustains in each direction, and what it reaches in a burst while it has credits,
  whose number AWS tells nobody. Critical: at least lasting_minutes at 95 % of the peak; or held, which shows as a rate
  that lies at the baseline (within 5 %) for lately_minutes of the last 15, and at the end of each hour since it was above
  for burst_minutes, within a day. Warning: above the baseline for lately_minutes of the last 15 and lasting_minutes
  in all; AWS gives 5 to 60 minutes. What burst as long at this hour on habit_days of the last week, and never was held
  back in it, is a habit. Of the two directions the worse speaks.
runbook: |
  1. Who sends: consumers that read from far behind, replication after a restart, a reassignment without a throttle?
  2. On the machine `ethtool -S` counts bw_in_allowance_exceeded and bw_out_allowance_exceeded: packets that waited.
  3. A larger type, or leaders on other brokers. Traffic to other regions and through gateways has lower limits.
limitations: |
  Peaks within a minute: the mean of a minute hides them, basic monitoring that of five. AWS doesn't tell the credits. A
  load that falls to just the baseline by itself after a burst looks held for an hour. Limits of packets and of connections.
*/
with network as (
  select
    n.*,
    b.minutes_above_baseline as above_before,
    n.peak_bytes_per_second >= :burst_ratio * n.baseline_bytes_per_second as has_burst
  from metrics.instance_network_hourly as n
  left join metrics.instance_network_hourly as b
    on n.hour - interval '1 hour' = b.hour and n.account = b.account and n.region = b.region
    and n.instance_id = b.instance_id and n.direction = b.direction
  where n.hour = :hour
),

-- Those that lie at the baseline: when they burst last, and when they were free of it last.
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

-- Days on which it burst as long at this hour, and whether it was held back meanwhile.
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
    bool_or(w.minutes_at_baseline_lately >= :lately_minutes and w.minutes_above_baseline >= :burst_minutes) as was_ever_held
  from network as n
  inner join metrics.instance_network_hourly as w
    on n.account = w.account and n.region = w.region and n.instance_id = w.instance_id and n.direction = w.direction
  where w.hour >= n.hour - interval '169 hours' and w.hour < n.hour - interval '20 hours'
  and n.minutes_above_lately >= :lately_minutes
  group by n.account, n.region, n.instance_id, n.direction
),

judged as (
  select
    n.*,
    w.days_alike,
    d.highest_bytes_per_second,
    n.minutes_above_baseline + case when n.minutes_above_baseline >= 45 then coalesce(n.above_before, 0) else 0 end
      as minutes_above,
    case
      when n.minutes_present is null then 'no_answer'
      when n.minutes_present < :known_percent / 100.0 * n.minutes_expected then 'minutes_missing'
      when n.baseline_bytes_per_second is null or n.peak_bytes_per_second is null then 'limits_unknown'
      when n.minutes_at_peak >= :lasting_minutes then 'at_peak'
      when coalesce(d.free_hour <= d.burst_hour, d.burst_hour is not null) then 'held'
      when n.has_burst and n.minutes_above_lately >= :lately_minutes and n.minutes_above_baseline >= :lasting_minutes
        then case when w.days_alike >= :habit_days and w.was_ever_held is not true then 'habit' else 'bursting' end
      when n.minutes_above_baseline > 0 then 'peak'
      else 'within'
    end as said
  from network as n
  left join week as w
    on n.account = w.account and n.region = w.region and n.instance_id = w.instance_id and n.direction = w.direction
  left join day as d
    on n.account = d.account and n.region = d.region and n.instance_id = d.instance_id and n.direction = d.direction
),

worst as (
  select distinct on (account, region, instance_id) *
  from judged
  order by
    account asc,
    region asc,
    instance_id asc,
    array_position(
      array['at_peak', 'held', 'bursting', 'no_answer', 'minutes_missing', 'limits_unknown', 'habit', 'peak', 'within'], said
    ) asc,
    bytes_per_second_now desc nulls last,
    direction asc
),

-- By the 99th percentile of a day.
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
  and w.said in ('at_peak', 'held', 'bursting')
  group by w.account, w.region, w.instance_id
)

select
  case
    when w.said = 'at_peak' then 'at_peak'
    when w.said = 'held' then 'held'
    when w.said = 'bursting' then 'bursting'
    when w.said = 'no_answer' then 'no_answer'
    when w.said = 'minutes_missing' then 'minutes_missing'
    when w.said = 'limits_unknown' then 'limits_unknown'
    when w.said = 'habit' then 'habit'
    when w.said = 'peak' then 'peak'
    else 'within'
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
  w.said in ('at_peak', 'held') as is_cut_off,
  d.bytes_per_second_p99
  * case when w.said in ('at_peak', 'held') then cast(:step_ratio as double precision) else :headroom_ratio end
    as wanted_bytes_per_second,
  b.cluster || ' broker ' || b.broker_id as broker,
  b.bytes_out_per_second as consumers_bytes_per_second,
  b.replication_bytes_out_per_second as replication_bytes_per_second
from worst as w
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
