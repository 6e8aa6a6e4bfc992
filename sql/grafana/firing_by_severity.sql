-- Firing findings by hour and severity.
select
  e.hour as time,
  e.severity as metric,
  count(*)::double precision as value
from detect.evaluation as e
where
  e.status = 'firing' and e.hour >= cast(:start as timestamptz) and e.hour < cast(:finish as timestamptz)
group by e.hour, e.severity
order by e.hour, e.severity
