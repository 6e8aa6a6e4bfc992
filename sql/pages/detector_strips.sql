-- Status of each detector, or of one, hour by hour: the worst firing severity, and the number of findings by status.
select
  j.detector,
  j.hour,
  j.status,
  j.message,
  j.firing,
  j.ok,
  j.unknown,
  a.severity
from detect.detector_run as j
left join (
  select
    e.detector,
    e.hour,
    (array_agg(e.severity order by public.severity_rank(e.severity)))[1] as severity
  from detect.evaluation as e
  where
    e.status = 'firing' and (cast(:detector as text) is null or e.detector = :detector)
    and e.hour > cast(:newest as timestamptz) - make_interval(hours => :hours)
    and e.hour <= cast(:newest as timestamptz)
  group by e.detector, e.hour
) as a on j.detector = a.detector and j.hour = a.hour
where
  (cast(:detector as text) is null or j.detector = :detector)
  and j.hour > cast(:newest as timestamptz) - make_interval(hours => :hours) and j.hour <= cast(:newest as timestamptz)
order by j.detector, j.hour
