-- Missing data of sources in a period: equal source, status, and message on one line.
select
  c.source, c.status, coalesce(c.message, 'no reason given') as message, count(distinct c.resource_name) as resources,
  count(distinct c.hour) as hours, min(c.resource_name) as example, max(c.hour) as last_hour, count(*) over () as total
from detect.coverage as c
where
  c.hour >= cast(:start as timestamptz) and c.hour < cast(:finish as timestamptz) and c.status <> 'answered'
group by c.source, c.status, c.message
order by count(*) desc, c.source, c.status asc, message asc
limit cast(:most as integer)
