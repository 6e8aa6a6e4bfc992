/*
title: Uptime of the process
unit: seconds
kind: lines
why: "Two days: uptime that drops to zero again and again is a crash loop."
*/
select
  hour as at,
  'uptime' as series,
  extract(epoch from hour + interval '1 hour' - process_started_at)::double precision as value
from metrics.jvm_app_hourly
where hour > :hour - interval '48 hours' and hour <= :hour
and cluster = :cluster and endpoint = :endpoint and process_started_at <= hour + interval '1 hour'
order by hour
