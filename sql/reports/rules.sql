-- Tickets of each detector in a period: how many it opened, how many were closed and how long those were open, how many
-- are still open. Each finding of an alert storm counts separately. `owner`: only those of one owner; '': unassigned.
select
  coalesce(d.title, t.detector) as title,
  count(*) filter (where t.opened_hour >= cast(:start as timestamptz)) as new,
  count(*) filter (where t.closed_hour < cast(:finish as timestamptz)) as closed,
  count(*) filter (where t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz)) as open,
  extract(epoch from percentile_disc(0.5) within group (order by t.closed_hour - t.opened_hour) filter (
    where t.closed_hour < cast(:finish as timestamptz)
  )) as median_open_seconds,
  count(*) over () as total
from tickets.ticket as t
left join detect.detector as d using (detector)
where
  t.detector <> 'storm' and t.opened_hour < cast(:finish as timestamptz)
  and (t.closed_hour is null or t.closed_hour >= cast(:start as timestamptz))
  and (cast(:owner as text) is null or coalesce(t.owner, '') = cast(:owner as text))
group by coalesce(d.title, t.detector)
order by count(*) desc, coalesce(d.title, t.detector) asc
limit cast(:most as integer)
