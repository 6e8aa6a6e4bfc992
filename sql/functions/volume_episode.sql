-- When throttling of a volume that is throttled at the end of the hour began, without a pause: over the hours of the last 7
-- days that continue from the hour before. An hour knows only some minutes before it (volume_hourly.throttled_since).
create or replace function metrics.throttled_since(
  of_hour timestamptz, of_account text, of_region text, of_volume_id text
) returns timestamptz language sql stable as $$
  select episode.throttled_since
  from (
    select
      h.hour,
      h.throttled_since,
      h.throttled_since <= h.hour + interval '10 minutes'
      and lag(h.throttled_since) over (order by h.hour) is not null
      and lag(h.hour) over (order by h.hour) = h.hour - interval '1 hour' as continues
    from generate_series(of_hour - interval '167 hours', of_hour, interval '1 hour') as of (hour)
    inner join metrics.volume_hourly as h
      on of.hour = h.hour and h.account = of_account and h.region = of_region and h.volume_id = of_volume_id
  ) as episode
  where episode.throttled_since is not null and episode.continues is not true
  order by episode.hour desc
  limit 1
$$;

-- Latency of a volume without throttling, against its own last 7 days: the baseline (median of all hours, or of this time
-- of day if that is larger), the limit, and for how many minutes at least it has been slow without a pause. Slow means above
-- slow_ms, above ratio times the baseline, and above the baseline plus 5 median absolute deviations. With fewer than
-- known_hours of history only slow_ms counts, and an HDD is not evaluated.
create or replace function metrics.volume_slowness(
  of_hour timestamptz, of_account text, of_region text, of_volume_id text,
  slow_ms double precision, ratio double precision, known_hours integer
) returns table (
  baseline_latency_ms double precision, slow_latency_ms double precision, baseline_hours bigint, slow_minutes double precision
) language sql stable as $$
  with past as (
    select
      h.*,
      abs(extract(epoch from of_hour - h.hour) % 86400 - 43200) >= 43200 - 3600 as is_this_time_of_day
    from generate_series(of_hour - interval '168 hours', of_hour, interval '1 hour') as of (hour)
    inner join metrics.volume_hourly as h
      on of.hour = h.hour and h.account = of_account and h.region = of_region and h.volume_id = of_volume_id
  ),

  median as (
    select
      count(latency_p75_ms) as hours,
      greatest(
        percentile_cont(0.5) within group (order by latency_p75_ms),
        case
          when count(latency_p75_ms) filter (where is_this_time_of_day) >= 3
            then percentile_cont(0.5) within group (order by latency_p75_ms) filter (where is_this_time_of_day)
        end
      ) as baseline_ms
    from past
    where hour < of_hour
  ),

  own as (
    select
      median.hours,
      case when median.hours >= known_hours then median.baseline_ms end as baseline_ms,
      (
        select percentile_cont(0.5) within group (order by abs(past.latency_p75_ms - median.baseline_ms))
        from past
        where past.hour < of_hour
      ) as mad_ms
    from median
  ),

  slow as (
    select
      own.hours,
      own.baseline_ms,
      case
        when own.baseline_ms is not null then greatest(slow_ms, ratio * own.baseline_ms, own.baseline_ms + 5 * own.mad_ms)
        when v.volume_type not in ('st1', 'sc1') then slow_ms
      end as limit_ms
    from own
    inner join inventory.volume_hourly as v
      on v.hour = of_hour and v.account = of_account and v.region = of_region and v.volume_id = of_volume_id
  )

  select
    slow.baseline_ms,
    slow.limit_ms,
    slow.hours,
    coalesce((
      select
        sum(
          past.minutes_present * case
            when past.latency_p05_ms >= slow.limit_ms then 0.95
            when past.latency_p25_ms >= slow.limit_ms then 0.75
            when past.latency_p50_ms >= slow.limit_ms then 0.5
            else 0.25
          end
        )
      from past
      where past.hour > coalesce((
        select max(before.hour) from generate_series(of_hour - interval '168 hours', of_hour, interval '1 hour') as before (hour)
        where not exists (select 1 from past as p where p.hour = before.hour and p.latency_p75_ms >= slow.limit_ms)
      ), '-infinity')
    ), 0)
  from slow
$$;
