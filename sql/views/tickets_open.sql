-- Open tickets, the worst, widest, and oldest first. The table tickets.issue has all trackers of a ticket.
create or replace view public.tickets_open as
select
  t.severity,  -- Severity when it last fired
  t.title,  -- Title in the tracker
  t.resource_name,  -- The resource's name
  t.detector,  -- Detector id
  t.opened_hour,  -- First firing hour (UTC)
  t.last_firing_hour,  -- Newest firing hour (UTC)
  t.muted,  -- wont_fix or snoozed, set by people; null: not muted
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,  -- Who acknowledged it; null: nobody
  t.muted_until,  -- End of a snooze (UTC)
  t.role,  -- root: cause of others; follows: included in the ticket of its cause; alone
  cause.title as cause,  -- Title of the ticket of its cause
  filed.tracker,  -- First tracker that has it
  filed.external_key,  -- Issue key; null: not filed yet
  filed.external_url,  -- Issue URL
  t.ticket_id,  -- Ticket id
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
