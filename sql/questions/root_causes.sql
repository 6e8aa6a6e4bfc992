/*
title: What caused most downstream effects
subject: findings
description: >
  Accepted root causes with the number of findings that followed from each.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
columns:
  resource_name: Resource with the root cause
  detector: Detector of the root cause
  owner: Owner of the resource; null if unassigned
  effects: Findings with it as accepted cause
  hours: Hours with such an effect
  example_effect: Resource of one of the effects
  last_hour: Newest of these hours (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  e.resource_name,
  e.detector,
  e.owner,
  count(distinct c.effect) as effects,
  count(distinct c.hour) as hours,
  min(f.resource_name) as example_effect,
  max(c.hour) as last_hour
from newest as n
inner join detect.cause as c on n.hour - :days < c.hour and n.hour >= c.hour
inner join detect.evaluation as e on c.cause = e.fingerprint and c.hour = e.hour
inner join detect.evaluation as f on c.effect = f.fingerprint and c.hour = f.hour
where c.is_accepted
group by e.resource_name, e.detector, e.owner
order by effects desc, hours desc, e.resource_name asc, e.detector asc
