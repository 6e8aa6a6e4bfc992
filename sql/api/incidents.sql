-- Incidents, newest first, before a ticket. Every filter may be null.
select
  i.ticket_id,
  i.fingerprint,
  i.detector,
  i.title,
  i.severity,
  i.state,
  i.resource,
  i.resource_name,
  i.owner,
  i.opened_hour,
  i.resolved_hour,
  i.close_reason,
  i.muted,
  i.muted_until,
  i.acknowledged_by,
  i.downstream_effects + (i.detector <> 'storm')::integer as findings,
  i.ticket_key,
  i.ticket_url
from public.incidents as i
where
  (cast(:state as text) is null or i.state = cast(:state as text))
  and (cast(:severity as text) is null or i.severity = cast(:severity as text))
  and (cast(:owner as text) is null or i.owner = cast(:owner as text))
  and (cast(:ticket_id as bigint) is null or i.ticket_id < cast(:ticket_id as bigint))
  and (cast(:single_id as bigint) is null or i.ticket_id = cast(:single_id as bigint))
order by i.ticket_id desc
limit cast(:most as integer)
