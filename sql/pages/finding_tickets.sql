-- All tickets of a finding, newest first, with their issues in each tracker; a ticket that another represents has that one's
-- issues.
select
  t.ticket_id,
  t.state,
  t.severity,
  t.muted,
  t.muted_until,
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,
  t.opened_hour,
  t.last_firing_hour,
  t.closed_hour,
  t.close_reason,
  t.summary_ticket_id is not null as in_summary,
  coalesce(i.issues, '[]') as issues
from tickets.ticket as t
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id and place.detector <> 'storm'
left join lateral (
  select
    jsonb_agg(
      jsonb_build_object(
        'tracker', i.tracker, 'key', i.external_key, 'url', i.external_url, 'state', i.state, 'error', i.error,
        'undelivered', (
          select count(*) from tickets.change as c
          where
            c.ticket_id = i.ticket_id and c.change_id > i.delivered_change_id
            and coalesce(c.tracker, i.tracker) = i.tracker
        )
      ) order by i.created_at, i.tracker
    ) as issues
  from tickets.issue as i
  where i.ticket_id = coalesce(t.summary_ticket_id, t.ticket_id)
) as i on true
where t.fingerprint = :fingerprint
order by t.ticket_id desc
limit 20
