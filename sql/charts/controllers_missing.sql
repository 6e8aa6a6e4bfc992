/*
title: Active controllers
unit: controllers
kind: lines
why: "Last 24 hours. 0 means that no leader is elected; 1 in only some samples is a controller election."
*/
with reported as (
  select
    hour,
    endpoint,
    min(value) as least_active,
    max(value) as most_active
  from metrics.broker_sample
  where cluster = :cluster and metric = 'active_controllers'
  and hour > :hour - interval '24 hours' and hour <= :hour
  group by hour, endpoint
)

select
  r.hour as at,
  line.series,
  line.value
from (
  select
    hour,
    sum(least_active) as throughout,
    sum(most_active) as at_any_time
  from reported
  group by hour
) as r
left join detect.detector_run as j on j.hour = :hour and j.detector = 'controllers_missing'
cross join lateral (
  values
  ('active in every sample', r.throughout),
  ('active in some sample', r.at_any_time),
  ('limit Expected controllers', (j.params ->> 'expected')::double precision)
) as line (series, value)
where line.value is not null
order by at, series
