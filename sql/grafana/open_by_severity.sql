-- Open findings that are not muted, by severity.
select
  count(*) filter (where f.severity = 'critical') as critical,
  count(*) filter (where f.severity = 'warning') as warning,
  count(*) filter (where f.severity = 'info') as info
from public.findings_now as f
where f.muted is null
