/*
title: Bytes in by broker
unit: bytes/s
kind: lines
why: "Last 14 days. A line that leaves the others is a change; lines that are always apart are a permanent imbalance."
*/
select
  hour as at,
  'broker ' || coalesce(broker_id::text, endpoint) as series,
  bytes_in_per_second as value
from metrics.broker_hourly
where hour > :hour - interval '14 days' and hour <= :hour
and cluster = :cluster and bytes_in_per_second is not null
order by at, series
