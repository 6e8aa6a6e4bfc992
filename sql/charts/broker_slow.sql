/*
title: Log flush latency (p95) of the broker and its peers
unit: ms
kind: lines
why: "Last 14 days. A step is a change of this broker or its host, a rhythm is load; what all share has a common cause."
*/
with broker as (
  select
    hour,
    cluster,
    coalesce(broker_id::text, endpoint) as broker_id,
    log_flush_p95_ms,
    log_flush_p999_ms
  from metrics.broker_hourly
  where hour > :hour - interval '14 days' and hour <= :hour
  and cluster = :cluster
)

select
  hour as at,
  'this broker' as series,
  log_flush_p95_ms as value
from broker
where broker_id = :broker_id and log_flush_p95_ms is not null
union all
select
  hour as at,
  'this broker, 99.9th percentile' as series,
  log_flush_p999_ms as value
from broker
where broker_id = :broker_id and log_flush_p999_ms is not null
union all
select
  hour as at,
  'median of its peers' as series,
  percentile_cont(0.5) within group (order by log_flush_p95_ms) as value
from broker
where broker_id <> :broker_id
group by hour
having count(log_flush_p95_ms) > 0
order by at, series
