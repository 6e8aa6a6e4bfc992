/*
title: EBS volume is starving
severity: critical
owner: platform
maturity: stable
reads: [inventory.volume_hourly, inventory.instance_hourly, inventory.ebs_price, metrics.volume_hourly, metrics.volume_sample, metrics.instance_sample]
identity: [account, region, volume_id]
params:
  warn_hours: {default: 6, unit: hours, why: "one on-call shift to react before the bucket is empty"}
  soon_hours: {default: 4, unit: hours, why: "what lasts longer the next hour sees as well, and still 2 h ahead"}
  draining_minutes: {default: 8, unit: minutes, why: "most of the last 15; what is shorter is a deploy or a spike"}
  lasting_minutes: {default: 15, unit: minutes, why: "queues absorb shorter throttling; a spike is no shortage"}
  low_percent: {default: 5, unit: "%", why: "a bucket this low that still falls is as good as empty"}
  known_percent: {default: 50, unit: "%", why: "with fewer of the hour's minutes known nothing can be said of it"}
  part_percent: {default: 10, unit: "%", why: "a volume that does less of what its instance sustains isn't what drains it"}
  habit_days: {default: 3, unit: days, why: "of the last 7; so often drained as far at this hour and never emptied, it is a habit"}
  habit_percent: {default: 3, unit: "%", why: "a bucket that was this near to where it is now was as low; one that overran is lower"}
  habit_burn_ratio: {default: 0.75, unit: ratio, why: "of what it burns now; a load that was lighter is no habit"}
  headroom_ratio: {default: 1.2, unit: ratio, why: "what to buy, over the 99th percentile of what was asked for"}
rule: |
  A volume lives within three limits: its IOPS and its throughput, which for gp2, st1 and sc1 are those of the burst while
  there are credits in its bucket and those of the baseline after that, and what its instance can do with all its volumes.

  Critical: in the minutes of the hour one of them held it back, or its I/O stalled, for longer than lasting_minutes. Of
  the limits the one that bound for most minutes is named.

  Warning: nothing holds it back yet, but at the load of the last 15 minutes its bucket will be empty within warn_hours,
  or its instance's own burst will. The bucket is simulated from the operations of each minute (what is spent above what
  is earned), starts from BurstBalance, and pays what BurstBalance says where that falls faster. The hour as a whole must
  have drained it; a load that is newer counts when it was there in draining_minutes of the last 15 and soon_hours are
  left. A batch that drained it as fast and as far on habit_days of the last week, within an hour of this time, and
  never emptied it, is a habit and no warning.

  A missing BurstBalance isn't 0 and isn't healthy: of a volume that has a bucket nothing is said without it.
open_after_hours: 1
clear_after_hours: 2
follows_from: [consumer_rogue]
runbook: |
  1. See below what binds: the volume's IOPS, its throughput, the instance, or stalled I/O.
  2. Volume: follow the advice. Changing type, size or IOPS works while the volume is in use (ModifyVolume), takes effect
     within minutes to hours, and can be done once in six hours.
  3. Until then lower the load: pause compactions, restores and backfills on it.
  4. Instance: its volumes share the limit; take a larger type, or move a volume away.
  5. Stalled I/O with a small load is a fault on AWS's side: open a case, and fail over to a replica.
blind_spots: |
  A throttled volume shows what it got, not what was asked for: demand is what it did over the last day before it was held
  back, and may be higher. Bursts within a minute show only through idle time (busy_iops_p95). Volumes that aren't on
  Nitro instances, are Multi-Attach or magnetic send no checks; there only a rate at its limit tells. A bucket that empties
  within the hour after a sudden load is seen when it is empty, and a load that is new in the last minutes of an hour an
  hour later. The forecast takes the last 15 minutes as the load to come; a batch that is new alarms until it has become
  a habit, and a habit that overruns is told once it leaves its hours.
  Prices are list prices of the day that is named. The 14 days are those hours of them that are in the warehouse; how
  they would have been is known of what has no bucket (gp3, io1, io2). A volume that was changed isn't judged for that hour.
*/
-- Until when each instance can burst, by its balances of the last minutes: AWS doesn't tell the size of these buckets.
with burst as (
  select
    account,
    region,
    instance_id,
    min(percents[1]) as instance_burst_percent,
    min(percents[1] / -percent_per_hour) as instance_burst_hours
  from (
    select
      s.account,
      s.region,
      s.instance_id,
      array_agg(b.percent order by s.at desc) as percents,
      regr_slope(b.percent, extract(epoch from s.at) / 3600) as percent_per_hour
    from metrics.instance_sample as s
    cross join lateral (
      values ('operations', s.ebs_io_balance_percent), ('bytes', s.ebs_byte_balance_percent)
    ) as b (of_what, percent)
    cross join (
      select max(known_until) as known_until from metrics.volume_hourly where hour = cast(:hour as timestamptz)
    ) as clock
    where s.at >= clock.known_until - interval '25 minutes' and s.at < clock.known_until and b.percent is not null
    group by s.account, s.region, s.instance_id, b.of_what
  ) as balance
  where percent_per_hour < 0 and cardinality(percents) >= 3 and percents[1] < percents[2]
  group by account, region, instance_id
),

volume as (
  select
    *,
    volume_type in ('st1', 'sc1') as is_hdd,
    -- Where the baseline reaches the burst no credits are spent, and there is no BurstBalance.
    bucket_credits is not null
    and (baseline_iops < burst_iops or baseline_bytes_per_second < burst_bytes_per_second) as has_bucket,
    coalesce(
      instance_burst_hours <= :warn_hours
      and greatest(
        iops_now / nullif(instance_baseline_iops, 0),
        bytes_per_second_now / nullif(instance_baseline_bytes_per_second, 0)
      ) >= :part_percent / 100.0,
      false
    ) as instance_drains
  from inventory.volume_hourly
  left join metrics.volume_hourly using (hour, account, region, volume_id)
  left join (
    select
      hour,
      account,
      region,
      instance_id,
      instance_type,
      ebs_baseline_iops as instance_baseline_iops,
      ebs_baseline_bytes_per_second as instance_baseline_bytes_per_second
    from inventory.instance_hourly
  ) as instance using (hour, account, region, instance_id)
  left join burst using (account, region, instance_id)
  left join (
    select
      account,
      region,
      volume_id,
      volume_type as was_type,
      size_gib as was_size_gib,
      provisioned_iops as was_iops,
      provisioned_throughput_mib_s as was_mib_s
    from inventory.volume_hourly
    where hour = cast(:hour as timestamptz) - interval '1 hour'
  ) as an_hour_before using (account, region, volume_id)
  where hour = cast(:hour as timestamptz)
),

measured as (
  select
    *,
    -- The throttling that is still on may have begun before the hour.
    greatest(minutes_throttled, extract(epoch from known_until - throttled_since) / 60) as throttled_minutes,
    case
      when greatest(minutes_at_iops_limit, minutes_at_throughput_limit, minutes_at_instance_limit, minutes_stalled) > 0
        then case greatest(
          minutes_at_iops_limit, minutes_at_throughput_limit, minutes_at_instance_limit, minutes_stalled
        )
          when minutes_stalled then 'stalled I/O'
          when minutes_at_instance_limit then 'instance'
          when minutes_at_iops_limit then 'volume IOPS'
          else 'volume throughput'
        end
      when instance_drains and (hours_to_exhaustion is null or instance_burst_hours < hours_to_exhaustion)
        then 'instance'
    end as bound_by,
    -- The hour as a whole, and not its last minutes alone, took more than comes back.
    case
      when is_hdd then bytes_per_second_mean > baseline_bytes_per_second
      else greatest(iops_mean, bytes_per_second_mean / 262144) > baseline_iops
    end as hour_drains,
    case when is_hdd then demand_bytes_per_second_p95 / baseline_bytes_per_second else demand_iops_p95 / baseline_iops end
      as demand_over_baseline_ratio,
    -- What the instance's volumes want together, and never less than it has: the latter was too little.
    greatest(sum(demand_iops_p95) over of_instance, instance_baseline_iops) as instance_wanted_iops,
    greatest(sum(demand_bytes_per_second_p95) over of_instance, instance_baseline_bytes_per_second)
      as instance_wanted_bytes_per_second,
    ceil(:headroom_ratio * demand_iops_p99 / 100) * 100 as iops_to_buy,
    ceil(:headroom_ratio * demand_bytes_per_second_p99 / 1048576 / 5) * 5 as mib_s_to_buy
  from volume
  window of_instance as (partition by account, region, instance_id)
),

judged as (
  select
    *,
    case
      when state <> 'in-use' or instance_id is null then 'It is not attached to an instance.'
      when minutes_present is null then 'CloudWatch did not answer for it.'
      when minutes_expected = 0 then 'It was attached too late in the hour to be judged.'
      when baseline_iops is null and volume_type = 'standard' then 'AWS states no limits for type standard.'
      when baseline_iops is null then 'Its limits are not known: EC2 does not say its type, size or IOPS.'
      when
        (was_type, was_size_gib, was_iops, was_mib_s)
        <> (volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s)
        then format(
          'It was changed in this hour (before: %s); from the next on it is judged by what it is now.',
          concat_ws(', ', was_type, was_size_gib || ' GiB', was_iops || ' IOPS', was_mib_s || ' MiB/s')
        )
      when minutes_present < minutes_expected * :known_percent / 100.0
        then format('CloudWatch has only %s of the %s minutes.', minutes_present, minutes_expected)
      when has_bucket and coalesce(minutes_balance, 0) = 0
        then format('It is burstable (%s), but CloudWatch has no BurstBalance of it.', volume_type)
    end as unknown_because,
    coalesce(throttled_minutes >= :lasting_minutes, false) as is_throttled,
    coalesce(burst_balance_last_percent <= :low_percent and throttled_minutes > 0, false) as is_empty,
    coalesce(
      hours_to_exhaustion > 0
      and (
        (hours_to_exhaustion <= :warn_hours and hour_drains)
        or (hours_to_exhaustion_low <= least(:soon_hours, :warn_hours) and minutes_draining >= :draining_minutes)
      ),
      false
    ) as will_be_empty
  from measured
),

-- Days on which it burnt as fast within an hour of this time, was as low as now, and refilled before it was empty: a
-- nightly batch, which needn't begin on the minute.
habit as (
  select
    account,
    region,
    volume_id,
    count(*) as habit_days,
    min(lowest_percent) as habit_lowest_percent
  from (
    select
      j.account,
      j.region,
      j.volume_id,
      j.burst_balance_last_percent + :habit_percent >= min(was.burst_balance_min_percent) as was_as_low,
      bool_or(was.credits_per_hour <= :habit_burn_ratio * j.credits_per_hour) as burnt_as_fast,
      count(later.lowest_percent) > 0 as went_on,
      min(least(was.burst_balance_min_percent, later.lowest_percent)) as lowest_percent
    from judged as j
    cross join generate_series(1, 7) as days_ago
    inner join metrics.volume_hourly as was
      on j.account = was.account and j.region = was.region and j.volume_id = was.volume_id
      and was.hour >= cast(:hour as timestamptz) - make_interval(days => days_ago, hours => 1)
      and was.hour <= cast(:hour as timestamptz) - make_interval(days => days_ago, hours => -1)
    cross join lateral (
      select min(m.burst_balance_min_percent) as lowest_percent
      from metrics.volume_hourly as m
      where m.account = was.account and m.region = was.region and m.volume_id = was.volume_id
      and m.hour > was.hour and m.hour <= was.hour + make_interval(hours => ceil(j.hours_to_exhaustion)::int)
    ) as later
    where j.will_be_empty
    group by j.account, j.region, j.volume_id, j.burst_balance_last_percent, days_ago
  ) as day
  where was_as_low and burnt_as_fast and went_on
  group by account, region, volume_id
),

accustomed as (
  select
    j.*,
    h.habit_days,
    h.habit_lowest_percent,
    coalesce(h.habit_days >= :habit_days and h.habit_lowest_percent > :low_percent, false) as is_habit
  from judged as j
  left join habit as h on j.account = h.account and j.region = h.region and j.volume_id = h.volume_id
),

-- Figures as people read them, for the sentences.
worded as (
  select
    *,
    case
      when unknown_because is not null then 'skip'
      when is_throttled or instance_drains or (will_be_empty and not is_habit) then 'alarm'
      else 'ok'
    end as status,
    round(throttled_minutes::numeric) as minutes,
    case
      when is_hdd then format('%s MiB/s', round((bytes_per_second_now / 1048576)::numeric, 1))
      else format('%s IOPS', round(iops_now::numeric))
    end as now_words,
    case
      when is_hdd then format('%s MiB/s', round((baseline_bytes_per_second / 1048576)::numeric))
      else format('%s IOPS', round(baseline_iops::numeric))
    end as baseline_words,
    round(baseline_iops::numeric) as base_iops,
    round((baseline_bytes_per_second / 1048576)::numeric) as base_mib_s,
    round(iops_now::numeric) as now_iops,
    round((bytes_per_second_now / 1048576)::numeric, 1) as now_mib_s,
    round(burst_balance_last_percent::numeric) as balance,
    volume_type = 'gp3' or (volume_type in ('io1', 'io2') and coalesce(bound_by, '') <> 'volume throughput') as keeps_type,
    case
      when hours_to_exhaustion < 1 then format('%s min', round((hours_to_exhaustion * 60)::numeric))
      else format('%s h', round(hours_to_exhaustion::numeric, 1))
    end as time_left,
    case
      when demand_over_baseline_ratio > 1.1
        then format(
          '; it asked for %s times its baseline (95th percentile, %s h)',
          round(demand_over_baseline_ratio::numeric, 1), round(demand_hours::numeric)
        )
      else ''
    end as demand_words
  from accustomed
),

-- What to change it to, by the 99th percentile of demand with headroom; and what of it one volume of that type gives.
wanted as (
  select
    *,
    case
      when status <> 'alarm' or bound_by in ('stalled I/O', 'instance') then null
      when keeps_type then volume_type
      else 'gp3'
    end as advised_volume_type,
    case
      when volume_type = 'gp3' and bound_by = 'volume throughput' then base_iops
      when keeps_type then greatest(iops_to_buy, ceil(:headroom_ratio * base_iops / 100) * 100)
      else greatest(3000, iops_to_buy)
    end as wanted_iops,
    case
      when volume_type = 'gp3' and bound_by = 'volume throughput'
        then greatest(mib_s_to_buy, ceil(:headroom_ratio * base_mib_s / 5) * 5)
      when volume_type = 'gp3' then base_mib_s
      else greatest(125, mib_s_to_buy)
    end as wanted_mib_s
  from worded
),

advised as (
  select
    w.*,
    a.size_gib as advised_size_gib,
    a.iops as advised_iops,
    a.mib_s as advised_throughput_mib_s,
    a.suffices,
    w.advised_volume_type = w.volume_type and a.iops <= w.base_iops and coalesce(a.mib_s <= w.base_mib_s, true)
      as is_at_its_end
  from wanted as w
  left join lateral inventory.ebs_volume_with(w.advised_volume_type, w.wanted_iops, w.wanted_mib_s, w.size_gib) as a on true
),

priced as (
  select
    a.*,
    price.as_of as prices_as_of,
    replay.known_hours as hours_known_in_14_days,
    replay.throttled_minutes as minutes_throttled_in_14_days,
    replay.then_throttled_minutes as minutes_throttled_in_14_days_if_changed,
    option.options,
    case
      when a.status = 'alarm'
        then inventory.ebs_usd_per_month(a.region, a.volume_type, a.size_gib, a.provisioned_iops, a.base_mib_s)
    end as price_usd_per_month,
    inventory.ebs_usd_per_month(
      a.region, a.advised_volume_type, a.advised_size_gib, a.advised_iops, a.advised_throughput_mib_s
    ) as advised_price_usd_per_month
  from advised as a
  left join inventory.ebs_price as price on a.region = price.region
  left join lateral metrics.volume_replay(
    a.account, a.region, a.volume_id, cast(:hour as timestamptz),
    case when not a.is_at_its_end then a.advised_iops end, coalesce(a.advised_throughput_mib_s, a.base_mib_s)
  ) as replay on true
  left join lateral (
    select
      json_agg(
        json_build_object(
          'change_to', concat(kind.volume_type, ' with ' || o.iops || ' IOPS and ' || o.mib_s || ' MiB/s'),
          'covers', need.covers, 'size_gib', o.size_gib,
          'price_usd_per_month', inventory.ebs_usd_per_month(a.region, kind.volume_type, o.size_gib, o.iops, o.mib_s)
        )
        order by need.covers asc, kind.volume_type desc
      ) as options
    from (values
      ('p95 of demand', a.demand_iops_p95, a.demand_bytes_per_second_p95),
      ('p99 of demand', a.demand_iops_p99, a.demand_bytes_per_second_p99)
    ) as need (covers, iops, bytes_per_second)
    cross join (values ('gp3'), (case when a.volume_type in ('gp2', 'st1', 'sc1') then a.volume_type end))
      as kind (volume_type)
    cross join lateral inventory.ebs_volume_with(
      kind.volume_type, ceil(:headroom_ratio * need.iops / 100) * 100,
      ceil(:headroom_ratio * need.bytes_per_second / 1048576 / 5) * 5, a.size_gib
    ) as o
    where a.advised_volume_type = 'gp3' and o.suffices
  ) as option on true
),

advice_words as (
  select
    *,
    case
      when volume_type = 'gp3' and bound_by = 'volume throughput'
        then format(
          'Raise its throughput from %s to %s MiB/s%s%s.', base_mib_s, advised_throughput_mib_s,
          case when advised_iops > base_iops then format(', which takes %s IOPS', advised_iops) else '' end, more_gib
        )
      when keeps_type then format('Raise its IOPS from %s to %s%s.', base_iops, advised_iops, more_gib)
      else format(
        'Change it to gp3 with %s IOPS and %s MiB/s%s: no bucket, and the 99th percentile of what it did (%s IOPS, %s MiB/s)'
        ' fits with %s %% to spare%s.',
        advised_iops, advised_throughput_mib_s, more_gib, round(demand_iops_p99::numeric),
        round((demand_bytes_per_second_p99 / 1048576)::numeric, 1), round(100 * (:headroom_ratio - 1)), same_type_words
      )
    end as change_words,
    case
      when not suffices
        then ' That is all that one volume gives and less than it asks for: spread its load over several.'
      else ''
    end as limit_words,
    case
      when price_usd_per_month is null or advised_price_usd_per_month is null
        then format(' Its price in %s is not in the table of prices.', region)
      else format(
        ' It costs $%s a month instead of $%s (list prices of %s).',
        to_char(advised_price_usd_per_month, 'FM999999990.00'), to_char(price_usd_per_month, 'FM999999990.00'), prices_as_of
      )
    end as price_words,
    case
      when minutes_throttled_in_14_days > 0
        then format(
          ' In the last 14 days (%s known) it was held back for %s min; with this it would have been for %s min.',
          case
            when hours_known_in_14_days < 2 then format('%s min', round(60 * hours_known_in_14_days))
            else format('%s h', round(hours_known_in_14_days))
          end,
          minutes_throttled_in_14_days, round(minutes_throttled_in_14_days_if_changed)
        )
      else ''
    end as replay_words
  from (
    select
      *,
      case when advised_size_gib > size_gib then format(' and its size from %s to %s GiB', size_gib, advised_size_gib) else '' end
        as more_gib,
      case
        when volume_type = 'gp2' and iops_to_buy <= 16000 and ceil(iops_to_buy / 3) > size_gib
          then format('; as gp2 it would need %s GiB instead of %s', ceil(iops_to_buy / 3), size_gib)
        when is_hdd and demand_over_baseline_ratio > 1
          then format(
            '; as %s it would need %s GiB instead of %s', volume_type,
            ceil(:headroom_ratio * size_gib * demand_over_baseline_ratio), size_gib
          )
        else ''
      end as same_type_words
    from priced
  ) as sized
)

select
  case when name is null then volume_id else format('%s (%s)', volume_id, name) end as resource,
  status,
  case
    when unknown_because is not null then unknown_because
    when is_throttled and is_empty
      then format(
        'Its bucket is empty (%s %%): for %s min it has been held to its baseline of %s%s.',
        balance, minutes,
        baseline_words, demand_words
      )
    when is_throttled and bound_by = 'stalled I/O'
      then format(
        'Its I/O has stalled: %s min without progress, %s requests waiting on average.',
        minutes, round(queue_length_mean::numeric, 1)
      )
    when is_throttled and bound_by = 'instance'
      then format(
        'Its instance (%s) is at its own EBS limit for %s min: baseline %s IOPS, %s MB/s; %s requests wait on average.',
        coalesce(instance_type, instance_id), minutes, round(instance_baseline_iops::numeric),
        round((instance_baseline_bytes_per_second / 1000000)::numeric), round(queue_length_mean::numeric, 1)
      )
    when is_throttled and bound_by = 'volume throughput'
      then format(
        'It has been at its throughput limit of %s MiB/s for %s min; %s requests wait on average.',
        round((burst_bytes_per_second / 1048576)::numeric), minutes, round(queue_length_mean::numeric, 1)
      )
    when is_throttled
      then format(
        'It has been at its limit of %s IOPS for %s min; %s requests wait on average%s.',
        round(burst_iops::numeric), minutes, round(queue_length_mean::numeric, 1), demand_words
      )
    when instance_drains and bound_by = 'instance'
      then format(
        'Its instance (%s) spends its EBS burst: %s %% left, empty in %s h; then its volumes share %s IOPS and %s MB/s.',
        coalesce(instance_type, instance_id), round(instance_burst_percent::numeric),
        round(instance_burst_hours::numeric, 1), round(instance_baseline_iops::numeric),
        round((instance_baseline_bytes_per_second / 1000000)::numeric)
      )
    when will_be_empty and is_habit and not instance_drains
      then format(
        'Its bucket (%s %%) drains as about this hour on %s of the last 7 days, when it fell to %s %% and refilled.',
        balance, habit_days, round(habit_lowest_percent::numeric)
      )
    when will_be_empty
      then format(
        'Its bucket (%s %%) will be empty in %s (%s to %s h): it does %s, its baseline is %s.',
        balance, time_left,
        round(hours_to_exhaustion_low::numeric, 1), round(hours_to_exhaustion_high::numeric, 1),
        now_words, baseline_words
      )
    when not has_bucket
      then format(
        'It keeps within its limits: %s of %s IOPS, %s of %s MiB/s, held back for %s min.',
        now_iops, base_iops, now_mib_s, base_mib_s, coalesce(minutes, 0)
      )
    else format(
      'Its bucket is %s: it does %s, its baseline is %s.',
      case
        when hours_to_exhaustion is not null
          then format('at %s %% and will last %s h', balance, round(hours_to_exhaustion::numeric))
        when burst_balance_last_percent < 99.5 then format('at %s %% and refills', balance)
        else 'full'
      end,
      now_words, baseline_words
    )
  end as reason,
  case when is_throttled then 'critical' else 'warning' end as severity,
  case
    when status <> 'alarm' then null
    when bound_by = 'stalled I/O' then 'Open a case with AWS and move its data to a new volume; a larger one will not help.'
    when bound_by = 'instance'
      then format(
        'Take an instance type whose EBS baseline is above %s IOPS and %s MB/s, for all its volumes together (this one''s:'
        ' %s and %s), or move a volume to another instance; a larger volume will not help.',
        round(instance_wanted_iops::numeric), round((instance_wanted_bytes_per_second / 1000000)::numeric),
        round(instance_baseline_iops::numeric), round((instance_baseline_bytes_per_second / 1000000)::numeric)
      )
    when is_at_its_end then format('It has all that %s gives: spread its load over several volumes.', volume_type)
    else change_words || limit_words || price_words || replay_words
  end as advice,
  account,
  region,
  volume_id,
  case when status = 'alarm' then coalesce(bound_by, case when is_hdd then 'volume throughput' else 'volume IOPS' end) end
    as bound_by,
  volume_type,
  size_gib,
  instance_id,
  instance_type,
  application,
  throttled_minutes,
  throttled_since,
  instance_burst_percent,
  instance_burst_hours,
  burst_balance_last_percent,
  burst_balance_min_percent,
  modelled_balance_last_percent,
  hours_to_exhaustion,
  hours_to_exhaustion_low,
  hours_to_exhaustion_high,
  minutes_draining,
  credits_per_hour,
  iops_now,
  iops_p99,
  busy_iops_p95,
  baseline_iops,
  burst_iops,
  bytes_per_second_now,
  bytes_per_second_p99,
  baseline_bytes_per_second,
  burst_bytes_per_second,
  demand_iops_p95,
  demand_iops_p99,
  demand_bytes_per_second_p95,
  demand_bytes_per_second_p99,
  demand_over_baseline_ratio,
  queue_length_mean,
  read_latency_ms,
  write_latency_ms,
  minutes_expected,
  minutes_present,
  minutes_empty,
  minutes_at_iops_limit,
  minutes_at_throughput_limit,
  minutes_at_instance_limit,
  minutes_stalled,
  price_usd_per_month,
  advised_volume_type,
  advised_size_gib,
  advised_iops,
  advised_throughput_mib_s,
  advised_price_usd_per_month,
  prices_as_of,
  options,
  hours_known_in_14_days,
  minutes_throttled_in_14_days,
  minutes_throttled_in_14_days_if_changed,
  to_jsonb(array_remove(array[
    format('volume:%s', volume_id),
    case when instance_id is not null then format('instance:%s', instance_id) end,
    case when application is not null then format('app:%s', application) end
  ], null)) as touches,
  coalesce(state <> 'in-use', false) or instance_id is null or volume_type = 'standard' as nothing_to_judge
from advice_words
