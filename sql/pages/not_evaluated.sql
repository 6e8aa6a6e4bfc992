-- What was not evaluated, by detector and message; at the end, resources to which a detector does not apply.
select
  n.detector,
  coalesce(d.title, n.detector) as title,
  n.status,
  n.message,
  n.hour,
  n.is_not_applicable,
  count(*) as resources,
  trim_array(array_agg(n.resource_name order by n.resource_name), greatest(cast(count(*) as integer) - 5, 0)) as examples,
  trim_array(array_agg(n.fingerprint order by n.resource_name), greatest(cast(count(*) as integer) - 5, 0)) as fingerprints,
  count(*) over () as total
from public.not_evaluated as n
left join detect.detector as d on n.detector = d.detector
group by n.detector, d.title, n.status, n.message, n.hour, n.is_not_applicable
order by n.is_not_applicable asc, n.status = 'unknown' asc, count(*) desc, n.detector asc, n.message asc
limit cast(:most as integer)
