/*
title: Age of the process when it was asked
unit: seconds
kind: lines
why: "Two days: a line that rises is a process that lives, one that falls back each hour is one that is started again and again."
*/
select
  hour as at,
  'age' as series,
  extract(epoch from hour + interval '1 hour' - process_started_at)::double precision as value
from metrics.jvm_app_hourly
where hour > :hour - interval '48 hours' and hour <= :hour
and cluster = :cluster and endpoint = :endpoint and process_started_at <= hour + interval '1 hour'
order by hour
