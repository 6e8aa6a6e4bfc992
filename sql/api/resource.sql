-- One resource with the keys of the resources that it depends on (upstream) and of those that depend on it (downstream), as of
-- the newest stored hour: the first ones by key, and how many there are. A cluster has tens of thousands.
select
  r.kind,
  r.key,
  r.name,
  r.cluster,
  r.application,
  r.owner,
  r.seen_hour,
  up.links as upstream,
  up.total as upstream_total,
  down.links as downstream,
  down.total as downstream_total
from detect.resource as r
cross join lateral (
  select
    coalesce(jsonb_agg(jsonb_build_object('key', f.upstream, 'basis', f.basis) order by f.upstream, f.basis), '[]') as links,
    coalesce(max(f.total), 0) as total
  from (
    select l.upstream, l.basis, count(*) over () as total
    from detect.resource_link as l
    where l.downstream = r.key
    order by l.upstream, l.basis
    limit cast(:most as integer)
  ) as f
) as up
cross join lateral (
  select
    coalesce(jsonb_agg(jsonb_build_object('key', f.downstream, 'basis', f.basis) order by f.downstream, f.basis), '[]') as links,
    coalesce(max(f.total), 0) as total
  from (
    select l.downstream, l.basis, count(*) over () as total
    from detect.resource_link as l
    where l.upstream = r.key
    order by l.downstream, l.basis
    limit cast(:most as integer)
  ) as f
) as down
where r.key = cast(:key as text)
