-- Tickets closed within a period, with the reason.
select
  t.title, t.severity, t.opened_hour, t.closed_hour, t.close_reason, filed.external_url, t.fingerprint,
  count(*) over () as total
from tickets.ticket as t
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
where
  (t.summary_ticket_id is null or cast(:owner as text) is not null)
  and (cast(:owner as text) is null or coalesce(t.owner, '') = cast(:owner as text))
  and t.closed_hour >= cast(:start as timestamptz) and t.closed_hour < cast(:finish as timestamptz)
order by t.closed_hour desc, t.ticket_id asc
limit cast(:most as integer)
