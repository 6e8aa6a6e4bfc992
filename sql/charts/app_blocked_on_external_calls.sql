/*
title: Thread time and CPU time per record
unit: ms
kind: lines
why: "Two days: where the time per record rises and its CPU time does not, threads wait."
*/
with past as (
  select
    hour,
    sum(record_latency_ms * records_processed) filter (where is_reported)
    / sum(records_processed) filter (where is_reported) as record_ms,
    1000 * sum(cpu_seconds) filter (where is_reported) / sum(records_processed) filter (where is_reported) as cpu_ms
  from metrics.jvm_app_hourly
  cross join lateral (select records_processed > 0 and record_latency_ms is not null as is_reported) as report
  where hour > :hour - interval '48 hours' and hour <= :hour
  and cluster = :cluster and application_id = :application_id
  group by hour
)

select
  hour as at,
  'thread time per record' as series,
  record_ms as value
from past
where record_ms is not null
union all
select
  hour,
  'CPU time per record',
  cpu_ms
from past
where cpu_ms is not null
order by at, series
