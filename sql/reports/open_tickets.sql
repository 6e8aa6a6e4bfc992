-- Tickets that are open at the end of a period, worst and widest first, with the newest evaluation of their finding. Tickets that follow
-- from another, or belong to an alert storm, count with the ticket that represents them. `owner`: only tickets of one owner
-- ('': unassigned), including those that are represented by another's.
select
  t.ticket_id, root.fingerprint, root.detector, root.resource_name, root.identity, root.title,
  coalesce(t.issue_severity, t.severity) as severity,
  t.opened_hour, t.muted_until,
  filed.external_url, root.owner, root.resource, c.title as cause_title, c.fingerprint as cause_fingerprint, e.hour, e.finding,
  t.opened_hour >= cast(:start as timestamptz) as is_new,
  (select count(*) from tickets.ticket as m where m.summary_ticket_id = t.ticket_id and m.state = 'open') as members,
  count(*) over () as total
from tickets.ticket as t
inner join tickets.ticket as root on coalesce(t.root_ticket_id, t.ticket_id) = root.ticket_id
left join tickets.ticket as c on t.cause_ticket_id = c.ticket_id
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
left join lateral (
  select v.hour, to_jsonb(v) as finding
  from detect.evaluation as v
  where
    v.fingerprint = root.fingerprint and v.detector = root.detector and v.status = 'firing'
    and v.hour >= root.opened_hour and v.hour < cast(:finish as timestamptz)
  order by v.hour desc
  limit 1
) as e on true
where
  (t.summary_ticket_id is null or (cast(:owner as text) is not null and place.owner is distinct from t.owner))
  and (cast(:owner as text) is null or (coalesce(root.owner, '') = cast(:owner as text) and t.detector <> 'storm'))
  and t.opened_hour < cast(:finish as timestamptz)
  and (t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz))
order by
  public.severity_rank(coalesce(t.issue_severity, t.severity)), members desc, public.reach_rank(root.resource),
  t.opened_hour desc, t.ticket_id asc
limit cast(:most as integer)
