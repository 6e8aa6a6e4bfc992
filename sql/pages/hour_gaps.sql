-- Missing data of sources in an hour: equal source, status, and message on one line.
select
  c.app,
  c.source,
  c.status,
  coalesce(c.message, 'no reason given') as message,
  count(*) as resources,
  trim_array(
    array_agg(c.resource_name order by c.resource_name), greatest(cast(count(*) as integer) - cast(:examples as integer), 0)
  ) as examples,
  count(*) over () as total
from detect.coverage as c
where c.hour = :hour and c.status <> 'complete'
group by c.app, c.source, c.status, c.message
order by count(*) desc, c.app asc, c.source asc, c.status asc, message asc
limit cast(:most as integer)
