/*
title: Broker heap after garbage collection
unit: percent
kind: lines
why: "Last 7 days: heap in use after garbage collection, mean and largest minute. A line that rises from day to day is state that is never freed."
*/
select
  b.hour as at,
  line.series,
  line.value
from metrics.msk_broker_hourly as b
cross join lateral (
  values ('mean', b.heap_after_gc_mean_percent), ('largest minute', b.heap_after_gc_max_percent)
) as line (series, value)
where b.cluster = :cluster and b.broker_id::text = :broker_id and line.value is not null
and b.hour > :hour - interval '7 days' and b.hour <= :hour
order by at, series
