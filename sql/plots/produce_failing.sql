/*
title: Produce requests that failed, by error
unit: requests
kind: lines
why: "By the hour of a day: what goes on for hours isn't an election; what begins with a release is its producer."
*/
select
  b.hour as at,
  coalesce(e.error, 'of any error') as series,
  sum(coalesce(e.responses::double precision, b.failed_produces)) as value
from metrics.broker_hourly as b
left join lateral jsonb_each_text(b.produce_errors) as e (error, responses) on true
where b.cluster = :cluster
and b.hour > cast(:hour as timestamptz) - interval '24 hours' and b.hour <= cast(:hour as timestamptz)
group by at, series
having sum(coalesce(e.responses::double precision, b.failed_produces)) > 0
order by at, series
