-- Open incidents, root causes only: tickets that represent an incident, and firing findings without a ticket and without
-- an accepted cause. Worst first, then by the number of downstream effects. Muted ones are left out. The owners may be null.
with effect as (
  select c.effect
  from detect.cause as c
  where c.is_accepted and c.hour = (select max(w.hour) from detect.weighing as w)
),

downstream as (
  select summary_ticket_id as ticket_id, count(*) as effects
  from tickets.ticket
  where state = 'open' and summary_ticket_id is not null
  group by summary_ticket_id
),

found as (
  select
    coalesce(t.issue_severity, f.severity) as severity,
    coalesce(root.fingerprint, f.fingerprint) as fingerprint,
    f.ticket_id,
    coalesce(r.title, f.title) as title,
    coalesce(root.resource, f.resource) as resource,
    coalesce(root.resource_name, f.resource_name) as resource_name,
    coalesce(root.owner, f.owner) as owner,
    coalesce(root.opened_hour, f.since_hour, t.opened_hour) as since_hour,
    f.status,
    f.ticket_key,
    f.ticket_url,
    f.acknowledged_by,
    coalesce(d.effects, 0) as effects
  from public.findings_now as f
  left join tickets.ticket as t on f.ticket_id = t.ticket_id
  left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id
  left join tickets.ticket as root on t.root_ticket_id = root.ticket_id
  left join detect.detector as r on root.detector = r.detector
  left join downstream as d on t.ticket_id = d.ticket_id
  where
    f.muted is null
    and (t.ticket_id is null or t.summary_ticket_id is null or place.detector = 'storm')
    and (t.ticket_id is not null or f.fingerprint not in (select e.effect from effect as e))
)

select
  f.*,
  -- Of the rows that are shown only: PostgreSQL computes what is expensive after the limit.
  coalesce(detect.firing_since(f.fingerprint), f.since_hour) as since,
  count(*) over () as total
from found as f
where cast(:owner as text[]) is null or coalesce(f.owner, 'unassigned') = any(cast(:owner as text[]))
order by public.severity_rank(f.severity), f.effects desc, f.since_hour desc nulls last, f.resource_name asc, f.fingerprint asc
limit cast(:most as integer) offset cast(:skip as integer)
