-- EBS limits of each instance in an hour, the total demand of its volumes, and how long its burst lasts.
-- AWS does not report the size of the two burst buckets: how long they last is the slope of their balances over 25 minutes,
-- and how long they have been draining is the time since their maximum in the last 35 minutes. AWS reports balances every
-- five minutes, so they may have been draining for up to ten minutes less.
-- Demand is never less than the baseline: if the instance throttles, its baseline was too small. While it throttles, the
-- rate of its volumes is the instance's limit and not their demand, so demand is step_ratio times that rate. Of a limit that
-- AWS's check reports as exceeded, it is step_ratio times the limit, whatever the mean of the minutes is: micro-bursts are
-- cut off within the minute. It is never less than their total demand in any hour of the day before: advice does not shrink
-- while the instance throttles.
create or replace function metrics.instance_ebs(of_hour timestamptz, step_ratio double precision) returns table (
  account text, region text, instance_id text, instance_type text,
  instance_baseline_iops double precision, instance_baseline_bytes_per_second double precision,
  instance_wanted_iops double precision, instance_wanted_bytes_per_second double precision,
  instance_burst_percent double precision, hours_to_instance_burst_end double precision,
  instance_burst_falling_minutes double precision
) language sql stable as $$
  with wanted as (
    select
      v.account,
      v.region,
      v.instance_id,
      sum(m.demand_iops_p95) as iops,
      sum(m.demand_bytes_per_second_p95) as bytes_per_second,
      max(m.minutes_at_instance_limit) > 0 as binds
    from inventory.volume_hourly as v
    left join metrics.volume_hourly as m using (hour, account, region, volume_id)
    where v.hour = of_hour and v.instance_id is not null
    group by v.account, v.region, v.instance_id
  ),

  balance as (
    select
      s.account,
      s.region,
      s.instance_id,
      array_agg(b.percent order by s.at desc) as percents,
      extract(epoch from max(s.at) - (array_agg(s.at order by b.percent desc, s.at desc))[1]) / 60 as falling_minutes,
      regr_slope(b.percent, extract(epoch from s.at) / 3600)
        filter (where s.at >= clock.known_until - interval '25 minutes') as percent_per_hour
    from metrics.instance_sample as s
    cross join lateral (
      values ('operations', s.ebs_io_balance_percent), ('bytes', s.ebs_byte_balance_percent)
    ) as b (of_what, percent)
    cross join (select max(known_until) as known_until from metrics.volume_hourly where hour = of_hour) as clock
    where s.at >= clock.known_until - interval '35 minutes' and s.at < clock.known_until and b.percent is not null
    group by s.account, s.region, s.instance_id, b.of_what
  ),

  exceeded as (
    select
      s.account,
      s.region,
      s.instance_id,
      bool_or(s.ebs_iops_exceeded > 0) as iops,
      bool_or(s.ebs_throughput_exceeded > 0) as bytes
    from metrics.instance_sample as s
    where s.at >= of_hour and s.at < of_hour + interval '1 hour'
    group by s.account, s.region, s.instance_id
  ),

  burst as (
    select
      account,
      region,
      instance_id,
      min(percents[1]) as percent,
      min(percents[1] / -percent_per_hour) as hours,
      max(falling_minutes) as falling_minutes
    from balance
    where percent_per_hour < 0 and cardinality(percents) >= 3 and percents[1] < percents[2]
    group by account, region, instance_id
  )

  select
    w.account,
    w.region,
    w.instance_id,
    i.instance_type,
    i.ebs_baseline_iops,
    i.ebs_baseline_bytes_per_second,
    greatest(
      w.iops, i.ebs_baseline_iops, earlier.iops,
      case
        when w.binds and x.iops then step_ratio * i.ebs_baseline_iops
        when w.binds then step_ratio * w.iops * least(1, i.ebs_baseline_iops / nullif(w.iops, 0))
      end
    ),
    greatest(
      w.bytes_per_second, i.ebs_baseline_bytes_per_second, earlier.bytes_per_second,
      case
        when w.binds and x.bytes then step_ratio * i.ebs_baseline_bytes_per_second
        when w.binds
          then step_ratio * w.bytes_per_second
            * least(1, i.ebs_baseline_bytes_per_second / nullif(w.bytes_per_second, 0))
      end
    ),
    b.percent,
    b.hours,
    b.falling_minutes
  from wanted as w
  left join inventory.instance_hourly as i
    on i.hour = of_hour and w.account = i.account and w.region = i.region and w.instance_id = i.instance_id
  left join lateral (
    select
      max(together.iops) as iops,
      max(together.bytes_per_second) as bytes_per_second
    from (
      select
        sum(m.demand_iops_p95) as iops,
        sum(m.demand_bytes_per_second_p95) as bytes_per_second
      from inventory.volume_hourly as v
      inner join metrics.volume_hourly as m
        on m.hour >= of_hour - interval '24 hours' and m.hour < of_hour
        and v.account = m.account and v.region = m.region and v.volume_id = m.volume_id
      where v.hour = of_hour and v.account = w.account and v.region = w.region and v.instance_id = w.instance_id
        and w.binds
      group by m.hour
    ) as together
  ) as earlier on true
  left join exceeded as x on w.account = x.account and w.region = x.region and w.instance_id = x.instance_id
  left join burst as b on w.account = b.account and w.region = b.region and w.instance_id = b.instance_id
$$;
