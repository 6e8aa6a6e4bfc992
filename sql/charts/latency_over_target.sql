/*
title: What records' ages are made of, at the end of their way
unit: seconds
kind: lines
why: "By the hour of two days, as it was judged, against the target: the part that rises with the age is where to look."
*/
select
  e.hour as at,
  part.series,
  part.value
from detect.evaluation as e
cross join lateral (
  values
  ('limit target', 'target_seconds'),
  ('all of it', 'age_mean_seconds'),
  ('in the log', 'in_log_seconds'),
  ('otherwise before it is read', 'before_kafka_seconds'),
  ('in the application', 'inside_seconds')
) as named (series, figure)
cross join lateral (
  select
    named.series,
    cast(e.metrics ->> named.figure as double precision) as value
) as part
where e.detector = 'latency_over_target'
and e.resource = public.resource_key('application', :cluster, :application_id)
and e.hour > :hour - interval '48 hours' and e.hour <= :hour
and part.value is not null
order by at, series
