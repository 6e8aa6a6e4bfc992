-- What sources didn't answer in a period: the same source, status and reason on one line.
select
  c.source, c.status, coalesce(c.reason, 'no reason given') as reason, count(distinct c.resource) as resources,
  count(distinct c.hour) as hours, min(c.resource) as example, max(c.hour) as last_hour, count(*) over () as total
from detect.coverage as c
where
  c.hour >= cast(:start as timestamptz) and c.hour < cast(:finish as timestamptz) and c.status <> 'answered'
group by c.source, c.status, c.reason
order by count(*) desc, c.source, c.status asc, reason asc
limit cast(:most as integer)
