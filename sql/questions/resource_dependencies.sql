/*
title: What depends on a resource
subject: coverage
description: >
  Resources downstream of a resource, at most 5 dependencies away, with owner and open findings.
params:
  resource: {type: text, description: 'Key of the resource, as in the view resource', example: 'broker:orders-prod/3'}
columns:
  resource: Key of the dependent resource
  name: Its name
  kind: Its kind
  owner: Owner; null if unassigned
  distance: Number of dependencies between them
  firing_findings: Findings that are firing on it
*/
-- Everything downstream, at most 5 dependencies away.
with recursive link as materialized (
  select
    l.upstream,
    l.downstream
  from public.resource_link as l
  where public.leads_along(l.basis)
),

walk (key, distance) as (
  select
    :resource,
    0
  union
  select
    l.downstream,
    w.distance + 1
  from walk as w
  inner join link as l on w.key = l.upstream
  where w.distance < 5
),

-- The nearest way to each resource.
reached as (
  select
    key,
    min(distance) as distance
  from walk
  group by key
),

-- Firing findings by resource.
finding as (
  select
    f.resource,
    count(*) as findings
  from public.findings_now as f
  where f.status = 'firing'
  group by f.resource
)

select
  t.key as resource,
  r.name,
  r.kind,
  r.owner,
  t.distance,
  coalesce(f.findings, 0) as firing_findings
from reached as t
left join public.resource as r on t.key = r.key
left join finding as f on t.key = f.resource
where t.distance > 0
order by t.distance asc, firing_findings desc, t.key asc
