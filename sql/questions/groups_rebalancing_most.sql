/*
title: Which groups rebalance most
subject: consumers
description: >
  Consumer groups by rebalances, with members that left or joined.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  group_id: Consumer group
  owner: Owner; null if unassigned
  rebalances: Rebalances; null if __consumer_offsets could not be read
  hours_with_rebalances: Hours with at least one
  most_in_an_hour: Most rebalances in one hour
  members: Members in the newest hour
  last_rebalance_hour: Newest hour with a rebalance (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Rebalances of each group.
counted as (
  select
    g.cluster,
    g.group_id,
    sum(g.rebalances) as rebalances,
    count(*) filter (where g.rebalances > 0) as hours_with_rebalances,
    max(g.rebalances) as most_in_an_hour,
    (array_agg(g.members order by g.hour desc))[1] as members,
    max(g.hour) filter (where g.rebalances > 0) as last_rebalance_hour
  from newest as n
  inner join metrics.consumer_group_hourly as g on n.hour - :days < g.hour and n.hour >= g.hour
  where :cluster is null or g.cluster = :cluster
  group by g.cluster, g.group_id
)

select
  c.cluster,
  c.group_id,
  r.owner,
  c.rebalances,
  c.hours_with_rebalances,
  c.most_in_an_hour,
  c.members,
  c.last_rebalance_hour
from counted as c
left join public.resource as r on public.resource_key('group', c.cluster, c.group_id) = r.key
where c.rebalances > 0
order by c.rebalances desc, c.cluster asc, c.group_id asc
