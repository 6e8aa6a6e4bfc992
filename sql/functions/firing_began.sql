-- First hour since which a finding has been firing without a pause, with one of these reasons, up to an hour; an hour
-- without data is no pause. It may have begun in any hour since it was last healthy. Looks back 14 days.
create or replace function detect.firing_began(of_fingerprint text, reasons text[], as_of timestamptz) returns table (
  began timestamptz,
  may_have_begun timestamptz  -- the hour after the last healthy one; began, if it has never been healthy
) language sql stable as $$
  with healthy as (
    select max(e.hour) as last_hour
    from detect.evaluation as e
    where
      e.fingerprint = of_fingerprint and e.hour < as_of and e.hour > as_of - interval '14 days'
      and (e.status = 'ok' or (e.status = 'firing' and e.reason <> all(reasons)))
  )

  select
    min(e.hour),
    coalesce(healthy.last_hour + interval '1 hour', min(e.hour))
  from healthy
  left join detect.evaluation as e
    on
      e.fingerprint = of_fingerprint and e.status = 'firing' and e.hour <= as_of
      and e.hour > greatest(as_of - interval '14 days', healthy.last_hour)
  group by healthy.last_hour
$$;
