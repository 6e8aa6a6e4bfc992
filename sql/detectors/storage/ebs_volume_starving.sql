/*
title: EBS volume is starving
resource_kind: volume
owner_role: platform
maturity: stable
reads: [inventory.volume_hourly, inventory.instance_hourly, inventory.ebs_price, metrics.volume_hourly, metrics.volume_sample, metrics.instance_sample]
params:
  warn_hours: {default: 6, unit: hours, why: "one on-call shift to react before the bucket is empty"}
  soon_hours: {default: 4, unit: hours, why: "what lasts longer the next hour sees as well, and still 2 h ahead"}
  draining_minutes: {default: 7, unit: minutes, why: "half of the last 15; what is shorter is a deploy or a spike"}
  lasting_minutes: {default: 15, unit: minutes, why: "queues absorb shorter throttling; a spike is no shortage"}
  short_minutes: {default: 4, unit: minutes, why: "enough where it goes on: the bucket is empty, or the hour before was bad"}
  stalled_minutes: {default: 2, unit: minutes, why: "no application is asked to wait so long for a disk; one may be a failover"}
  slow_ms: {default: 20, unit: ms, why: "SSD volumes answer in single-digit milliseconds (EBS User Guide); twice of that"}
  slow_ratio: {default: 5, unit: ratio, why: "times what is usual of this volume"}
  usual_hours: {default: 12, unit: hours, why: "of the last 7 days; with fewer nothing is usual"}
  low_percent: {default: 5, unit: "%", why: "a bucket this low that still falls is as good as empty"}
  known_percent: {default: 50, unit: "%", why: "with fewer of the hour's minutes known nothing can be said of it"}
  bursting_minutes: {default: 25, unit: minutes, why: "an instance's burst is made for a quarter of an hour of a deploy or a flush; told every 5 minutes, it looks up to 10 longer"}
  fall_percent_per_hour: {default: 5, unit: "%", why: "of an instance's burst; slower, its load sways about what it sustains with the day"}
  part_percent: {default: 10, unit: "%", why: "a volume that does less of what its instance sustains isn't what drains it"}
  habit_days: {default: 3, unit: days, why: "of the last 7; so often drained as far at this hour and never emptied, it is a habit"}
  habit_percent: {default: 3, unit: "%", why: "a bucket that was this near to where it is now was as low; one that overran is lower"}
  habit_burn_ratio: {default: 0.75, unit: ratio, why: "of what it burns now; a load that was lighter is no habit"}
  headroom_ratio: {default: 1.2, unit: ratio, why: "what to buy, over the 99th percentile of what was asked for"}
  step_ratio: {default: 2, unit: ratio, why: "what is asked for beyond a limit isn't seen: buy twice as much, and look again"}
key_metrics: [throttled_minutes, hours_to_exhaustion, hours_to_instance_burst_end, demand_over_baseline_ratio, burst_balance_last_percent]
verdicts:
  bucket_empty:
    status: firing
    severity: critical
    message: >-
      Its bucket is empty ({{ burst_balance_last_percent }}): for {{ throttled_minutes }} it has been held to its baseline of
      {{ baseline_iops }}, {{ baseline_bytes_per_second }}
      {%- if demand_over_baseline_ratio > 1.1 %}; it asks for {{ demand_over_baseline_ratio }} of that{% endif %}.
    actions:
      - &change >-
        {% if is_at_its_end %}It has all that {{ volume_type }} gives: spread its load over several volumes.
        {% else %}{% if wants_at_least %}It asks for at least {{ demand_iops_p99 }} and {{ demand_bytes_per_second_p99 }};
        how much more nothing tells while it is held back, so this is a step: look again a day after it. {% endif -%}
        Change it to {{ advised_volume_type }} of {{ advised_size_gib }} with {{ advised_iops }}
        {%- if advised_throughput_mib_s %} and {{ advised_throughput_mib_s }}{% endif %}; it is {{ volume_type }} of
        {{ size_gib }} with {{ baseline_iops }} and {{ baseline_bytes_per_second }}.
        {% if not suffices %}That is all that one volume gives and less than it asks for: spread its load over several.
        {% endif %}
        {% if price_usd_per_month and advised_price_usd_per_month %}It costs {{ advised_price_usd_per_month }} instead of
        {{ price_usd_per_month }} (list prices of {{ prices_as_of }}).
        {% else %}Its price in {{ region }} is not known.{% endif %}
        {% if minutes_throttled_in_14_days and minutes_throttled_in_14_days >= throttled_minutes %}In the last 14 days it was
        held back for {{ minutes_throttled_in_14_days }}; with this
        {%- if not minutes_unknown_in_14_days %} for {{ minutes_throttled_in_14_days_if_changed }}.
        {% elif minutes_throttled_in_14_days_if_changed %} for at least {{ minutes_throttled_in_14_days_if_changed }}, and for
        {{ minutes_unknown_in_14_days }} more it is not known.
        {% else %} it is not known for {{ minutes_unknown_in_14_days }} of that.
        {% endif %}
        {% endif %}{% endif %}
    commands: &modify
      - >-
        {% if not is_at_its_end %}aws ec2 modify-volume --region {{ region }} --volume-id {{ volume_id }}
        --volume-type {{ advised_volume_type }} --size {{ advised_size_gib }} --iops {{ advised_iops }}
        {% if advised_throughput_mib_s %}--throughput {{ advised_throughput_mib_s }}{% endif %}{% endif %}
  at_iops_limit:
    status: firing
    severity: critical
    message: >-
      It has been at its limit of {{ burst_iops }} for {{ throttled_minutes }}
      {%- if queue_length_mean %}; {{ queue_length_mean }} requests wait on average{% endif %}.
    actions:
      - *change
    commands: *modify
  at_throughput_limit:
    status: firing
    severity: critical
    message: >-
      It has been at its limit of {{ burst_bytes_per_second }} for {{ throttled_minutes }}
      {%- if queue_length_mean %}; {{ queue_length_mean }} requests wait on average{% endif %}.
    actions:
      - *change
    commands: *modify
  instance_limit:
    status: firing
    severity: critical
    message: >-
      Its instance ({{ instance_type or instance_id }}) has been at its own EBS limit for {{ throttled_minutes }}
      {%- if queue_length_mean %}; {{ queue_length_mean }} requests wait on average{% endif %}. It sustains
      {{ instance_baseline_iops }}, {{ instance_baseline_bytes_per_second }} for all its volumes.
    actions:
      - >-
        Take an instance type that sustains more than {{ instance_wanted_iops }} and {{ instance_wanted_bytes_per_second }} of EBS,
        or move a volume to another instance. How much more its volumes ask for than it gives nothing tells while it holds them
        back, so this is a step: look again a day after it. A larger volume will not help.
    commands: &instance_types
      - >-
        {% if instance_wanted_iops and instance_wanted_bytes_per_second %}aws ec2 describe-instance-types --region {{ region }}
        --query 'InstanceTypes[?EbsInfo.EbsOptimizedInfo.BaselineIops > `{{ instance_wanted_iops }}` &&
        EbsInfo.EbsOptimizedInfo.BaselineThroughputInMBps > `{{ instance_wanted_bytes_per_second.value / 1000000 }}`].InstanceType'
        --output text{% endif %}
  stalled:
    status: firing
    severity: critical
    message: >-
      Its I/O has stalled: {{ minutes_without_progress }} without progress
      {%- if queue_length_mean %}, {{ queue_length_mean }} requests waiting on average{% endif %}.
    actions:
      - "Open a case with AWS and move its data to a new volume. A larger one will not help."
    commands: ["aws ec2 describe-volume-status --region {{ region }} --volume-ids {{ volume_id }}"]
  slow:
    status: firing
    severity: warning
    message: >-
      A request takes {{ latency_p75_ms }} or more, for {{ slow_minutes }} at least
      {%- if usual_latency_ms %}; {{ usual_latency_ms }} is usual{% endif %}. Nothing holds it back: it does
      {{ iops_now }} of {{ baseline_iops }}, {{ bytes_per_second_now }} of {{ baseline_bytes_per_second }}.
    actions:
      - >-
        Was it made from a snapshot? What is read for the first time then comes from S3: read it through once, or make it
        again with an initialization rate. Else it is impaired: open a case with AWS and move its data to a new volume. A
        larger one will not help.
    commands:
      - aws ec2 describe-volume-status --region {{ region }} --volume-ids {{ volume_id }}
      - >-
        aws ec2 describe-volumes --region {{ region }} --volume-ids {{ volume_id }}
        --query 'Volumes[].[SnapshotId,CreateTime]' --output text
  bucket_draining:
    status: firing
    severity: warning
    message: >-
      Its bucket ({{ burst_balance_last_percent }})
      {%- if hours_to_exhaustion.value == 0 %} is as good as empty and still drains
      {%- else %} will be empty in {{ hours_to_exhaustion }}{% endif %}
      {%- if hours_to_exhaustion_low < hours_to_exhaustion %} ({{ hours_to_exhaustion_low }} at the earliest){% endif %}: it does
      {{ iops_now }}, {{ bytes_per_second_now }}; its baseline is {{ baseline_iops }}, {{ baseline_bytes_per_second }}.
    actions:
      - *change
    commands: *modify
  instance_burst_ending:
    status: firing
    severity: warning
    message: >-
      Its instance ({{ instance_type or instance_id }}) spends its EBS burst: {{ instance_burst_percent }} left, gone in
      {{ hours_to_instance_burst_end }}. Then its volumes share {{ instance_baseline_iops }},
      {{ instance_baseline_bytes_per_second }}.
    actions:
      - >-
        Take an instance type that sustains more than {{ instance_wanted_iops }} and {{ instance_wanted_bytes_per_second }} of EBS,
        or move a volume to another instance. A larger volume will not help.
    commands: *instance_types
  habit:
    status: ok
    message: >-
      Its bucket ({{ burst_balance_last_percent }}) drains as about this hour on {{ days_alike }} of the last 7 days, when it
      fell to {{ lowest_then_percent }} and refilled.
  within_limits:
    status: ok
    message: >-
      It keeps within its limits: {{ iops_now }} of {{ baseline_iops }}, {{ bytes_per_second_now }} of
      {{ baseline_bytes_per_second }}{% if throttled_minutes %}; held back for {{ throttled_minutes }}{% endif %}.
  bucket_lasts:
    status: ok
    message: >-
      Its bucket ({{ burst_balance_last_percent }}) lasts {{ hours_to_exhaustion }}: it does {{ iops_now }},
      {{ bytes_per_second_now }}; its baseline is {{ baseline_iops }}, {{ baseline_bytes_per_second }}.
  just_empty:
    status: ok
    message: >-
      Its bucket is empty ({{ burst_balance_last_percent }}) and was, but it no longer asks for more than that earns: held
      back for {{ throttled_minutes }}; {{ lasting_minutes }} is the limit.
  bucket_refills:
    status: ok
    message: >-
      Its bucket ({{ burst_balance_last_percent }}) refills: it does {{ iops_now }}, {{ bytes_per_second_now }}; its baseline is
      {{ baseline_iops }}, {{ baseline_bytes_per_second }}.
  bucket_full:
    status: ok
    message: >-
      Its bucket is full: it does {{ iops_now }}, {{ bytes_per_second_now }}; its baseline is {{ baseline_iops }},
      {{ baseline_bytes_per_second }}.
  detached: {status: unknown, is_not_applicable: true, message: "It is not attached to an instance."}
  standard: {status: unknown, is_not_applicable: true, message: "AWS states no limits for type standard."}
  too_new: {status: unknown, message: "It was attached too late in the hour to be judged."}
  no_answer: {status: unknown, message: "CloudWatch did not answer for it."}
  limits_unknown: {status: unknown, message: "Its limits are not known: EC2 does not say its type, size or IOPS."}
  changed:
    status: unknown
    message: >-
      It was changed in this hour; from the next on it is judged by what it is now. Before: {{ was_volume_type }},
      {{ was_size_gib }}{% if was_provisioned_iops %}, {{ was_provisioned_iops }}{% endif %}
      {%- if was_provisioned_mib_s %}, {{ was_provisioned_mib_s }}{% endif %}.
  minutes_missing: {status: unknown, message: "CloudWatch has only {{ minutes_present.value }} of the {{ minutes_expected.value }} minutes."}
  no_balance: {status: unknown, message: "It is burstable ({{ volume_type }}), but CloudWatch has no BurstBalance of it."}
description: |
  A volume lives within three limits: its IOPS and its throughput, which for gp2, st1 and sc1 are those of the burst while
  there are credits in its bucket and those of the baseline after that, and what its instance can do with all its volumes.

  An hour belongs to an episode: emptying, empty, held back, stalled, slow, recovering.

  Critical: in the minutes of the hour one of them held it back for longer than lasting_minutes. Of the limits the one
  that bound for most minutes is named. short_minutes are enough where the bucket is empty or the hour before was held
  back for long, and stalled_minutes where its I/O makes no progress. How long is counted over all hours without a pause.

  Warning: nothing holds it back yet, but at the load of the last 15 minutes its bucket will be empty within warn_hours,
  or its instance's own burst will, which has fallen for bursting_minutes and by fall_percent_per_hour. The bucket is simulated from the operations of each minute (what is spent above what
  is earned), starts from BurstBalance, and pays what BurstBalance says where that falls faster. The hour as a whole must
  have drained it; a load that is newer counts when it was there in draining_minutes of the last 15 and soon_hours are
  left. A batch that drained it as fast and as far on habit_days of the last week, within an hour of this time, and
  never emptied it, is a habit and no warning. What was told so an hour ago, and falls on, is told again.

  Slow: nothing holds it back, and in a quarter of the hour's minutes a request takes slow_ms and slow_ratio times what
  is usual of it (median of 7 days, and of this time of day); of a new SSD volume slow_ms counts alone.

  What a limit cuts off isn't seen: where only the cut-off load is known, it is "at least so much", the advice is
  step_ratio times that, and what would have been is not known.

  A missing BurstBalance isn't 0 and isn't healthy: of a volume that has a bucket nothing is said without it.
causes:
  disk_slows_broker: &hurting [bucket_empty, at_iops_limit, at_throughput_limit, instance_limit, stalled, slow]
  broker_loses_replicas: *hurting
  leader_loses_followers: *hurting
  broker_delays_consumers: *hurting
  instance_delays_consumers: *hurting
caused_by:
  cold_reads_starve_disk: [bucket_empty, at_iops_limit, at_throughput_limit, bucket_draining]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. The sentence says what binds: the bucket, the volume's IOPS, its throughput, the instance, or stalled I/O.
  2. Volume: run the command. Changing type, size or IOPS works while the volume is in use (ModifyVolume), takes effect
     within minutes to hours, and can be done once in six hours.
  3. Until then lower the load: pause compactions, restores and backfills on it.
  4. Instance: its volumes share the limit; take a larger type, or move a volume away.
  5. Stalled I/O with a small load is a fault on AWS's side: open a case, and fail over to a replica.
limitations: |
  A throttled volume shows what it got, not what was asked for: where no load from before is known, advice is a step.
  Volumes that aren't on Nitro instances, are Multi-Attach or magnetic send no checks; there only a rate at its limit tells,
  in the seconds of the minute that weren't idle. A bucket that empties within the hour after a sudden load is seen when it
  is empty, and a load that is new in the last minutes of an hour an hour later. A new volume is slow or not by slow_ms
  alone; what was slow for half of a week is usual. An instance's
  burst that began to fall in the last bursting_minutes is told an hour later. The forecast takes the last 15 minutes as the load to come; a batch that is new alarms until it has become
  a habit, and a habit that overruns is told once it leaves its hours.
  Prices are list prices of the day that is named. The 14 days are those hours of them that are in the warehouse; how
  they would have been is known of what has no bucket (gp3, io1, io2). A volume that was changed isn't judged for that hour.
*/
with volume as (
  select *
  from inventory.volume_hourly
  left join metrics.volume_hourly using (hour, account, region, volume_id)
  left join metrics.instance_ebs(:hour, :step_ratio) using (account, region, instance_id)
  left join (
    select
      account,
      region,
      volume_id,
      volume_type as was_volume_type,
      size_gib as was_size_gib,
      provisioned_iops as was_provisioned_iops,
      provisioned_throughput_mib_s as was_provisioned_mib_s
    from inventory.volume_hourly
    where hour = :hour - interval '1 hour'
  ) as an_hour_before using (account, region, volume_id)
  left join (
    select
      account,
      region,
      volume_id,
      minutes_throttled as was_minutes_throttled,
      minutes_stalled as was_minutes_stalled,
      hours_to_exhaustion as was_hours_to_exhaustion,
      burst_balance_last_percent as was_balance_percent
    from metrics.volume_hourly
    where hour = :hour - interval '1 hour'
  ) as before using (account, region, volume_id)
  where hour = :hour
),

measured as (
  select
    *,
    -- Where the baseline reaches the burst no credits are spent, and there is no BurstBalance.
    bucket_credits is not null
    and (baseline_iops < burst_iops or baseline_bytes_per_second < burst_bytes_per_second) as has_bucket,
    -- The throttling that is still on may have begun before the hour.
    case when throttled_since is not null then metrics.held_back_since(hour, account, region, volume_id) end as held_since,
    -- What began in the last minutes of the hour before goes on in this one.
    case
      when minutes_stalled > 0 and throttled_since < hour then minutes_stalled + coalesce(was_minutes_stalled, 0)
      else minutes_stalled
    end as stalled_minutes,
    nullif(
      greatest(minutes_at_iops_limit, minutes_at_throughput_limit, minutes_at_instance_limit, minutes_stalled), 0
    ) as most_minutes,
    greatest(demand_iops_p95 / baseline_iops, demand_bytes_per_second_p95 / baseline_bytes_per_second)
      as demand_over_baseline_ratio,
    coalesce(
      hours_to_instance_burst_end <= :warn_hours
      and instance_burst_falling_minutes >= :bursting_minutes
      and greatest(
        iops_now / nullif(instance_baseline_iops, 0),
        bytes_per_second_now / nullif(instance_baseline_bytes_per_second, 0)
      ) >= :part_percent / 100.0
      and instance_burst_percent / nullif(hours_to_instance_burst_end, 0) >= :fall_percent_per_hour,
      false
    ) as instance_drains,
    -- The hour as a whole took more than comes back; or its last minutes do, and it won't last until the next one looks.
    (hours_to_exhaustion > 0 or (hours_to_exhaustion = 0 and credits_per_hour < 0))
    and (
      (
        hours_to_exhaustion <= :warn_hours
        and inventory.ebs_credits_per_second(volume_type, iops_mean, bytes_per_second_mean)
        > inventory.ebs_credits_per_second(volume_type, baseline_iops, baseline_bytes_per_second)
      )
      or (hours_to_exhaustion_low <= least(:soon_hours, :warn_hours) and minutes_draining >= :draining_minutes)
      or (was_hours_to_exhaustion <= :warn_hours and burst_balance_last_percent < was_balance_percent - 1)
    ) as will_be_empty
  from volume
),

timed as (
  select
    *,
    greatest(minutes_throttled, extract(epoch from known_until - held_since) / 60) as throttled_minutes
  from measured
),

judged as (
  select
    m.*,
    slowness.usual_latency_ms,
    slowness.slow_latency_ms,
    slowness.slow_minutes,
    habit.days_alike,
    habit.lowest_percent,
    case
      when m.state <> 'in-use' or m.instance_id is null then 'detached'
      when m.volume_type = 'standard' then 'standard'
      when m.minutes_present is null then 'no_answer'
      when m.minutes_expected = 0 then 'too_new'
      when m.baseline_iops is null then 'limits_unknown'
      when
        (m.was_volume_type, m.was_size_gib, m.was_provisioned_iops, m.was_provisioned_mib_s)
        <> (m.volume_type, m.size_gib, m.provisioned_iops, m.provisioned_throughput_mib_s)
        then 'changed'
      when m.minutes_present < m.minutes_expected * :known_percent / 100.0 then 'minutes_missing'
      when m.has_bucket and coalesce(m.minutes_balance, 0) = 0 then 'no_balance'
      when
        m.throttled_minutes >= :lasting_minutes
        or (m.throttled_minutes >= :short_minutes and m.was_minutes_throttled >= :lasting_minutes)
        then case
          when m.most_minutes = m.minutes_stalled then 'stalled'
          when m.most_minutes = m.minutes_at_instance_limit then 'instance_limit'
          when m.burst_balance_last_percent <= :low_percent then 'bucket_empty'
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
        m.will_be_empty
        and not (habit.days_alike >= :habit_days and habit.lowest_percent > :low_percent)
        and (not m.instance_drains or m.hours_to_exhaustion <= m.hours_to_instance_burst_end)
        then 'bucket_draining'
      when m.instance_drains then 'instance_burst_ending'
      when m.will_be_empty then 'habit'
      when not m.has_bucket then 'within_limits'
      when m.hours_to_exhaustion = 0 then 'just_empty'
      when m.hours_to_exhaustion is not null then 'bucket_lasts'
      when m.burst_balance_last_percent < 100 then 'bucket_refills'
      else 'bucket_full'
    end as reason
  from timed as m
  left join lateral (
    select * from metrics.burst_balance_cycle(
      :hour, m.account, m.region, m.volume_id, :habit_percent, :habit_burn_ratio
    )
    where m.will_be_empty
    -- Without it PostgreSQL asks for each volume, and looks at the condition after that.
    offset 0  -- noqa: AM09
  ) as habit on true
  left join lateral (
    select * from metrics.volume_slowness(
      :hour, m.account, m.region, m.volume_id, :slow_ms, :slow_ratio, :usual_hours
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
  -- Where it was held back on and off, the minutes of the hour count, and not those since the last pause.
  case when j.known_until - j.held_since >= make_interval(mins => j.minutes_throttled) then j.held_since end
    as throttled_since,
  j.burst_balance_last_percent,
  j.burst_balance_min_percent,
  j.modelled_balance_last_percent,
  j.hours_to_exhaustion,
  j.hours_to_exhaustion_low,
  j.hours_to_exhaustion_high,
  j.minutes_draining,
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
  j.usual_latency_ms,
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
  advice.suffices,
  advice.is_at_its_end,
  advice.wants_at_least,
  advice.now_usd_per_month as price_usd_per_month,
  advice.usd_per_month as advised_price_usd_per_month,
  advice.prices_as_of,
  advice.options,
  advice.known_hours as hours_known_in_14_days,
  advice.throttled_minutes as minutes_throttled_in_14_days,
  advice.then_throttled_minutes as minutes_throttled_in_14_days_if_changed,
  advice.unknown_minutes as minutes_unknown_in_14_days
from judged as j
left join lateral (
  select * from metrics.volume_advice(
    :hour, j.account, j.region, j.volume_id, j.reason = 'at_throughput_limit', :headroom_ratio, :step_ratio
  )
  where j.reason in ('bucket_empty', 'bucket_draining', 'at_iops_limit', 'at_throughput_limit')
  offset 0  -- noqa: AM09
) as advice on true
