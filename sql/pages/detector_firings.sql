-- The last firings of a detector, newest first: tickets, and open findings without a ticket.
select
  f.fingerprint,
  coalesce(f.resource_name, e.resource_name, f.fingerprint) as resource_name,
  coalesce(f.severity, e.severity, 'info') as severity,
  f.since_hour,
  f.last_hour,
  f.closed_hour,
  f.close_reason,
  filed.external_key,
  filed.external_url,
  exists(
    select from tickets.response as r
    where r.fingerprint = f.fingerprint and r.verb = 'false_positive' and r.said_at >= f.since_hour
      and (f.closed_hour is null or r.said_at < f.closed_hour + interval '7 days')
  ) as is_false_positive
from (
  (
    select
      t.ticket_id, t.fingerprint, t.resource_name, t.severity, t.opened_hour as since_hour, t.last_firing_hour as last_hour,
      t.closed_hour, t.close_reason, coalesce(t.summary_ticket_id, t.ticket_id) as carrier_id
    from tickets.ticket as t
    where t.detector = :detector
    order by t.opened_hour desc, t.ticket_id desc
    limit cast(:most as integer)
  )
  union all
  (
    select null, s.fingerprint, null, null, s.since_hour, null, null, null, null
    from detect.open_finding as s
    where
      s.detector = :detector
      and not exists (select from tickets.ticket as o where o.fingerprint = s.fingerprint and o.state = 'open')
    order by s.since_hour desc, s.fingerprint asc
    limit cast(:most as integer)
  )
) as f
left join lateral (
  select v.resource_name, v.severity from detect.evaluation as v
  where v.fingerprint = f.fingerprint and f.ticket_id is null
  order by v.hour desc
  limit 1
) as e on true
left join lateral (
  select i.external_key, i.external_url from tickets.issue as i
  where i.ticket_id = f.carrier_id
  order by i.external_key is null asc, i.created_at asc, i.tracker asc
  limit 1
) as filed on true
order by f.since_hour desc, f.fingerprint asc
limit cast(:most as integer)
