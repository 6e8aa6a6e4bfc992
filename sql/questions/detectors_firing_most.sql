/*
title: Which detectors fire most
subject: findings
description: >
  Detectors by firing hours, with reports of false positives.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
columns:
  detector: Detector id
  title: Title
  firing_hours: Hours with a firing finding, sum of the resources
  resources: Resources with a firing finding
  unknown_hours: Hours that were not evaluated because data is missing, sum of the resources
  false_positives: Reports of a false positive in these days
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Evaluations by detector.
evaluation as (
  select
    e.detector,
    count(*) filter (where e.status = 'firing') as firing_hours,
    count(distinct e.fingerprint) filter (where e.status = 'firing') as resources,
    count(*) filter (where e.status = 'unknown' and not e.is_not_applicable) as unknown_hours
  from newest as n
  inner join detect.evaluation as e on n.hour - :days < e.hour and n.hour >= e.hour
  group by e.detector
),

-- Reports by detector.
report as (
  select
    r.detector,
    count(*) as false_positives
  from newest as n
  inner join tickets.response as r on n.hour - :days < r.said_at
  where r.verb = 'false_positive'
  group by r.detector
)

select
  d.detector,
  d.title,
  coalesce(e.firing_hours, 0) as firing_hours,
  coalesce(e.resources, 0) as resources,
  coalesce(e.unknown_hours, 0) as unknown_hours,
  coalesce(r.false_positives, 0) as false_positives
from detect.detector as d
left join evaluation as e on d.detector = e.detector
left join report as r on d.detector = r.detector
order by firing_hours desc, unknown_hours desc, d.detector asc
