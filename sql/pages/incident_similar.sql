-- Closed incidents that resemble one: those of its root finding, then those of the same detector with the same reason, then
-- with the same owner; of equal likeness the newest first. With what closed each, the last words that people left, and its
-- number of downstream effects.
with this as (
  select t.detector, t.fingerprint, t.owner, t.opened_hour
  from tickets.ticket as t
  where t.fingerprint = :fingerprint
  order by t.state = 'open' desc, t.ticket_id desc
  limit 1
),

likely as (
  select
    t.*,
    t.fingerprint = this.fingerprint as is_same_finding,
    t.owner = this.owner as is_same_owner
  from this
  inner join tickets.ticket as t on this.detector = t.detector
  where
    t.state = 'closed' and t.role <> 'follows' and t.opened_hour < this.opened_hour and t.closed_hour is not null
  order by t.fingerprint = this.fingerprint desc, t.closed_hour desc, t.ticket_id desc
  limit 100
)

select
  l.fingerprint,
  l.title,
  l.severity,
  l.resource,
  l.opened_hour,
  l.last_firing_hour,
  l.closed_hour,
  l.close_reason,
  l.is_same_finding,
  coalesce(e.reason = :reason, false) as is_same_reason,
  coalesce(l.is_same_owner, false) as is_same_owner,
  (select count(*) from tickets.ticket as m where m.summary_ticket_id = l.ticket_id) as effects,
  w.verb,
  w.who,
  w.words,
  filed.external_key,
  filed.external_url
from likely as l
left join lateral (
  select v.reason from detect.evaluation as v
  where v.fingerprint = l.fingerprint and v.hour = l.last_firing_hour
) as e on true
left join lateral (
  select r.verb, r.who, r.words from tickets.response as r
  where r.ticket_id = l.ticket_id and r.verb in ('wont_fix', 'close', 'false_positive', 'comment')
  order by r.verb = 'comment' asc, r.response_id desc
  limit 1
) as w on true
left join lateral (
  select i.external_key, i.external_url from tickets.issue as i
  where i.ticket_id = coalesce(l.summary_ticket_id, l.ticket_id)
  order by i.external_key is null asc, i.created_at asc, i.tracker asc
  limit 1
) as filed on true
order by l.is_same_finding desc, is_same_reason desc, is_same_owner desc, l.closed_hour desc, l.ticket_id desc
limit cast(:most as integer)
