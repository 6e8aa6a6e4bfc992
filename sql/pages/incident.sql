-- The incident of a finding's newest ticket: the root first, then what follows from it, deeper and deeper.
select
  m.*,
  own.summary_ticket_id is null as has_issue,
  own.muted,
  own.acknowledged_by,
  e.hour as alarm_hour,
  e.reason,
  e.message,
  e.resource_name
from (
  select t.ticket_id
  from tickets.ticket as t
  where t.fingerprint = :fingerprint
  order by t.state = 'open' desc, t.ticket_id desc
  limit 1
) as this
cross join lateral tickets.incident_of(this.ticket_id) with ordinality as m
inner join tickets.ticket as own on m.ticket_id = own.ticket_id
left join lateral (
  select
    v.hour,
    v.reason,
    v.message,
    v.resource_name
  from detect.evaluation as v
  where v.fingerprint = m.fingerprint and v.status = 'firing'
  order by v.hour desc
  limit 1
) as e on true
order by m.ordinality
