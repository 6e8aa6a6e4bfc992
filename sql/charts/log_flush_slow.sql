/*
title: Log flush latency against its limit
unit: ms
kind: lines
why: "Last 7 days. Daily peaks are load, a step is a change, a slow rise is a volume that fills or degrades."
*/
select
  b.hour as at,
  line.series,
  line.value
from metrics.broker_hourly as b
left join detect.evaluation as e
  on e.hour = :hour and e.detector = 'log_flush_slow'
  and e.identity ->> 'cluster' = :cluster and e.identity ->> 'broker_id' = :broker_id
cross join lateral (
  values
  ('95th percentile', b.log_flush_p95_ms),
  ('mean', b.log_flush_mean_ms),
  ('limit Limit of its strictest topic', (e.metrics ->> 'limit_ms')::double precision)
) as line (series, value)
where
  b.cluster = :cluster and coalesce(b.broker_id::text, b.endpoint) = :broker_id
  and b.hour > :hour - interval '7 days' and b.hour <= :hour
  and line.value is not null
order by at, series
