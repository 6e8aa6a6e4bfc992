-- What is wrong now, worst and newest first, with the ticket of the likely cause. Every filter may be null.
select
  f.*,
  cause.title as cause_title,
  cause.fingerprint as cause_fingerprint,
  count(*) over () as total
from public.findings_now as f
left join tickets.ticket as t on f.ticket_id = t.ticket_id
left join tickets.ticket as cause on t.cause_ticket_id = cause.ticket_id
where
  f.severity = coalesce(cast(:severity as text), f.severity)
  and f.detector = coalesce(cast(:detector as text), f.detector)
  and (
    cast(:words as text) is null
    or position(lower(cast(:words as text)) in lower(concat_ws(' ', f.resource, f.title, f.reason, f.ticket_key))) > 0
  )
order by
  f.muted is not null, f.status <> 'alarm', array_position(array['critical', 'warning', 'info'], f.severity),
  f.since_hour desc nulls last, f.resource
limit cast(:most as integer)
