/*
title: Bytes left to copy, and bytes copied per hour
unit: GiB
kind: lines
why: "A reassignment whose bytes left do not fall is stuck. The bytes copied per hour show how long the rest takes at least."
*/
select
  hour as at,
  'left' as series,
  sum(left_bytes) / 1073741824 as value
from inventory.reassignment_hourly
where hour > :hour - interval '72 hours' and hour <= :hour
and cluster = :cluster
group by hour
having sum(left_bytes) is not null
union all
select
  hour as at,
  'copied to broker ' || broker_id || ' per hour' as series,
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
