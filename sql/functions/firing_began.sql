-- First hour since which a finding has been firing without a pause, with one of these reasons, up to an hour; an hour
-- without data is no pause. Looks back 14 days.
create or replace function detect.firing_began(of_fingerprint text, reasons text[], as_of timestamptz) returns table (
  began timestamptz
) language sql stable as $$
  select (
    select min(e.hour) from detect.evaluation as e
    where
      e.fingerprint = of_fingerprint and e.status = 'firing' and e.hour <= as_of
      and e.hour > greatest(
        as_of - interval '14 days',
        (
          select max(p.hour) from detect.evaluation as p
          where
            p.fingerprint = of_fingerprint and p.hour < as_of and p.hour > as_of - interval '14 days'
            and (p.status = 'ok' or (p.status = 'firing' and p.reason <> all(reasons)))
        )
      )
  )
$$;
