-- Keeps detect.open_finding in line with evaluations, in whatever order hours are evaluated, and when they are evaluated
-- again. The status of most findings does not change; for the others, the history shows since when they have been firing.
create or replace function detect.update_open_findings() returns trigger language plpgsql as $$
declare
  changed text[] := array(
    select distinct v.fingerprint
    from said as v
    left join detect.open_finding as s on v.fingerprint = s.fingerprint
    where (s.fingerprint is null and v.status = case tg_op when 'INSERT' then 'firing' else 'ok' end)
    or (s.fingerprint is not null and (s.is_ok or v.status = 'ok' or v.hour <= s.since_hour or tg_op = 'DELETE'))
  );
begin
  if cardinality(changed) = 0 then
    return null;
  end if;
  delete from detect.open_finding where fingerprint = any(changed);
  insert into detect.open_finding (fingerprint, detector, since_hour, is_ok)
  select newest.fingerprint, newest.detector, first.hour, newest.status = 'ok'
  from unnest(changed) as c (fingerprint)
  cross join lateral (
    select e.* from detect.evaluation as e where e.fingerprint = c.fingerprint order by e.hour desc limit 1
  ) as newest
  left join lateral (
    select e.hour from detect.evaluation as e
    where e.fingerprint = c.fingerprint and e.hour < newest.hour and e.status = 'ok'
    order by e.hour desc limit 1
  ) as healthy on true
  cross join lateral (
    select e.hour from detect.evaluation as e
    where e.fingerprint = c.fingerprint and e.hour > coalesce(healthy.hour, '-infinity') and e.status = 'firing'
    order by e.hour asc limit 1
  ) as first
  on conflict (fingerprint) do update set since_hour = excluded.since_hour, is_ok = excluded.is_ok;
  return null;
end
$$;
create or replace trigger update_open_findings
after insert on detect.evaluation
referencing new table as said
for each statement execute function detect.update_open_findings();
create or replace trigger update_open_findings_of_deleted
after delete on detect.evaluation
referencing old table as said
for each statement execute function detect.update_open_findings();
