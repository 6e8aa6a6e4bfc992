-- The incident of a finding's newest ticket: the root first, then what follows from it, deeper and deeper.
select
  m.*,
  e.reason,
  e.resource
from (
  select t.ticket_id
  from tickets.ticket as t
  where t.fingerprint = :fingerprint
  order by t.state = 'open' desc, t.ticket_id desc
  limit 1
) as this
cross join lateral tickets.incident_of(this.ticket_id) with ordinality as m
left join lateral (
  select
    v.reason,
    v.resource
  from detect.evaluation as v
  where v.fingerprint = m.fingerprint and v.status = 'alarm'
  order by v.hour desc
  limit 1
) as e on true
order by m.ordinality
