/*
title: Open file descriptors against their limit, and memory maps
unit: files, maps
kind: lines
why: "Last 7 days. A step is new topics, a steady rise is a leak, a drop is a restart. Each segment takes two maps."
*/
with broker as (
  select *
  from metrics.broker_hourly
  where hour = :hour and cluster = :cluster and coalesce(broker_id::text, endpoint) = :broker_id
)

select
  h.hour as at,
  line.series,
  line.value
from broker as b
inner join metrics.broker_hourly as h
  on b.cluster = h.cluster and b.endpoint = h.endpoint
  and b.hour - interval '7 days' < h.hour and b.hour >= h.hour
cross join lateral (
  values
  ('open files', h.open_file_descriptors),
  ('memory maps', 2 * h.segments),
  ('limit Limit of open files', nullif(greatest(h.max_file_descriptors, 0), 0))
) as line (series, value)
where line.value is not null
order by at, series
