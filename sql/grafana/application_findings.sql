-- Open findings of an application, worst first.
select
  f.severity,
  f.title,
  f.resource_name as resource,
  f.owner,
  f.since_hour as since,
  f.message,
  f.ticket_key as ticket,
  f.fingerprint
from public.findings_now as f
where f.muted is null and f.application = :application
order by public.severity_rank(f.severity) asc, f.since_hour desc nulls last, f.fingerprint asc
limit 200
