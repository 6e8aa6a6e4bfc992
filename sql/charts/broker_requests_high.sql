/*
title: Produce requests and produce latency (p99)
unit: multiple of the median
kind: lines
why: "One week by hour, each divided by its median. Latency that rises steeply with the request rate shows a broker beyond its capacity."
*/
with seen as (
  select
    hour,
    produce_requests_per_second as requests,
    produce_p99_ms
  from metrics.broker_hourly
  where cluster = :cluster and coalesce(broker_id::text, endpoint) = :broker_id
  and hour > :hour - interval '7 days' and hour <= :hour
),

usual as (
  select
    percentile_cont(0.5) within group (order by requests) as requests,
    percentile_cont(0.5) within group (order by produce_p99_ms) as produce_p99_ms
  from seen
)

select
  seen.hour as at,
  line.series,
  line.value
from seen
cross join usual
cross join lateral (
  values
  ('produce requests', seen.requests / nullif(usual.requests, 0)),
  ('99th percentile', seen.produce_p99_ms / nullif(usual.produce_p99_ms, 0))
) as line (series, value)
order by at, series
