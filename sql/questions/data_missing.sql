/*
title: Which sources did not respond
subject: coverage
description: >
  Sources and resources with late, failed, or missing responses, and an example of the reason.
params:
  hours: {type: hours, description: Look-back that ends with the newest gathered hour, default: 24}
columns:
  app: Spark app that queried the source
  source: Source
  resource_name: Resource that was queried
  hours_missing: Hours without a full response
  last_missing_hour: Newest of these hours (UTC)
  last_complete_hour: Newest hour with a response in these hours (UTC); null if there is none
  newest_status: late, failed, or missing
  newest_message: Reason in the newest of these hours
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  c.app,
  c.source,
  c.resource_name,
  count(*) filter (where c.status <> 'complete') as hours_missing,
  max(c.hour) filter (where c.status <> 'complete') as last_missing_hour,
  max(c.hour) filter (where c.status = 'complete') as last_complete_hour,
  (array_agg(c.status order by c.hour desc) filter (where c.status <> 'complete'))[1] as newest_status,
  (array_agg(c.message order by c.hour desc) filter (where c.status <> 'complete'))[1] as newest_message
from newest as n
inner join detect.coverage as c on n.hour - :hours < c.hour and n.hour >= c.hour
group by c.app, c.source, c.resource_name
having count(*) filter (where c.status <> 'complete') > 0
order by hours_missing desc, c.app asc, c.source asc, c.resource_name asc
