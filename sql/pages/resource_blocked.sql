-- Detectors that were not evaluated in their newest hour, and why.
select
  d.detector,
  d.title,
  j.status,
  j.message,
  j.hour
from unnest(cast(:detectors as text[])) as asked (detector)
inner join detect.detector as d on asked.detector = d.detector
cross join lateral (
  select * from detect.detector_run as l where l.detector = d.detector order by l.hour desc limit 1
) as j
where j.status <> 'evaluated'
order by d.title
