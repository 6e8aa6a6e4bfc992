/*
title: How many findings fired in each hour
subject: findings
description: >
  Firing findings by hour and severity, and those that were not evaluated.
params:
  hours: {type: hours, description: Look-back that ends with the newest gathered hour, default: 48}
columns:
  hour: Start of the hour (UTC)
  critical: Critical findings
  warning: Warnings
  info: Information
  unknown: Findings that were not evaluated because data is missing
  detectors_failed: Detectors that failed or were blocked
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Findings by severity.
finding as (
  select
    e.hour,
    count(*) filter (where e.status = 'firing' and e.severity = 'critical') as critical,
    count(*) filter (where e.status = 'firing' and e.severity = 'warning') as warning,
    count(*) filter (where e.status = 'firing' and e.severity = 'info') as info,
    count(*) filter (where e.status = 'unknown' and not e.is_not_applicable) as unknown
  from newest as n
  inner join detect.evaluation as e on n.hour - :hours < e.hour and n.hour >= e.hour
  group by e.hour
),

-- Hours with a run, also those without findings.
run as (
  select
    r.hour,
    count(*) filter (where r.status <> 'evaluated') as detectors_failed
  from newest as n
  inner join detect.detector_run as r on n.hour - :hours < r.hour and n.hour >= r.hour
  group by r.hour
)

select
  r.hour,
  coalesce(f.critical, 0) as critical,
  coalesce(f.warning, 0) as warning,
  coalesce(f.info, 0) as info,
  coalesce(f.unknown, 0) as unknown,
  r.detectors_failed
from run as r
left join finding as f on r.hour = f.hour
order by r.hour desc
