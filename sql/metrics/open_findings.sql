-- Open findings that are not muted, and, of these, advice: firing findings below the severity that opens tickets.
select
  f.detector,
  f.severity,
  coalesce(f.owner, '') as owner,
  count(*) as findings,
  count(*) filter (
    where f.status = 'firing' and f.ticket_id is null
    and public.severity_rank(f.severity) > public.severity_rank(cast(:least as text))
  ) as advice
from public.findings_now as f
where f.muted is null
group by f.detector, f.severity, coalesce(f.owner, '')
order by f.detector, f.severity, owner
