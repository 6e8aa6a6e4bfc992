-- Resources that contain all words, in any order, in name, key, kind, owner, or application: those with firing findings
-- first, then those with the first word in their name. Every filter may be null.
with firing as (
  select
    resource,
    (array_agg(severity order by public.severity_rank(severity)))[1] as severity
  from public.findings_now
  where status = 'firing' and muted is null
  group by resource
)

select
  r.key,
  r.kind,
  r.name,
  r.owner,
  r.application,
  r.seen_hour,
  f.severity,
  count(*) over () as total
from detect.resource as r
left join firing as f on r.key = f.resource
where
  (cast(:kind as text) is null or r.kind = :kind)
  and not exists (
    select from unnest(cast(:words as text[])) as word
    where position(word in r.search_text) = 0
  )
order by
  public.severity_rank(f.severity) asc nulls last,
  position(cast(:first_word as text) in lower(r.name)) = 0 asc,
  length(r.name) asc, r.name asc, r.key asc
limit cast(:most as integer) offset cast(:skip as integer)
