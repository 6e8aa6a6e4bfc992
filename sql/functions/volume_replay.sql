-- A volume's last 14 days: known hours, minutes in which its limits throttled it, and minutes in which other limits would
-- have. For throttled hours, the demand is taken from the day before (volume_hourly.demand_…); it is unknown where that day
-- was throttled as well (unknown_minutes). In other hours, the demand is the load of each minute.
create or replace function metrics.volume_replay(
  of_account text, of_region text, of_volume_id text, until_hour timestamptz, iops double precision, mib_s double precision
) returns table (
  known_hours double precision, throttled_minutes double precision, then_throttled_minutes double precision,
  unknown_minutes double precision
) language sql stable strict as $$
  select
    sum(h.minutes_present) / 60.0,
    sum(throttled.minutes),
    sum(greatest(
      beyond.minutes, case when wanted.exceeds then throttled.minutes else 0 end
    )),
    coalesce(sum(throttled.minutes) filter (where metrics.demand_is_open(h) and wanted.exceeds is not true), 0)
  from generate_series(until_hour - interval '335 hours', until_hour, interval '1 hour') as of (hour)
  inner join metrics.volume_hourly as h
    on of.hour = h.hour and h.account = of_account and h.region = of_region and h.volume_id = of_volume_id
  cross join lateral (
    select greatest(h.minutes_at_iops_limit, h.minutes_at_throughput_limit) as minutes
  ) as throttled
  cross join lateral (
    select h.demand_iops_p99 > iops or h.demand_bytes_per_second_p99 > mib_s * 1048576 as exceeds
  ) as wanted
  left join lateral (
    select sum(s.period_seconds) / 60.0 as minutes
    from metrics.volume_sample as s
    where
      (h.iops_max > iops or h.bytes_per_second_max > mib_s * 1048576)
      and s.account = of_account and s.region = of_region and s.volume_id = of_volume_id
      and s.at >= h.hour and s.at < h.hour + interval '1 hour'
      and (
        s.read_ops + s.write_ops > iops * s.period_seconds
        or s.read_bytes + s.write_bytes > mib_s * 1048576 * s.period_seconds
      )
  ) as beyond on true
$$;
