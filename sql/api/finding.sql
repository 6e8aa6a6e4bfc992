-- The newest evaluation of a finding with its newest ticket. A resource that was not found in its detector's newest hour is
-- unknown and not current.
select
  e.fingerprint,
  e.detector,
  d.title,
  case when e.hour = newest.hour then e.status else 'unknown' end as condition,
  e.hour = newest.hour as is_current,
  e.severity,
  e.reason,
  e.message,
  e.details,
  e.impact,
  e.actions,
  e.commands,
  e.key_metrics,
  e.metrics,
  e.affected,
  e.resource,
  e.resource_name,
  split_part(e.resource, ':', 1) as kind,
  e.identity ->> 'cluster' as cluster,
  e.owner,
  e.application,
  s.since_hour,
  e.hour as evaluated_hour,
  t.ticket_id,
  t.state as ticket_state,
  filed.external_key as ticket_key,
  filed.external_url as ticket_url,
  t.muted,
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by
from detect.evaluation as e
left join detect.detector as d on e.detector = d.detector
left join lateral (
  select max(j.hour) as hour from detect.detector_run as j where j.detector = e.detector and j.status = 'evaluated'
) as newest on true
left join lateral (
  select * from tickets.ticket as n
  where n.fingerprint = e.fingerprint
  order by n.state = 'open' desc, n.ticket_id desc
  limit 1
) as t on true
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id and place.detector <> 'storm'
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
left join detect.open_finding as s on e.fingerprint = s.fingerprint
where e.fingerprint = cast(:fingerprint as text)
order by e.hour desc
limit 1
