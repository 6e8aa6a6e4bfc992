/*
title: Failed produce requests by error, and records dropped by producers
unit: requests, records
kind: lines
why: "Last 24 hours. Failures over several hours are not leader elections; failures since a release come from its producer."
*/
select
  b.hour as at,
  coalesce(e.error, 'any error') as series,
  sum(coalesce(e.responses::double precision, b.failed_produces)) as value
from metrics.broker_hourly as b
left join lateral jsonb_each_text(b.produce_errors) as e (error, responses) on true
where b.cluster = :cluster
and b.hour > :hour - interval '24 hours' and b.hour <= :hour
group by at, series
having sum(coalesce(e.responses::double precision, b.failed_produces)) > 0
union all
select
  hour as at,
  'dropped by ' || app as series,
  sum(coalesce(record_errors, 0) + coalesce(buffer_exhausted, 0)) as value
from metrics.client_hourly
where cluster = :cluster and kind = 'producer'
and hour > :hour - interval '24 hours' and hour <= :hour
group by at, series
having sum(coalesce(record_errors, 0) + coalesce(buffer_exhausted, 0)) > 0
order by at, series
