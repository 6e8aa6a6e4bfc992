-- Growth of a disk: a broker's log directory (of_kind 'log_dir', of_place the broker's id) or a host's file system
-- ('file_system', of_place its endpoint), in bytes per hour. Theil-Sen slopes over 7 days and over 24 hours, with the daily
-- rhythm removed; the smaller of the two counts, so that neither a burst nor a saw-tooth is growth. For a disk that is
-- high, also the maximum use of the last 4 weeks and the daily increase on most days of the week, which neither the daily
-- rhythm nor a single burst changes.
create or replace function public.disk_growth(
  of_kind text, of_cluster text, of_place text, of_path text, as_of timestamptz,
  used_bytes double precision, usable_bytes double precision, is_high boolean,
  least_history double precision, beyond_bytes double precision
) returns table (
  known_hours bigint,                          -- of the last 7 days
  week_growth double precision, day_growth double precision,
  growth_per_hour double precision,            -- the smaller; null if either is unknown
  growth_by_days double precision,             -- null: not high
  hours_to_full double precision,              -- null: no growth, or fewer than least_history hours are known
  hours_to_full_by_day double precision, hours_to_full_by_days double precision,
  is_highest boolean,                          -- more used than at any time before the last day; null: not high
  is_beyond boolean                            -- by beyond_bytes
) language sql stable rows 1 as $$
  with usage as materialized (
    select
      at.hour,
      at.ago,
      disk.used_bytes
    from (
      select as_of - make_interval(hours => n) as hour, n as ago
      from generate_series(0, case when is_high then 672 else 168 end) as n
    ) as at
    cross join lateral (
      select (h.total_bytes - h.usable_bytes)::double precision as used_bytes
      from metrics.log_dir_hourly as h
      where of_kind = 'log_dir' and at.hour = h.hour and h.cluster = of_cluster
      and h.broker_id = case when of_kind = 'log_dir' then of_place::integer end and h.log_dir = of_path
      union all
      select h.size_bytes - h.available_bytes
      from metrics.file_system_hourly as h
      where of_kind = 'file_system' and at.hour = h.hour and h.cluster = of_cluster
      and h.endpoint = of_place and h.mountpoint = of_path
    ) as disk
  ),

  -- Median of each hour of the day relative to the 24 hours around it; all hours of three days, or none.
  rhythm as (
    select
      ago % 24 as hour_ago,
      percentile_cont(0.5) within group (order by beyond) as bytes
    from (
      select
        ago,
        used_bytes - case when count(used_bytes) over around = 24 then avg(used_bytes) over around end as beyond
      from usage
      where ago <= 168
      window around as (order by ago range between 11 preceding and 12 following)
    ) as hour_of_day
    group by ago % 24
    having count(beyond) >= 3
  ),

  known as (
    select
      count(t.used_bytes) filter (where t.ago <= 168) as hours,
      public.theil_sen(array_agg(t.hour), array_agg(case when t.ago <= 168 then t.used_bytes end)) as week_growth,
      public.theil_sen(array_agg(t.hour), array_agg(case when t.ago < 24 then t.used_bytes - coalesce(r.bytes, 0) end))
        as day_growth,
      max(t.used_bytes) as top,
      max(t.used_bytes) filter (where t.ago >= 24) as top_before_day,
      max(t.used_bytes) filter (where t.ago >= 168) as top_before_week,
      percentile_cont(0.5) within group (order by t.used_bytes - b.used_bytes) filter (where t.ago < 168) / 24
        as growth_by_days
    from usage as t
    left join usage as b on t.ago + 24 = b.ago
    left join rhythm as r on t.ago % 24 = r.hour_ago and (select count(*) from rhythm) = 24
  )

  select
    k.hours,
    k.week_growth,
    k.day_growth,
    s.growth_per_hour,
    case when is_high then k.growth_by_days end,
    case when k.hours >= least_history and s.growth_per_hour > 0 then usable_bytes / s.growth_per_hour end,
    case when k.hours >= least_history and k.day_growth > 0 then usable_bytes / k.day_growth end,
    case
      when is_high and k.hours >= least_history and k.top > k.top_before_week and k.growth_by_days > 0
        then usable_bytes / k.growth_by_days
    end,
    case when is_high then used_bytes > k.top_before_day end,
    case when is_high then used_bytes > k.top_before_day + beyond_bytes end
  from known as k
  -- Null if either is unknown; least() alone would ignore it.
  cross join lateral (
    select case when num_nulls(k.week_growth, k.day_growth) = 0 then least(k.week_growth, k.day_growth) end
      as growth_per_hour
  ) as s
$$;
comment on function public.disk_growth is
'Growth of a broker''s log directory or a host''s file system over 7 days, over 24 hours, and by the days of a week, and the hours until it is full.';
