/*
title: Active controllers of the cluster
unit: controllers
kind: lines
why: "Over a day: none means that no leader is elected; one in some samples only is an election at that time."
*/
with reported as (
  select
    hour,
    endpoint,
    min(value) as least,
    max(value) as most
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
    sum(least) as throughout,
    sum(most) as at_any_time
  from reported
  group by hour
) as r
left join detect.detector_run as j on j.hour = :hour and j.detector = 'controllers_missing'
cross join lateral (
  values
  ('active in every sample', r.throughout),
  ('active in some sample', r.at_any_time),
  ('limit expected', (j.params ->> 'expected')::double precision)
) as line (series, value)
where line.value is not null
order by at, series
