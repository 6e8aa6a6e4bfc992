-- Open incidents, worst first, then newest first.
select
  coalesce(t.issue_severity, t.severity) as severity,
  coalesce(t.issue_title, t.title) as title,
  t.owner,
  t.opened_hour as since,
  (select count(*) from tickets.ticket as m where m.summary_ticket_id = t.ticket_id) as downstream_effects,
  t.acknowledged_by,
  t.muted,
  filed.external_key as ticket,
  t.fingerprint
from tickets.ticket as t
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
where t.state = 'open' and t.summary_ticket_id is null
order by public.severity_rank(coalesce(t.issue_severity, t.severity)) asc, t.opened_hour desc, t.ticket_id desc
limit 200
