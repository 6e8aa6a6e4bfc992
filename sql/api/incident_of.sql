-- The findings of the incident that a finding's newest ticket belongs to: the root cause first. `carrier` is the ticket that
-- has the issue, `message` the evidence for the cause.
select
  coalesce(this.summary_ticket_id, this.ticket_id) as carrier,
  m.fingerprint,
  cause.fingerprint as cause,
  m.depth,
  m.detector,
  m.title,
  m.severity,
  m.state,
  m.resource,
  m.opened_hour,
  m.resolved_hour,
  m.message,
  m.strength
from (
  select * from tickets.ticket as t
  where t.fingerprint = cast(:fingerprint as text)
  order by t.state = 'open' desc, t.ticket_id desc
  limit 1
) as this
cross join lateral tickets.incident_of(this.ticket_id) with ordinality as m
left join tickets.ticket as cause on m.cause_ticket_id = cause.ticket_id
order by m.ordinality
