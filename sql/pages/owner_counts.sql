-- Open findings of some owners by severity, and muted ones.
select
  count(*) filter (where f.muted is null) as open,
  count(*) filter (where f.muted is null and f.severity = 'critical') as critical,
  count(*) filter (where f.muted is null and f.severity = 'warning') as warning,
  count(*) filter (where f.muted is null and f.severity = 'info') as info,
  count(*) filter (where f.muted is not null) as muted
from public.findings_now as f
where coalesce(f.owner, 'unassigned') = any(cast(:owner as text[]))
