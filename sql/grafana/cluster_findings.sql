-- Open findings of a cluster, worst first.
select
  f.severity,
  f.title,
  f.resource,
  f.owner,
  f.since,
  f.message,
  f.ticket,
  f.fingerprint
from public.findings_open as f
where f.cluster = :cluster
order by public.severity_rank(f.severity) asc, f.since desc nulls last, f.fingerprint asc
limit 200
