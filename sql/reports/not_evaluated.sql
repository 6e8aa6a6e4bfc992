-- What was not evaluated in a period: detectors that were blocked or failed, and resources that the newest run of each
-- detector could not evaluate. `owner`: only resources of one owner, and detectors of such resources; '': unassigned.
with newest as (
  select j.detector, max(j.hour) as hour
  from detect.detector_run as j
  where j.hour >= cast(:start as timestamptz) and j.hour < cast(:finish as timestamptz) and j.status = 'evaluated'
  group by j.detector
),

skipped as (
  select e.detector, count(*) as resources, min(e.resource_name) as example, min(e.message) as message
  from newest as n
  inner join detect.evaluation as e on n.detector = e.detector and n.hour = e.hour and e.status = 'unknown'
  where (cast(:owner as text) is null or coalesce(e.owner, '') = cast(:owner as text))
  group by e.detector
)

select coalesce(d.title, j.detector) as rule, count(*) as hours, null as resources, j.message
from detect.detector_run as j
left join detect.detector as d on j.detector = d.detector
where j.hour >= cast(:start as timestamptz) and j.hour < cast(:finish as timestamptz) and j.status <> 'evaluated'
  and (
    cast(:owner as text) is null or exists (
      select from detect.evaluation as e
      where
        e.detector = j.detector and coalesce(e.owner, '') = cast(:owner as text)
        and e.hour >= cast(:start as timestamptz) - interval '7 days' and e.hour < cast(:finish as timestamptz)
    )
  )
group by coalesce(d.title, j.detector), j.message
union all
select coalesce(d.title, s.detector), null, s.resources, format('%s, for example: %s', s.example, s.message)
from skipped as s
left join detect.detector as d on s.detector = d.detector
order by hours desc nulls last, resources desc nulls last, rule asc
limit cast(:most as integer)
