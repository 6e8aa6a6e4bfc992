/*
title: Produce request rate and produce latency (p99)
unit: of its median
kind: lines
why: "Both per hour of the last week, divided by their medians: where latency rises faster than the request rate, the broker is above its capacity."
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

median_of_week as (
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
cross join median_of_week
cross join lateral (
  values
  ('produce request rate', seen.requests / nullif(median_of_week.requests, 0)),
  ('produce latency (p99)', seen.produce_p99_ms / nullif(median_of_week.produce_p99_ms, 0))
) as line (series, value)
order by at, series
