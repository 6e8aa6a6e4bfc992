-- Firing findings of a detector in the hours before one. The hour itself is excluded, so the order of detectors has no effect.
create or replace function detect.firing_hours(of_detector text, as_of timestamptz, days integer) returns table (
  hour timestamptz, identity jsonb, affected jsonb
) language sql stable rows 100 set enable_hashjoin = off set enable_mergejoin = off as $$
  select e.hour, e.identity, e.affected
  from detect.detector_run as j
  inner join detect.evaluation as e on j.hour = e.hour and j.detector = e.detector and e.status = 'firing'
  where j.detector = of_detector and j.hour > as_of - make_interval(days => days) and j.hour < as_of
$$;
comment on function detect.firing_hours is
'Firing findings of a detector in the hours of some days before one, by identity, with affected parts.';
-- Firing findings of some detectors in their newest hour before one, at most a day old.
create or replace function detect.notified_before(of_detectors text[], as_of timestamptz) returns table (
  detector text, identity jsonb, metrics json, affected jsonb
) language sql stable rows 100 set enable_hashjoin = off set enable_mergejoin = off as $$
  select e.detector, e.identity, e.metrics, e.affected
  from (
    select detector, max(hour) as hour
    from detect.detector_run
    where detector = any(of_detectors) and status = 'evaluated' and hour >= as_of - interval '1 day' and hour < as_of
    group by detector
  ) as newest
  inner join detect.evaluation as e
    on newest.hour = e.hour and newest.detector = e.detector and e.status = 'firing'
$$;
comment on function detect.notified_before is
'Firing findings of some detectors in their newest evaluated hour before one, at most a day old: by identity, with metrics and affected parts.';
