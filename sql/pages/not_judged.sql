-- What couldn't be judged, by rule and reason.
select
  n.detector,
  coalesce(d.title, n.detector) as title,
  n.status,
  n.reason,
  n.hour,
  count(*) as resources,
  (array_agg(n.resource order by n.resource))[1 : 5] as examples,
  (array_agg(n.fingerprint order by n.resource))[1 : 5] as fingerprints,
  count(*) over () as total
from public.not_judged as n
left join detect.detector as d on n.detector = d.detector
group by n.detector, d.title, n.status, n.reason, n.hour
order by n.status = 'skip', count(*) desc, n.detector, n.reason
limit cast(:most as integer)
