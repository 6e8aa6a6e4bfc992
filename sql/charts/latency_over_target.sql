/*
title: End-to-end latency by part
unit: seconds
kind: lines
why: "Two days, as evaluated, against the target: the part that rises with the total is the cause."
*/
select
  e.hour as at,
  part.series,
  part.value
from detect.evaluation as e
cross join lateral (
  values
  ('limit Target latency', 'target_seconds'),
  ('total', 'age_mean_seconds'),
  ('in the log', 'in_log_seconds'),
  ('before the log or in fetches', 'before_kafka_seconds'),
  ('in the application', 'in_application_seconds')
) as named (series, metric)
cross join lateral (
  select
    named.series,
    cast(e.metrics ->> named.metric as double precision) as value
) as part
where e.detector = 'latency_over_target'
and e.resource = public.resource_key('application', :cluster, :application_id)
and e.hour > :hour - interval '48 hours' and e.hour <= :hour
and part.value is not null
order by at, series
