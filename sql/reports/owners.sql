-- Owners of what was open or closed in a period, or has advice; '': unassigned.
select
  coalesce(t.owner, '') as owner,
  count(*) filter (
    where t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz)
  ) as open,
  count(*) filter (
    where
      t.severity = 'critical' and (t.closed_hour is null or t.closed_hour >= cast(:finish as timestamptz))
  ) as open_critical,
  count(*) filter (where t.opened_hour >= cast(:start as timestamptz)) as new,
  count(*) filter (where t.closed_hour < cast(:finish as timestamptz)) as closed
from tickets.ticket as t
where
  t.detector <> 'storm' and t.opened_hour < cast(:finish as timestamptz)
  and (t.closed_hour is null or t.closed_hour >= cast(:start as timestamptz))
group by coalesce(t.owner, '')
order by coalesce(t.owner, '') = '' asc, open desc, owner asc
