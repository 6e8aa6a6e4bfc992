-- Missing data of sources in a period: equal source, status, and message on one line. `owner`: only of clusters and
-- accounts in which an owner has resources ('': unassigned), and of sources that belong to neither.
with scope as (
  select distinct
    split_part(e.resource, ':', 1) in ('volume', 'instance', 'machines') as is_account,
    split_part(split_part(e.resource, ':', 2), '/', 1) as name
  from detect.evaluation as e
  where
    e.hour >= cast(:start as timestamptz) and e.hour < cast(:finish as timestamptz)
    and cast(:owner as text) is not null and coalesce(e.owner, '') = cast(:owner as text)
)

select
  c.source, c.status, coalesce(c.message, 'no reason given') as message, count(distinct c.resource_name) as resources,
  count(distinct c.hour) as hours, min(c.resource_name) as example, max(c.hour) as last_hour, count(*) over () as total
from detect.coverage as c
cross join lateral detect.coverage_scope(c.source, c.resource_name) as place
where
  c.hour >= cast(:start as timestamptz) and c.hour < cast(:finish as timestamptz) and c.status <> 'complete'
  and (
    cast(:owner as text) is null or place.is_account is null
    or exists (select from scope as s where s.is_account = place.is_account and s.name = place.name)
  )
group by c.source, c.status, c.message
order by count(*) desc, c.source, c.status asc, message asc
limit cast(:most as integer)
