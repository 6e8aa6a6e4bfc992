/*
title: Used bytes of the broker's log directories against their size
unit: bytes
kind: lines
why: "Over a week: saw-teeth are retention at work, a ramp without teeth ends at the line."
*/
select
  d.hour as at,
  line.series,
  line.value
from metrics.log_dir_hourly as d
cross join lateral (
  values (d.log_dir, d.total_bytes - d.usable_bytes), ('limit size of ' || d.log_dir, d.total_bytes)
) as line (series, value)
where
  d.cluster = :cluster and d.broker_id::text = :broker_id and line.value is not null
  and d.hour > :hour - interval '7 days' and d.hour <= :hour
order by at, series
