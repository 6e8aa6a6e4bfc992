/*
title: What a record takes of a stream thread, and the CPU that it costs
unit: ms
kind: lines
why: "By the hour of two days: where the time rises and the CPU does not, a record waits."
*/
with past as (
  select
    hour,
    sum(record_latency_ms * records_processed) filter (where is_told)
    / sum(records_processed) filter (where is_told) as record_ms,
    1000 * sum(cpu_seconds) filter (where is_told) / sum(records_processed) filter (where is_told) as cpu_ms
  from metrics.jvm_app_hourly
  cross join lateral (select records_processed > 0 and record_latency_ms is not null as is_told) as told
  where hour > :hour - interval '48 hours' and hour <= :hour
  and cluster = :cluster and application_id = :application_id
  group by hour
)

select
  hour as at,
  'time of a record' as series,
  record_ms as value
from past
where record_ms is not null
union all
select
  hour,
  'CPU of the process for it',
  cpu_ms
from past
where cpu_ms is not null
order by at, series
