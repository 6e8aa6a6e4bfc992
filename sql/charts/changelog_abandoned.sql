/*
title: Bytes in and out of the application's internal topics
unit: bytes/s
kind: lines
why: "Five weeks, all internal topics together: unused since both are 0."
*/
select
  t.hour as at,
  part.series,
  sum(part.value) as value
from inventory.topic_hourly as i
inner join metrics.topic_hourly as t on i.cluster = t.cluster and i.topic = t.topic
cross join lateral (
  values ('bytes in', t.bytes_in / t.covered_seconds), ('bytes out', t.bytes_out / t.covered_seconds)
) as part (series, value)
where i.hour = :hour and i.cluster = :cluster and i.application_id = :application_id
and t.hour > :hour - interval '35 days' and t.hour <= :hour
and t.covered_seconds > 0
group by t.hour, part.series
order by t.hour, part.series
