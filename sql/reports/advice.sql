-- What is in alarm below the severity that opens tickets, in the newest hour of a period that its detector judged.
select
  e.fingerprint, d.title, e.resource, e.severity, e.reason,
  count(*) over () as total
from (
  select detector, max(hour) as hour from detect.judgement
  where status = 'judged' and hour >= cast(:start as timestamptz) and hour < cast(:finish as timestamptz)
  group by detector
) as newest
inner join detect.evaluation as e on newest.detector = e.detector and newest.hour = e.hour
inner join detect.detector as d on e.detector = d.detector
where
  e.status = 'alarm' and (cast(:owner as text) is null or coalesce(e.owner, '') = cast(:owner as text)) and public.severity_rank(e.severity) > public.severity_rank(cast(:least as text))
  and not exists (
    select from tickets.ticket as t
    where
      t.fingerprint = e.fingerprint and t.opened_hour < cast(:finish as timestamptz)
      and (t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz) or t.muted = 'wont_fix')
  )
order by d.title, e.resource
limit cast(:most as integer)
