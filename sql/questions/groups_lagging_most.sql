/*
title: Which groups lagged most, and why
subject: consumers
description: >
  Consumer groups by their largest lag in time, with the newest verdict on each and its accepted root cause.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  group_id: Consumer group
  owner: Owner of the group; null if unassigned
  lag_seconds_max: Largest age of an unread record
  hours_lagging: Hours with a firing lag finding
  newest_message: Newest message of that finding; null if it did not fire
  root_cause: Resource with the accepted cause; null if none was found
  cause_message: Evidence for this cause
  last_firing_hour: Newest firing hour (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- The largest lag of each group. Partitions have the lag in time.
lag as (
  select
    p.cluster,
    p.group_id,
    max(p.lag_seconds) as lag_seconds_max
  from newest as n
  inner join metrics.consumer_partition_hourly as p on n.hour - :days < p.hour and n.hour >= p.hour
  where :cluster is null or p.cluster = :cluster
  group by p.cluster, p.group_id
),

-- Firing hours of the lag detector, and the newest one.
finding as (
  select
    e.resource,
    e.fingerprint,
    max(e.owner) as owner,
    count(*) as hours_lagging,
    max(e.hour) as last_firing_hour,
    (array_agg(e.message order by e.hour desc))[1] as newest_message
  from newest as n
  inner join detect.evaluation as e on n.hour - :days < e.hour and n.hour >= e.hour
  where e.detector = 'consumer_group_lagging' and e.status = 'firing'
  group by e.resource, e.fingerprint
),

-- The newest accepted cause of each finding.
cause as (
  select distinct on (c.effect)
    c.effect,
    c.message,
    e.resource_name
  from newest as n
  inner join detect.cause as c on n.hour - :days < c.hour and n.hour >= c.hour
  inner join detect.evaluation as e on c.cause = e.fingerprint and c.hour = e.hour
  where c.is_accepted
  order by c.effect asc, c.hour desc
)

select
  l.cluster,
  l.group_id,
  coalesce(f.owner, g.owner) as owner,
  l.lag_seconds_max,
  coalesce(f.hours_lagging, 0) as hours_lagging,
  f.newest_message,
  c.resource_name as root_cause,
  c.message as cause_message,
  f.last_firing_hour
from lag as l
left join public.resource as g on public.resource_key('group', l.cluster, l.group_id) = g.key
left join finding as f on public.resource_key('group', l.cluster, l.group_id) = f.resource
left join cause as c on f.fingerprint = c.effect
where l.lag_seconds_max > 0
order by l.lag_seconds_max desc, l.cluster asc, l.group_id asc
