-- Start of a problem to the minute, where the newest firing evaluation of its finding up to an hour has it; otherwise null.
create or replace function detect.firing_since(of_fingerprint text, as_of timestamptz default 'infinity') returns timestamptz
language sql stable as $$
  select detect.since_of(newest.metrics)
  from (
    select e.metrics
    from detect.evaluation as e
    where e.fingerprint = of_fingerprint and e.status = 'firing' and e.hour <= as_of
    order by e.hour desc
    limit 1
  ) as newest
$$;
