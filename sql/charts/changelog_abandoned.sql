/*
title: Bytes sent and produced of the application's internal topics
unit: bytes/s
kind: lines
why: "Five weeks, all of its internal topics together: since both lie at 0 nobody has used them."
*/
select
  t.hour as at,
  part.series,
  sum(part.value) as value
from inventory.topic_hourly as i
inner join metrics.topic_hourly as t on i.cluster = t.cluster and i.topic = t.topic
cross join lateral (
  values ('produced', t.bytes_in / t.covered_seconds), ('sent', t.bytes_out / t.covered_seconds)
) as part (series, value)
where i.hour = :hour and i.cluster = :cluster and i.application_id = :application_id
and t.hour > :hour - interval '35 days' and t.hour <= :hour
and t.covered_seconds > 0
group by t.hour, part.series
order by t.hour, part.series
