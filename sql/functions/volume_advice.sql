-- Recommended change for a volume that its own limits throttle: type and size, price, other options, and a replay of 14 days.
-- Sized by the 99th percentile of its demand plus headroom; the current limits were too small, so never less than those
-- plus headroom. Where demand is only a lower bound (wants_at_least), step_ratio times that: throttled operations throttle
-- bytes, too. The lower bound is never less than a limit that throttled more than 5 % of the minutes, whatever their mean
-- is: micro-bursts are cut off within the minute. The larger demand of the last 14 days counts, where it is known. gp3, io1, and io2 keep their type where more of it helps (by_throughput: throughput is the limit, not IOPS); others
-- become gp3, which has no burst bucket. suffices: false where one volume cannot sustain it; is_at_its_end: it also cannot
-- get more than it has now.
create or replace function metrics.volume_advice(
  of_hour timestamptz, of_account text, of_region text, of_volume_id text,
  by_throughput boolean, headroom_ratio double precision, step_ratio double precision
) returns table (
  volume_type text, size_gib double precision, iops double precision, throughput_mib_s double precision,
  suffices boolean, is_at_its_end boolean, now_usd_per_month double precision, usd_per_month double precision,
  prices_as_of date, options json, known_hours double precision, throttled_minutes double precision,
  then_throttled_minutes double precision, unknown_minutes double precision, wants_at_least boolean,
  demand_iops double precision, demand_bytes_per_second double precision
) language sql stable as $$
  select
    wanted.volume_type,
    given.size_gib,
    given.iops,
    given.mib_s,
    given.suffices,
    is_now.at_its_end,
    inventory.ebs_usd_per_month(v.region, v.volume_type, v.size_gib, v.provisioned_iops, has.mib_s),
    inventory.ebs_usd_per_month(v.region, wanted.volume_type, given.size_gib, given.iops, given.mib_s),
    price.as_of,
    other.options,
    replay.known_hours,
    replay.throttled_minutes,
    replay.then_throttled_minutes,
    replay.unknown_minutes,
    known.at_least,
    greatest(m.demand_iops_p99, asked.cut_off_iops),
    greatest(m.demand_bytes_per_second_p99, asked.cut_off_bytes_per_second)
  from inventory.volume_hourly as v
  inner join metrics.volume_hourly as m using (hour, account, region, volume_id)
  left join inventory.ebs_price as price on v.region = price.region
  cross join lateral (
    select round(m.baseline_iops) as iops, round(m.baseline_bytes_per_second / 1048576) as mib_s
  ) as has
  cross join lateral (select coalesce(metrics.demand_is_open(m), false) as at_least) as known
  left join lateral (
    select
      max(h.demand_iops_p99) as iops,
      max(h.demand_bytes_per_second_p99) / 1048576 as mib_s
    from generate_series(of_hour - interval '335 hours', of_hour - interval '1 hour', interval '1 hour') as of (hour)
    inner join metrics.volume_hourly as h
      on of.hour = h.hour and h.account = of_account and h.region = of_region and h.volume_id = of_volume_id
    where known.at_least and not metrics.demand_is_open(h)
  ) as earlier on true
  cross join lateral (
    select
      case when is_empty.now then m.baseline_iops else m.burst_iops end as iops,
      case when is_empty.now then m.baseline_bytes_per_second else m.burst_bytes_per_second end as bytes_per_second
    from (select coalesce(m.hours_to_exhaustion = 0, false) or coalesce(m.minutes_empty > 0, false) as now) as is_empty
  ) as capped
  cross join lateral (
    select
      headroom_ratio * case when known.at_least then step_ratio else 1 end as ratio,
      case when known.at_least and m.minutes_at_iops_limit > 0.05 * m.minutes_present then capped.iops end as cut_off_iops,
      case
        when known.at_least and m.minutes_at_throughput_limit > 0.05 * m.minutes_present then capped.bytes_per_second
      end as cut_off_bytes_per_second,
      case
        when m.bucket_credits is null and m.minutes_at_iops_limit > 0 and m.busy_iops_p95 > m.burst_iops
          then m.busy_iops_p95
      end as busy_iops
  ) as asked
  cross join lateral (
    select
      coalesce(ceil(
        greatest(
          asked.ratio * greatest(m.demand_iops_p99, asked.cut_off_iops), headroom_ratio * asked.busy_iops,
          headroom_ratio * earlier.iops
        ) / 100
      ) * 100, 0) as iops,
      coalesce(ceil(
        greatest(
          asked.ratio * greatest(m.demand_bytes_per_second_p99, asked.cut_off_bytes_per_second) / 1048576,
          headroom_ratio * earlier.mib_s
        ) / 5
      ) * 5, 0) as mib_s
  ) as demand
  cross join lateral (
    select v.volume_type = 'gp3' or (v.volume_type in ('io1', 'io2') and not by_throughput) as type
  ) as keeps
  cross join lateral (
    select
      case when keeps.type then v.volume_type else 'gp3' end as volume_type,
      case
        when v.volume_type = 'gp3' and by_throughput then greatest(demand.iops, has.iops)
        when keeps.type then greatest(demand.iops, ceil(headroom_ratio * has.iops / 100) * 100)
        else demand.iops
      end as iops,
      case
        when v.volume_type = 'gp3' and by_throughput
          then greatest(demand.mib_s, ceil(headroom_ratio * has.mib_s / 5) * 5)
        when v.volume_type = 'gp3' then greatest(demand.mib_s, has.mib_s)
        else demand.mib_s
      end as mib_s
  ) as wanted
  cross join lateral inventory.ebs_volume_with(wanted.volume_type, wanted.iops, wanted.mib_s, v.size_gib) as given
  cross join lateral (
    select wanted.volume_type = v.volume_type and given.iops <= has.iops and coalesce(given.mib_s <= has.mib_s, true)
      as at_its_end
  ) as is_now
  left join lateral metrics.volume_replay(
    v.account, v.region, v.volume_id, of_hour,
    case when not is_now.at_its_end then given.iops end, coalesce(given.mib_s, has.mib_s)
  ) as replay on true
  left join lateral (
    select
      json_agg(
        json_build_object(
          'volume_type', option.volume_type, 'size_gib', option.size_gib,
          'limit_iops', coalesce(option.iops, sustained.iops), 'limit_mib_s', coalesce(option.mib_s, sustained.mib_s),
          'price_usd_per_month',
          inventory.ebs_usd_per_month(v.region, option.volume_type, option.size_gib, option.iops, option.mib_s),
          'covers', array_to_string(option.percentiles, ' and ') || ' of demand'
        )
        order by option.percentiles[1] asc, option.volume_type desc
      ) as options
    from (
      -- One volume may cover both percentiles.
      select
        kind.volume_type,
        o.size_gib,
        o.iops,
        o.mib_s,
        array_agg(need.percentile order by need.percentile) as percentiles
      from (values
        ('p95', m.demand_iops_p95, m.demand_bytes_per_second_p95),
        ('p99', m.demand_iops_p99, m.demand_bytes_per_second_p99)
      ) as need (percentile, iops, bytes_per_second)
      cross join (values ('gp3'), (case when v.volume_type in ('gp2', 'st1', 'sc1') then v.volume_type end))
        as kind (volume_type)
      cross join lateral inventory.ebs_volume_with(
        kind.volume_type, ceil(asked.ratio * greatest(need.iops, asked.cut_off_iops) / 100) * 100,
        ceil(asked.ratio * greatest(need.bytes_per_second, asked.cut_off_bytes_per_second) / 1048576 / 5) * 5, v.size_gib
      ) as o
      where wanted.volume_type = 'gp3' and o.suffices
      group by kind.volume_type, o.size_gib, o.iops, o.mib_s
    ) as option
    -- What a volume with a burst bucket sustains without credits.
    cross join lateral (
      select
        case when option.volume_type = 'gp2' then least(16000, 3 * option.size_gib) end as iops,
        case option.volume_type
          when 'gp2' then least(250, 3 * option.size_gib / 4)
          when 'st1' then least(500, 40 * option.size_gib / 1024)
          when 'sc1' then least(192, 12 * option.size_gib / 1024)
        end as mib_s
    ) as sustained
  ) as other on true
  where v.hour = of_hour and v.account = of_account and v.region = of_region and v.volume_id = of_volume_id
$$;
