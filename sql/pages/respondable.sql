-- The newest ticket of a finding with the fields that its forms need, and whether it is part of an incident.
select
  this.fingerprint,
  t.ticket_id,
  t.title,
  t.state,
  t.muted,
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,
  coalesce(t.state = 'open' and t.role = 'follows', false) as is_part
from (select cast(:fingerprint as text) as fingerprint) as this
left join lateral (
  select * from tickets.ticket as n
  where n.fingerprint = this.fingerprint and n.detector <> 'storm'
  order by n.ticket_id desc
  limit 1
) as t on true
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id and place.detector <> 'storm'
