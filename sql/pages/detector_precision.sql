-- Tickets that a detector opened in some days, and how many of them people reported as false positives or responded to in
-- another way.
select
  count(*) as tickets,
  count(*) filter (where r.is_false) as false_positives,
  count(*) filter (where not r.is_false) as other_responses
from tickets.ticket as t
left join lateral (
  select bool_or(w.verb = 'false_positive') as is_false
  from tickets.response as w
  where
    w.fingerprint = t.fingerprint and w.verb <> 'unmute'
    and w.said_at >= t.opened_hour and (t.closed_hour is null or w.said_at < t.closed_hour + interval '7 days')
) as r on true
where t.detector = :detector and t.opened_hour >= cast(:newest as timestamptz) - make_interval(days => :days)
