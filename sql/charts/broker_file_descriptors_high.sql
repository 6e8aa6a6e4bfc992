/*
title: Open files against their limit, and memory maps
unit: files, maps
kind: lines
why: "Over a week: steps are topics that came, a ramp is what is never closed, a fall is a restart. Maps are two for each segment."
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
  ('limit maximum', nullif(greatest(h.max_file_descriptors, 0), 0))
) as line (series, value)
where line.value is not null
order by at, series
