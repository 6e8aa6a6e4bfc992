-- Tickets that have been open the longest at the end of a period. Tickets that follow from another, or belong to an alert
-- storm, count with the ticket that represents them. `owner`: only those of one owner; '': unassigned.
select
  root.fingerprint,
  root.title,
  coalesce(t.issue_severity, t.severity) as severity,
  t.opened_hour,
  detect.firing_since(root.fingerprint, cast(:finish as timestamptz) - interval '1 hour') as firing_since,
  root.owner,
  count(*) over () as total
from tickets.ticket as t
inner join tickets.ticket as root on coalesce(t.root_ticket_id, t.ticket_id) = root.ticket_id
where
  t.summary_ticket_id is null
  and (cast(:owner as text) is null or coalesce(root.owner, '') = cast(:owner as text))
  and t.opened_hour < cast(:finish as timestamptz)
  and (t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz))
order by t.opened_hour asc, public.severity_rank(coalesce(t.issue_severity, t.severity)) asc, t.ticket_id asc
limit cast(:most as integer)
