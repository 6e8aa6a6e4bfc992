-- Configuration of each volume in the hour before, and whether it has been modified since.
create or replace function inventory.volume_modifications(of_hour timestamptz) returns table (
  account text, region text, volume_id text,
  was_volume_type text, was_size_gib integer, was_provisioned_iops integer, was_provisioned_mib_s integer,
  is_modified boolean                          -- null: a value is unknown, and no other one has changed
) language sql stable as $$
  select
    account,
    region,
    volume_id,
    b.volume_type as was_volume_type,
    b.size_gib as was_size_gib,
    b.provisioned_iops as was_provisioned_iops,
    b.provisioned_throughput_mib_s as was_provisioned_mib_s,
    (b.volume_type, b.size_gib, b.provisioned_iops, b.provisioned_throughput_mib_s)
    <> (v.volume_type, v.size_gib, v.provisioned_iops, v.provisioned_throughput_mib_s) as is_modified
  from inventory.volume_hourly as v
  inner join inventory.volume_hourly as b using (account, region, volume_id)
  where v.hour = of_hour and b.hour = of_hour - interval '1 hour'
$$;
comment on function inventory.volume_modifications is
'Configuration of each volume in the hour before, and whether it has been modified since.';

-- For how long each volume has been throttled or stalled, across the start of the hour.
create or replace function metrics.volume_throttling(of_hour timestamptz) returns table (
  account text, region text, volume_id text,
  throttling_began_at timestamptz,             -- of throttling at the end of the hour, without a pause since
  throttled_minutes double precision,          -- since then, or within the hour if there was a pause
  stalled_minutes integer,
  most_minutes integer,                        -- of the hour, at the limit that was reached most; null: none was
  was_minutes_throttled integer                -- within the hour before
) language sql stable as $$
  select
    n.account,
    n.region,
    n.volume_id,
    began.throttling_began_at,
    -- Minutes of the hour without throttling do not count, minutes without data points do: single throttled minutes with
    -- short pauses are not one long throttling.
    greatest(
      n.minutes_throttled,
      case when began.throttling_began_at is not null then
        extract(epoch from greatest(of_hour, began.throttling_began_at) - began.throttling_began_at) / 60
        + least(
          extract(epoch from n.known_until - greatest(of_hour, began.throttling_began_at)) / 60,
          n.minutes_throttled + n.minutes_expected - n.minutes_present
        )
      end
    ) as throttled_minutes,
    -- A stall that began in the previous hour continues in this one.
    case
      when n.minutes_stalled > 0 and n.throttled_since < of_hour then n.minutes_stalled + coalesce(b.minutes_stalled, 0)
      else n.minutes_stalled
    end as stalled_minutes,
    nullif(
      greatest(
        n.minutes_at_iops_limit, n.minutes_at_throughput_limit, n.minutes_at_instance_limit, n.minutes_stalled
      ), 0
    ) as most_minutes,
    b.minutes_throttled as was_minutes_throttled
  from metrics.volume_hourly as n
  left join metrics.volume_hourly as b
    on b.hour = of_hour - interval '1 hour'
    and n.account = b.account and n.region = b.region and n.volume_id = b.volume_id
  cross join lateral (
    select
      case
        when n.throttled_since is not null then metrics.throttled_since(of_hour, n.account, n.region, n.volume_id)
      end as throttling_began_at
  ) as began
  where n.hour = of_hour
$$;
comment on function metrics.volume_throttling is
'For how long each volume has been throttled or stalled, across the start of the hour.';

-- Whether the burst balance of a volume is forecast to be exhausted within warn_hours: either the whole hour or an
-- intermittent load drains it, or its last minutes do so fast that the next evaluation is too late, or the warning of the
-- previous hour continues. A load that fades lasts beyond warn_hours: no warning.
create or replace function metrics.draining_volumes(
  of_hour timestamptz, warn_hours double precision, soon_hours double precision, draining_minutes double precision
) returns table (
  account text, region text, volume_id text
) language sql stable as $$
  select
    n.account,
    n.region,
    n.volume_id
  from metrics.volume_hourly as n
  inner join inventory.volume_hourly as v using (hour, account, region, volume_id)
  left join metrics.volume_hourly as b
    on b.hour = of_hour - interval '1 hour'
    and n.account = b.account and n.region = b.region and n.volume_id = b.volume_id
  where n.hour = of_hour
  and (n.hours_to_exhaustion > 0 or (n.hours_to_exhaustion = 0 and n.credits_per_hour < 0))
  and n.hours_to_exhaustion <= warn_hours
  and (
    inventory.ebs_credits_per_second(v.volume_type, n.iops_mean, n.bytes_per_second_mean)
    > inventory.ebs_credits_per_second(v.volume_type, n.baseline_iops, n.baseline_bytes_per_second)
    or n.cycle_minutes is not null
    or (n.hours_to_exhaustion_low <= soon_hours and n.minutes_draining >= draining_minutes)
    or (
      b.hours_to_exhaustion <= warn_hours and n.burst_balance_last_percent < b.burst_balance_last_percent - 1
    )
  )
$$;
comment on function metrics.draining_volumes is
'Volumes with a burst balance that is forecast to be exhausted within warn_hours.';
