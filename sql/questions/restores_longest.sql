/*
title: Which processes restored state longest
subject: streams
description: >
  Kafka Streams processes that restored state stores: hours with restoring, and the most records left. Samples show that a
  process restores, not for how many minutes.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  application_id: Kafka Streams application id
  endpoint: JMX endpoint of the process
  owner: Owner of the application; null if unassigned
  hours_restoring: Hours in which it restored state
  first_hour: First of these hours (UTC)
  last_hour: Last of these hours (UTC)
  most_records_left: Largest number of records left to restore
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Hours in which each process restored state.
restoring as (
  select r.*
  from newest as n
  cross join lateral public.processes_restoring(n.hour - :days + interval '1 hour', n.hour) as r
  where :cluster is null or r.cluster = :cluster
)

select
  r.cluster,
  r.application_id,
  r.endpoint,
  a.owner,
  count(distinct r.hour) as hours_restoring,
  min(r.hour) as first_hour,
  max(r.hour) as last_hour,
  max(j.records_to_restore) as most_records_left
from restoring as r
inner join metrics.jvm_app_hourly as j using (hour, cluster, endpoint)
left join public.resource as a on public.resource_key('application', r.cluster, r.application_id) = a.key
group by r.cluster, r.application_id, r.endpoint, a.owner
order by hours_restoring desc, most_records_left desc, r.cluster asc, r.endpoint asc
