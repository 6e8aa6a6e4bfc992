-- Owners, applications, and clusters of open findings and stored resources, for the filters.
select 'owner' as filter, coalesce(f.owner, 'unassigned') as value from public.findings_now as f
union
select 'application', f.application from public.findings_now as f where f.application is not null
union
select 'cluster', r.cluster from detect.resource as r where r.kind = 'cluster'
order by filter, value
