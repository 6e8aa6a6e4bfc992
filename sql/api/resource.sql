-- One resource with the keys of the resources that it depends on (upstream) and of those that depend on it (downstream).
with link as materialized (  -- the view links the whole fleet: it is read only once
  select
    l.upstream,
    l.downstream,
    l.basis
  from public.resource_link as l
  where cast(:key as text) in (l.upstream, l.downstream)
)

select
  r.kind,
  r.key,
  r.name,
  r.cluster,
  r.application,
  r.owner,
  r.seen_hour,
  coalesce((
    select jsonb_agg(jsonb_build_object('key', l.upstream, 'basis', l.basis) order by l.upstream, l.basis)
    from link as l
    where l.downstream = r.key
  ), '[]') as upstream,
  coalesce((
    select jsonb_agg(jsonb_build_object('key', l.downstream, 'basis', l.basis) order by l.downstream, l.basis)
    from link as l
    where l.upstream = r.key
  ), '[]') as downstream
from public.resource as r
where r.key = cast(:key as text)
