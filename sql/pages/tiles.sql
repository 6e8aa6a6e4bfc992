-- Clusters and applications with their worst severity now: of a cluster, that of all of its resources and of the volumes
-- and instances that they run on; of an application, that of its resources. Worst first. Applications
-- can be filtered by owner.
with firing as materialized (
  select f.fingerprint, f.resource, f.application, public.severity_rank(f.severity) as rank
  from public.findings_now as f
  where f.status = 'firing' and f.muted is null
),

infrastructure as materialized (
  select distinct f.resource from firing as f
  where split_part(f.resource, ':', 1) in ('volume', 'instance', 'instances')
),

-- Instances that such a resource affects, or is; then the brokers and processes on them.
instance as materialized (
  select i.resource, i.resource as instance from infrastructure as i
  union
  select i.resource, a.downstream
  from infrastructure as i
  inner join lateral (
    select l.downstream from detect.resource_link as l
    where l.upstream = i.resource and l.basis in ('attached', 'one of')
  ) as a on true
),

below as materialized (
  select i.resource, a.downstream as on_it
  from instance as i
  inner join lateral (
    select l.downstream from detect.resource_link as l where l.upstream = i.instance and l.basis = 'runs on'
  ) as a on true
  union
  select i.resource, a.downstream
  from infrastructure as i
  inner join lateral (
    select l.downstream from detect.resource_link as l where l.upstream = i.resource and l.basis = 'claimed by'
  ) as a on true
),

placed as (
  select f.fingerprint, f.rank, 'cluster:' || split_part(split_part(k.resource, ':', 2), '/', 1) as key
  from firing as f
  cross join lateral (
    select f.resource where split_part(f.resource, ':', 1) not in ('volume', 'instance', 'instances')
    union
    select b.on_it from below as b where b.resource = f.resource
  ) as k (resource)
  union
  select f.fingerprint, f.rank, a.key
  from firing as f
  inner join detect.resource as a on a.kind = 'application' and f.application = a.application
    and (split_part(f.resource, ':', 1) in ('volume', 'instance', 'instances')
      or split_part(split_part(f.resource, ':', 2), '/', 1) = a.cluster)
),

worst as (
  select key, min(rank) as rank, count(*) as findings from placed group by key
),

-- A resource of these kinds with an evaluation that is missing in its detector's newest hour.
unsure as (
  select distinct e.resource
  from detect.detector as d
  cross join lateral (
    select max(j.hour) as hour from detect.detector_run as j where j.detector = d.detector and j.status = 'evaluated'
  ) as newest
  inner join detect.evaluation as e on d.detector = e.detector and newest.hour = e.hour and e.status = 'unknown'
  where e.resource ~ '^(cluster|application):' and not e.is_not_applicable
)

select
  r.kind,
  r.key,
  r.name,
  r.cluster,
  (array['critical', 'warning', 'info'])[w.rank] as severity,
  coalesce(w.findings, 0) as findings,
  u.resource is not null or r.seen_hour < r.as_of as is_unsure,
  count(*) over (partition by r.kind) as total,
  row_number() over (partition by r.kind order by w.rank asc nulls last, u.resource is null asc, w.findings desc, r.name asc) as place
from detect.resource as r
left join worst as w on r.key = w.key
left join unsure as u on r.key = u.resource
where
  r.kind = 'cluster' or (
    r.kind = 'application'
    and (cast(:owner as text[]) is null or coalesce(r.owner, 'unassigned') = any(cast(:owner as text[])))
  )
order by r.kind desc, place asc
