-- First hour of the alarms that a finding has had without a pause up to an hour, with one of these becauses; an hour
-- without data is no pause. Looks back 14 days.
create or replace function detect.alarm_began(of_fingerprint text, becauses text[], as_of timestamptz) returns table (
  began timestamptz
) language sql stable as $$
  select (
    select min(e.hour) from detect.evaluation as e
    where
      e.fingerprint = of_fingerprint and e.status = 'alarm' and e.hour <= as_of
      and e.hour > greatest(
        as_of - interval '14 days',
        (
          select max(p.hour) from detect.evaluation as p
          where
            p.fingerprint = of_fingerprint and p.hour < as_of and p.hour > as_of - interval '14 days'
            and (p.status = 'ok' or (p.status = 'alarm' and p.because <> all(becauses)))
        )
      )
  )
$$;
