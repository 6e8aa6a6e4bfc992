-- Baseline of a metric in an hour, from its own history: median and median absolute deviation (unscaled) of the same hour of
-- the week over the 4 weeks before, or of all hours while fewer than three of the same hour are known. Hours with null, the
-- hour itself, and later hours do not count. Always one row: with fewer than least_hours known in total, median, deviation,
-- and kind are null, and known_hours has their number.
create or replace function public.topic_baseline(
  as_of timestamptz, hours timestamptz[], amounts double precision[], least_hours integer
) returns table (
  median double precision,
  mad double precision,                        -- median of the deviations from the median
  known_hours bigint,                          -- of the 4 weeks
  kind text                                    -- hour_of_week or all_hours
) language sql stable parallel safe rows 1 as $$
  with known as materialized (
    select amount, extract(epoch from as_of - at)::bigint % (7 * 86400) = 0 as is_same_hour
    from unnest(hours, amounts) as known (at, amount)
    where amount is not null and at < as_of and at >= as_of - interval '672 hours'
  ),

  counted as (
    select count(*) as hours, count(*) filter (where is_same_hour) >= 3 as by_week from known
  ),

  middle as (
    select percentile_cont(0.5) within group (order by k.amount) as median
    from known as k
    cross join counted as c
    where c.hours >= least_hours and (k.is_same_hour or not c.by_week)
  )

  select
    m.median,
    (
      select percentile_cont(0.5) within group (order by abs(k.amount - m.median))
      from known as k
      where k.is_same_hour or not c.by_week
    ),
    c.hours,
    case when m.median is null then null when c.by_week then 'hour_of_week' else 'all_hours' end
  from counted as c
  cross join middle as m
$$;
comment on function public.topic_baseline is
'Baseline of a metric in an hour: median and MAD of the same hour of the week over the 4 weeks before, or of all hours while there are fewer than three; null while fewer than least_hours are known.';
