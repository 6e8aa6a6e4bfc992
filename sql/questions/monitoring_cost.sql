/*
title: What the CloudWatch queries cost
subject: cost
description: >
  CloudWatch API calls of Streamwarden by account and region.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 30}
columns:
  account: AWS account id
  region: AWS region
  hours: Hours with queries
  calls: API calls
  metrics: Requested metrics; AWS charges per metric
  metrics_per_hour: Requested metrics per hour
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  c.account,
  c.region,
  count(*) as hours,
  sum(c.calls) as calls,
  sum(c.metrics_requested) as metrics,
  sum(c.metrics_requested) / count(*)::double precision as metrics_per_hour
from newest as n
inner join metrics.cloudwatch_cost_hourly as c on n.hour - :days < c.hour and n.hour >= c.hour
group by c.account, c.region
order by metrics desc, c.account asc, c.region asc
