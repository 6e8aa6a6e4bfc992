/*
title: Which owners have the most findings
subject: findings
description: >
  Firing findings by owner: how many, how many hours, and which detector fires most.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
columns:
  owner: Owner of the resource; null if unassigned
  findings: Different findings that fired
  critical_findings: Of these, findings that were critical
  firing_hours: Hours with a firing finding, sum of the findings
  resources: Resources with a firing finding
  top_detector: Detector with the most firing hours
  open_findings: Findings that are open now
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Firing hours of each finding.
firing as (
  select
    e.owner,
    e.fingerprint,
    e.detector,
    e.resource,
    count(*) as firing_hours,
    bool_or(e.severity = 'critical') as was_critical
  from newest as n
  inner join detect.evaluation as e on n.hour - :days < e.hour and n.hour >= e.hour
  where e.status = 'firing'
  group by e.owner, e.fingerprint, e.detector, e.resource
)

select
  f.owner,
  count(distinct f.fingerprint) as findings,
  count(distinct f.fingerprint) filter (where f.was_critical) as critical_findings,
  sum(f.firing_hours) as firing_hours,
  count(distinct f.resource) as resources,
  (array_agg(f.detector order by f.firing_hours desc, f.detector asc))[1] as top_detector,
  count(distinct o.fingerprint) as open_findings
from firing as f
left join detect.open_finding as o on f.fingerprint = o.fingerprint and not o.is_ok
group by f.owner
order by firing_hours desc, f.owner asc
