/*
title: Fetch rate of the client and bytes out of the cluster
unit: bytes/s
kind: lines
why: "Per-client fetch rate as brokers report it at each collection run. No committed offset covers these bytes."
*/
with fetched as (
  select
    hour,
    sum(bytes_per_second) as value
  from (
    select
      hour,
      max(value) as bytes_per_second
    from metrics.broker_sample
    where hour > :hour - interval '24 hours' and hour <= :hour
    and cluster = :cluster and metric = 'client_fetch_bytes_per_second' and labels::jsonb ->> 'client' = :client_id
    group by hour, endpoint, labels
  ) as labeled
  group by hour
)

select
  hour as at,
  'client' as series,
  value
from fetched
union all
select
  hour,
  'bytes out',
  sum(bytes_out / nullif(covered_seconds, 0))
from metrics.topic_hourly
where cluster = :cluster
and hour > :hour - interval '24 hours' and hour <= :hour
group by hour
order by at, series
