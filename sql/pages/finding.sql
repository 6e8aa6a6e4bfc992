-- A finding as of an hour; without an hour, as of the newest that has it.
select
  e.*,
  d.title,
  j.params,
  j.sql_checksum,
  j.evaluated_at as detector_evaluated_at,
  case when e.status = 'firing' then detect.firing_since(e.fingerprint, e.hour) end as firing_since,
  case when e.status = 'firing' then coalesce(t.opened_hour, s.since_hour) end as first_hour,
  (select max(n.hour) from detect.detector_run as n where n.detector = e.detector and n.status = 'evaluated') as newest_hour
from detect.evaluation as e
left join detect.detector as d on e.detector = d.detector
left join detect.detector_run as j on e.hour = j.hour and e.detector = j.detector
left join tickets.ticket as t on e.fingerprint = t.fingerprint and t.state = 'open' and e.hour >= t.opened_hour
left join detect.open_finding as s on e.fingerprint = s.fingerprint and e.hour >= s.since_hour
where e.fingerprint = :fingerprint and e.hour = coalesce(:hour, e.hour)
order by e.hour desc
limit 1
