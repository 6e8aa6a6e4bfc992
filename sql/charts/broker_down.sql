/*
title: Resource usage before the failure
unit: percent
kind: lines
why: "Last 24 hours, as a share of the limit. What was nearly exhausted in the last hours is the first suspect."
*/
select
  b.hour as at,
  line.series,
  100 * line.value as value
from metrics.broker_hourly as b
left join lateral (
  select max(1 - d.usable_bytes::double precision / nullif(d.total_bytes, 0)) as used
  from metrics.log_dir_hourly as d
  where d.hour = b.hour and d.cluster = b.cluster and d.broker_id = b.broker_id
) as disk on true
cross join lateral (
  values
  ('open files', b.open_file_descriptors / nullif(greatest(b.max_file_descriptors, 0), 0)),
  ('heap', b.heap_used_bytes / nullif(b.heap_max_bytes, 0)),
  ('disk', disk.used)
) as line (series, value)
where b.cluster = :cluster and b.broker_id::text = :broker_id and line.value is not null
and b.hour > :hour - interval '24 hours' and b.hour <= :hour
order by at, series
