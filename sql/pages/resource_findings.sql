-- The newest evaluation of each of a resource's findings, with its ticket if one is open.
select
  e.fingerprint,
  e.detector,
  coalesce(d.title, e.detector) as title,
  e.hour,
  e.status,
  e.severity,
  e.message,
  e.resource_name,
  e.owner,
  e.application,
  e.is_not_applicable,
  r.params,
  e.metrics,
  e.hour = newest.hour as is_newest,
  coalesce(t.opened_hour, f.since_hour, e.hour) as first_hour,
  case when e.status = 'firing' then detect.firing_since(e.fingerprint, e.hour) end as firing_since,
  t.ticket_id,
  t.muted,
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,
  filed.external_key as ticket_key,
  filed.external_url as ticket_url
from unnest(cast(:fingerprints as text[])) as asked (fingerprint)
cross join lateral (
  select * from detect.evaluation as v where v.fingerprint = asked.fingerprint order by v.hour desc limit 1
) as e
left join detect.detector as d on e.detector = d.detector
left join lateral (
  select max(j.hour) as hour from detect.detector_run as j where j.detector = e.detector and j.status = 'evaluated'
) as newest on true
left join detect.detector_run as r on e.detector = r.detector and e.hour = r.hour
left join detect.open_finding as f on e.fingerprint = f.fingerprint
left join tickets.ticket as t on e.fingerprint = t.fingerprint and t.state = 'open'
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id and place.detector <> 'storm'
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
order by e.status = 'firing' desc, public.severity_rank(e.severity) asc, d.title asc
