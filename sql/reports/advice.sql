-- Firing findings below the severity that opens tickets, in the newest hour of a period that their detector evaluated.
select
  e.fingerprint, d.title, e.resource_name, e.severity, e.message,
  count(*) over () as total
from (
  select detector, max(hour) as hour from detect.detector_run
  where status = 'evaluated' and hour >= cast(:start as timestamptz) and hour < cast(:finish as timestamptz)
  group by detector
) as newest
inner join detect.evaluation as e on newest.detector = e.detector and newest.hour = e.hour
inner join detect.detector as d on e.detector = d.detector
where
  e.status = 'firing' and (cast(:owner as text) is null or coalesce(e.owner, '') = cast(:owner as text)) and public.severity_rank(e.severity) > public.severity_rank(cast(:least as text))
  and not exists (
    select from tickets.ticket as t
    where
      t.fingerprint = e.fingerprint and t.opened_hour < cast(:finish as timestamptz)
      and (t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz) or t.muted = 'wont_fix')
  )
order by d.title, e.resource_name
limit cast(:most as integer)
