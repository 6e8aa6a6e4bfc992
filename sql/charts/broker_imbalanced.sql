/*
title: Bytes in by broker
unit: bytes/s
kind: lines
why: "Over two weeks: a line that leaves the others is a change, lines that lie apart by habit are a standing imbalance."
*/
select
  hour as at,
  'broker ' || coalesce(broker_id::text, endpoint) as series,
  bytes_in_per_second as value
from metrics.broker_hourly
where hour > :hour - interval '14 days' and hour <= :hour
and cluster = :cluster and bytes_in_per_second is not null
order by at, series
