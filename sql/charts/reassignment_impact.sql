/*
title: Log flush latency (p95) of the brokers that take part
unit: ms
kind: lines
why: "Latency that rises when copying begins shows the impact of the reassignment on each broker."
*/
with taking_part as (
  select broker_id
  from metrics.broker_hourly
  where hour > :hour - interval '72 hours' and hour <= :hour
  and cluster = :cluster and broker_id is not null
  group by broker_id
  having max(greatest(reassignment_bytes_in_per_second, reassignment_bytes_out_per_second)) > 0
  order by max(greatest(reassignment_bytes_in_per_second, reassignment_bytes_out_per_second)) desc, broker_id asc
  limit 5
)

select
  hour as at,
  'broker ' || broker_id as series,
  log_flush_p95_ms as value
from metrics.broker_hourly
where hour > :hour - interval '72 hours' and hour <= :hour
and cluster = :cluster and broker_id in (select t.broker_id from taking_part as t)
and log_flush_p95_ms is not null
order by at, series
