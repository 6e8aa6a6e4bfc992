-- Sources that didn't answer for some of what these apps asked them for in an hour.
select
  source,
  min(resource_name) as resource_name,
  count(distinct resource_name) as resources
from detect.coverage
where hour = :hour and app = any(cast(:apps as text[])) and status <> 'answered'
group by source
order by source
