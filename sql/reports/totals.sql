-- Number of findings of a period by outcome, and what was evaluated. Each finding of an alert storm counts separately.
-- `owner`: only findings of one owner; '': unassigned.
with finding as (
  select
    t.severity,
    t.opened_hour >= cast(:start as timestamptz) and t.opened_hour < cast(:finish as timestamptz) as is_new,
    t.opened_hour < cast(:finish as timestamptz)
    and (t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz)) as is_open,
    t.closed_hour >= cast(:start as timestamptz) and t.closed_hour < cast(:finish as timestamptz) as is_closed
  from tickets.ticket as t
  where t.detector <> 'storm' and (cast(:owner as text) is null or coalesce(t.owner, '') = cast(:owner as text))
),

judged as (
  select
    j.hour, sum(j.ok) as ok, sum(j.unknown) as unknown,
    row_number() over (order by j.hour desc) as place
  from detect.detector_run as j
  where j.hour >= cast(:start as timestamptz) and j.hour < cast(:finish as timestamptz) and j.status = 'evaluated'
  group by j.hour
),

-- Resources of the owner in the newest hour.
owned as (
  select
    count(*) filter (where e.status = 'ok') as ok,
    count(*) filter (where e.status = 'unknown') as unknown
  from detect.evaluation as e
  where
    e.hour = (select j.hour from judged as j where j.place = 1)
    and cast(:owner as text) is not null and coalesce(e.owner, '') = cast(:owner as text)
)

select
  (select count(*) from finding where is_open) as open,
  (select count(*) from finding where is_open and severity = 'critical') as open_critical,
  (select count(*) from finding where is_new) as new,
  (select count(*) from finding where is_closed) as closed,
  (select count(*) from judged) as hours_judged,
  (select max(hour) from judged) as newest_hour,
  case when cast(:owner as text) is null then newest.ok when newest.hour is not null then owned.ok end as healthy,
  case when cast(:owner as text) is null then newest.unknown when newest.hour is not null then owned.unknown end as skipped
from owned
left join judged as newest on newest.place = 1
