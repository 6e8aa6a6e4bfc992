-- End of the newest hour in which every app loaded its rows and the detectors were evaluated; null: there is none in 35 days.
select extract(epoch from max(l.hour) + interval '1 hour')::double precision as ended_at
from (
  select n.hour
  from detect.load as n
  where n.hour >= now() - interval '35 days'
  group by n.hour
  having bool_and(n.status = 'loaded')
) as l
where exists (select from detect.detector_run as r where r.hour = l.hour and r.status = 'evaluated')
