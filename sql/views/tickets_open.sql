-- Open tickets, the worst, widest, and oldest first. The table tickets.issue has all trackers of a ticket.
create or replace view public.tickets_open as
select
  t.severity,  -- Severity of the last alarm
  t.title,  -- Title in the tracker
  t.resource_name,  -- The resource
  t.detector,  -- Detector id
  t.opened_hour,  -- First hour in alarm (UTC)
  t.last_firing_hour,  -- Newest hour in alarm (UTC)
  t.muted,  -- wont_fix or snoozed, where people said so
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,  -- Who works on it, where somebody said so
  t.muted_until,  -- End of a snooze (UTC)
  t.role,  -- root: others follow from it; follows: from its cause; alone
  cause.title as cause,  -- Title of the ticket that it follows from
  filed.tracker,  -- The first tracker that has it
  filed.external_key,  -- Key there; null: no tracker was told yet
  filed.external_url,  -- Link there
  t.ticket_id,  -- Our id
  t.fingerprint  -- Finding it is about
from tickets.ticket as t
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id and place.detector <> 'storm'
left join tickets.ticket as cause on t.cause_ticket_id = cause.ticket_id
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
where t.state = 'open'
order by
  public.severity_rank(t.severity),
  (select count(*) from tickets.ticket as m where m.summary_ticket_id = t.ticket_id and m.state = 'open') desc,
  public.reach_rank(t.resource), t.opened_hour;
