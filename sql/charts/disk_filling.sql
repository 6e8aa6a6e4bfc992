/*
title: Used space of log directories and their size
unit: bytes
kind: lines
why: "Last 7 days. Retention causes a sawtooth; a ramp without drops continues until the disk is full."
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
