-- Sources that did not respond in an hour to some requests of these apps. Sources of other clusters and accounts than
-- those that a resource depends on, or that depend on it, are left out: they cannot hold evidence for its causes.
with recursive link as materialized (
  select upstream, downstream
  from public.resource_links(:hour)
),

dependency as (
  select cast(:resource as text) as resource
  union
  select l.upstream
  from dependency as d
  inner join link as l on d.resource = l.downstream
  where split_part(d.resource, ':', 1) <> 'cluster'
),

dependent as (
  select cast(:resource as text) as resource
  union
  select l.downstream
  from dependent as d
  inner join link as l on d.resource = l.upstream
  where split_part(d.resource, ':', 1) <> 'cluster'
),

scope as (
  select
    split_part(resource, ':', 1) in ('volume', 'instance', 'instances') as is_account,
    split_part(split_part(resource, ':', 2), '/', 1) as name
  from (
    select resource from dependency
    union
    select resource from dependent
  ) as related
),

missing as (
  select
    c.source,
    c.resource_name,
    place.name,
    place.is_account
  from detect.coverage as c
  cross join lateral detect.coverage_scope(c.source, c.resource_name) as place
  -- What an endpoint's exporter does not expose is no request without a response.
  where
    c.hour = :hour and c.app = any(cast(:apps as text[])) and c.status <> 'complete'
    and not starts_with(c.resource_name, 'metrics of ')
)

select
  source,
  min(resource_name) as resource_name,
  count(distinct resource_name) as resources
from missing as m
where
  m.is_account is null
  or m.name in (select s.name from scope as s where s.is_account = m.is_account)
  or not exists (select from scope as s where s.is_account = m.is_account)
group by source
order by source
