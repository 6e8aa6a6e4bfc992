-- Open findings, worst first, then newest first, after a finding. Every filter may be null. A resource that was not found in
-- its detector's newest hour is unknown and not current.
with found as (
  select
    f.*,
    case when f.status = 'unseen' then 'unknown' else f.status end as condition,
    f.status <> 'unseen' as is_current,
    split_part(f.resource, ':', 1) as kind,
    e.identity ->> 'cluster' as cluster,
    public.severity_rank(f.severity) as rank,
    coalesce(-extract(epoch from f.since_hour), 0)::double precision as age
  from public.findings_now as f
  inner join detect.evaluation as e
    on f.evaluated_hour = e.hour and f.detector = e.detector and f.fingerprint = e.fingerprint
)

select *
from found as f
where
  (cast(:detector as text) is null or f.detector = cast(:detector as text))
  and (cast(:status as text) is null or f.condition = cast(:status as text))
  and (cast(:severity as text) is null or f.severity = cast(:severity as text))
  and (cast(:owner as text) is null or f.owner = cast(:owner as text))
  and (cast(:cluster as text) is null or f.cluster = cast(:cluster as text))
  and (cast(:kind as text) is null or f.kind = cast(:kind as text))
  and (cast(:resource as text) is null or f.resource = cast(:resource as text))
  and (
    cast(:fingerprint as text) is null
    or (f.rank, f.age, f.fingerprint)
    > (cast(:rank as integer), cast(:age as double precision), cast(:fingerprint as text))
  )
order by f.rank, f.age, f.fingerprint
limit cast(:most as integer)
