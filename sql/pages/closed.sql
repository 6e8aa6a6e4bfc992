-- Tickets closed in the last days, newest first.
select
  t.fingerprint,
  t.title,
  t.severity,
  t.opened_hour,
  t.closed_hour,
  t.close_reason,
  filed.external_key,
  filed.external_url,
  count(*) over () as total
from tickets.ticket as t
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
where t.state = 'closed' and t.closed_hour >= cast(:newest as timestamptz) - make_interval(days => :days)
order by t.closed_hour desc, t.ticket_id desc
limit cast(:most as integer)
