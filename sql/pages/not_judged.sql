-- What couldn't be judged, by rule and reason; last, where there is nothing to judge.
select
  n.detector,
  coalesce(d.title, n.detector) as title,
  n.status,
  n.reason,
  n.hour,
  n.nothing_to_judge,
  count(*) as resources,
  trim_array(array_agg(n.resource order by n.resource), greatest(cast(count(*) as integer) - 5, 0)) as examples,
  trim_array(array_agg(n.fingerprint order by n.resource), greatest(cast(count(*) as integer) - 5, 0)) as fingerprints,
  count(*) over () as total
from public.not_judged as n
left join detect.detector as d on n.detector = d.detector
group by n.detector, d.title, n.status, n.reason, n.hour, n.nothing_to_judge
order by n.nothing_to_judge asc, n.status = 'skip' asc, count(*) desc, n.detector asc, n.reason asc
limit cast(:most as integer)
