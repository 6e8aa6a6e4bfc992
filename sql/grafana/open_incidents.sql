-- Open incidents, worst first, then newest first.
select
  i.severity,
  i.title,
  i.owner,
  i.opened_hour as since,
  i.downstream_effects,
  i.acknowledged_by,
  i.muted,
  i.ticket_key as ticket,
  i.fingerprint
from public.incidents as i
where i.state = 'open'
order by public.severity_rank(i.severity) asc, i.opened_hour desc, i.ticket_id desc
limit 200
