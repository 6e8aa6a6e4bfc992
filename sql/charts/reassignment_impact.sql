/*
title: Bytes left to copy, and bytes copied per hour
unit: GiB
kind: lines
why: "Last 72 hours. A line that does not fall is a stuck reassignment; the bytes copied per hour bound the remaining time from below."
*/
select
  hour as at,
  'left to copy' as series,
  sum(left_bytes) / 1073741824 as value
from inventory.reassignment_hourly
where hour > :hour - interval '72 hours' and hour <= :hour
and cluster = :cluster
group by hour
having sum(left_bytes) is not null
union all
select
  hour as at,
  'copied to broker ' || broker_id || ' in the hour' as series,
  reassignment_bytes_in_per_second * 3600 / 1073741824 as value
from metrics.broker_hourly
where hour > :hour - interval '72 hours' and hour <= :hour
and cluster = :cluster and broker_id is not null
and broker_id in (
  select broker_id from metrics.broker_hourly
  where hour > :hour - interval '72 hours' and hour <= :hour
  and cluster = :cluster and reassignment_bytes_in_per_second > 0
  group by broker_id
  order by sum(reassignment_bytes_in_per_second) desc
  limit 5
)
and reassignment_bytes_in_per_second is not null
order by at, series
