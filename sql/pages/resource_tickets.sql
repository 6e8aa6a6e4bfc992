-- Tickets of some findings, open ones first, then the newest.
select
  t.ticket_id,
  t.fingerprint,
  t.title,
  t.severity,
  t.state,
  t.muted,
  t.opened_hour,
  t.closed_hour,
  t.close_reason,
  filed.external_key,
  filed.external_url,
  count(*) over () as total
from tickets.ticket as t
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
where t.fingerprint = any(cast(:fingerprints as text[]))
order by t.state = 'open' desc, t.opened_hour desc, t.ticket_id desc
limit cast(:most as integer)
