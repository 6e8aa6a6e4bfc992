-- Incidents, newest first, before a ticket: tickets with an issue of their own, also summaries of alert storms. Every filter
-- may be null.
select
  t.ticket_id,
  t.fingerprint,
  t.detector,
  coalesce(t.issue_title, t.title) as title,
  coalesce(t.issue_severity, t.severity) as severity,
  t.state,
  t.resource,
  t.resource_name,
  t.owner,
  t.opened_hour,
  coalesce(t.closed_hour, t.resolved_hour) as resolved_hour,
  t.close_reason,
  t.muted,
  t.muted_until,
  t.acknowledged_by,
  (
    select count(*) from tickets.ticket as m where m.summary_ticket_id = t.ticket_id
  ) + (t.detector <> 'storm')::integer as findings,
  filed.external_key as ticket_key,
  filed.external_url as ticket_url
from tickets.ticket as t
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
where
  t.summary_ticket_id is null
  and (cast(:state as text) is null or t.state = cast(:state as text))
  and (cast(:severity as text) is null or coalesce(t.issue_severity, t.severity) = cast(:severity as text))
  and (cast(:owner as text) is null or t.owner = cast(:owner as text))
  and (cast(:ticket_id as bigint) is null or t.ticket_id < cast(:ticket_id as bigint))
  and (cast(:single_id as bigint) is null or t.ticket_id = cast(:single_id as bigint))
order by t.ticket_id desc
limit cast(:most as integer)
