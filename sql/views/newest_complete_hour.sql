-- The newest hour in which every app loaded its rows and the detectors were evaluated. No row: there is none in the last 35 days.
create or replace view public.newest_complete_hour as
select
  l.hour,  -- Start of the hour (UTC)
  l.hour + interval '1 hour' as ended_at  -- End of the hour (UTC)
from (
  select n.hour
  from detect.load as n
  where n.hour >= now() - interval '35 days'
  group by n.hour
  having bool_and(n.status = 'loaded')
) as l
where exists (select from detect.detector_run as r where r.hour = l.hour and r.status = 'evaluated')
order by l.hour desc
limit 1;
