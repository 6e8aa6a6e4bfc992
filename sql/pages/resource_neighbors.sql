-- Resources that a resource depends on (upstream) and that depend on it (downstream), with their worst severity now: the
-- worst ones of each kind, and how many there are. Five links lead from a volume to the groups that its brokers serve.
with recursive upstream as (
  select cast(:key as text) as key, 0 as depth
  union
  select l.upstream, w.depth + 1
  from upstream as w
  inner join detect.resource_link as l on w.key = l.downstream
  where w.depth < 5 and public.leads_along(l.basis)
),

downstream as (
  select cast(:key as text) as key, 0 as depth
  union
  select l.downstream, w.depth + 1
  from downstream as w
  inner join detect.resource_link as l on w.key = l.upstream
  where w.depth < 5 and public.leads_along(l.basis)
),

walk as (
  select 'upstream' as direction, key, depth from upstream
  union all
  select 'downstream', key, depth from downstream
),

reached as (
  select direction, key, min(depth) as depth
  from walk
  where key <> cast(:key as text)
  group by direction, key
),

firing as (
  select
    resource,
    (array_agg(severity order by public.severity_rank(severity)))[1] as severity
  from public.findings_now
  where status = 'firing' and muted is null
  group by resource
),

ranked as (
  select
    r.direction,
    r.key,
    r.depth,
    split_part(r.key, ':', 1) as kind,
    f.severity,
    count(*) over of_kind as total,
    count(f.severity) over of_kind as total_firing,
    row_number() over (
      partition by r.direction, split_part(r.key, ':', 1)
      order by public.severity_rank(f.severity) asc nulls last, r.depth asc, r.key asc
    ) as place
  from reached as r
  left join firing as f on r.key = f.resource
  window of_kind as (partition by r.direction, split_part(r.key, ':', 1))
)

select * from ranked
where place <= cast(:most as integer)
order by direction desc, depth asc, kind asc, place asc
