/*
title: What the client fetches, and what all topics send
unit: bytes/s
kind: lines
why: "By the brokers' consumed figures in the seconds before each run asked: no group's commits tell what this client reads."
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
  'the client' as series,
  value
from fetched
union all
select
  hour,
  'sent to consumers',
  sum(bytes_out / nullif(covered_seconds, 0))
from metrics.topic_hourly
where cluster = :cluster
and hour > :hour - interval '24 hours' and hour <= :hour
group by hour
order by at, series
