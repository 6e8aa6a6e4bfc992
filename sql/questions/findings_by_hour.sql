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
)

select
  f.hour,
  f.critical,
  f.warning,
  f.info,
  f.unknown,
  f.detectors_failed
from newest as n
inner join public.findings_by_hour as f on n.hour - :hours < f.hour and n.hour >= f.hour
order by f.hour desc
