-- Open incidents that a finding can be linked with: all except its own, worst and newest first.
select
  t.fingerprint,
  coalesce(t.issue_title, t.title) as title,
  coalesce(t.issue_severity, t.severity) as severity
from tickets.ticket as t
where
  t.state = 'open' and t.summary_ticket_id is null and t.detector <> 'storm'
  and t.ticket_id <> all(
    select coalesce(own.summary_ticket_id, own.ticket_id) from tickets.ticket as own
    where own.fingerprint = :fingerprint and own.state = 'open'
  )
order by public.severity_rank(coalesce(t.issue_severity, t.severity)) asc, t.opened_hour desc, t.ticket_id asc
limit cast(:most as integer)
