-- The incident of a finding's newest ticket: the root cause first, then its downstream effects by depth. `message` is
-- the evidence for the cause, `linked_by` who linked it manually, `total` the number of all, of which `most` are returned.
select
  m.*,
  own.summary_ticket_id is null as has_issue,
  own.muted,
  own.acknowledged_by,
  link.who as linked_by,
  e.hour as firing_hour,
  detect.firing_since(m.fingerprint) as firing_since,
  e.reason,
  e.message as finding_message,
  e.impact,
  e.actions,
  e.commands,
  e.resource_name
from (
  select
    i.*,
    count(*) over () as total
  from (
    select t.ticket_id
    from tickets.ticket as t
    where t.fingerprint = :fingerprint
    order by t.state = 'open' desc, t.ticket_id desc
    limit 1
  ) as this
  cross join lateral tickets.incident_of(this.ticket_id) with ordinality as i
  order by i.ordinality
  limit cast(:most as integer)
) as m
inner join tickets.ticket as own on m.ticket_id = own.ticket_id
left join lateral (
  select r.who
  from tickets.manual_link as l
  inner join tickets.response as r on l.response_id = r.response_id
  where l.is_linked and m.message is null and m.depth > 0 and m.fingerprint in (l.one, l.other)
  order by r.response_id desc
  limit 1
) as link on true
left join lateral (
  select
    v.hour,
    v.reason,
    v.message,
    v.impact,
    v.actions,
    v.commands,
    v.resource_name
  from detect.evaluation as v
  where v.fingerprint = m.fingerprint and v.status = 'firing'
  order by v.hour desc
  limit 1
) as e on true
order by m.ordinality
