/*
title: CPU credit balance
unit: credits
kind: lines
why: "Last 7 days. A daily sawtooth is spent and earned back; a line at 0 is an instance at its baseline, or one with surplus credits."
*/
select
  h.hour as at,
  line.series,
  line.value
from metrics.instance_health_hourly as h
cross join lateral (
  values ('balance', h.cpu_credits), ('surplus', nullif(h.cpu_credits_borrowed, 0))
) as line (series, value)
where h.account = :account and h.region = :region and h.instance_id = :instance_id and line.value is not null
and h.hour > :hour - interval '7 days' and h.hour <= :hour
order by at, series
