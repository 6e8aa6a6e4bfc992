-- Days of the last 7 on which a volume's burst bucket drained as it does now and refilled, as with a nightly batch. On such
-- a day, within an hour of this time, the balance was as low as now (within near_percent), credits were used at
-- burn_ratio of the current rate or faster, and there is data for as long afterwards as the balance lasts now.
create or replace function metrics.burst_balance_cycle(
  of_hour timestamptz, of_account text, of_region text, of_volume_id text,
  near_percent double precision, burn_ratio double precision
) returns table (
  days_alike bigint, lowest_percent double precision
) language sql stable as $$
  select count(*), min(day.lowest_percent)
  from (
    select min(least(was.burst_balance_min_percent, later.lowest_percent)) as lowest_percent
    from metrics.volume_hourly as now
    cross join generate_series(1, 7) as days_ago
    inner join metrics.volume_hourly as was
      on now.account = was.account and now.region = was.region and now.volume_id = was.volume_id
      and was.hour >= of_hour - make_interval(days => days_ago, hours => 1)
      and was.hour <= of_hour - make_interval(days => days_ago, hours => -1)
    cross join lateral (
      select min(m.burst_balance_min_percent) as lowest_percent
      from metrics.volume_hourly as m
      where m.account = was.account and m.region = was.region and m.volume_id = was.volume_id
        and m.hour > was.hour and m.hour <= was.hour + make_interval(hours => ceil(now.hours_to_exhaustion)::integer)
    ) as later
    where now.hour = of_hour and now.account = of_account and now.region = of_region and now.volume_id = of_volume_id
    group by days_ago, now.burst_balance_last_percent
    having now.burst_balance_last_percent + near_percent >= min(was.burst_balance_min_percent)
      and bool_or(was.credits_per_hour <= burn_ratio * now.credits_per_hour)
      and count(later.lowest_percent) > 0
  ) as day
$$;
