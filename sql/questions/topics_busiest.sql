/*
title: Which topics carry most traffic
subject: topics
description: >
  Topics by bytes produced and fetched per second, mean of the covered time.
params:
  hours: {type: hours, description: Look-back that ends with the newest gathered hour, default: 24}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  topic: Topic
  owner: Owner; null if unassigned
  bytes_in_per_second: Bytes produced per second
  bytes_out_per_second: Bytes fetched by consumers per second
  fan_out_ratio: Bytes fetched for each byte produced
  newest_log_bytes: Size of the logs in the newest hour, all replicas
  hours: Hours with JMX data
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Traffic of each topic over the hours with data.
traffic as (
  select
    t.cluster,
    t.topic,
    sum(t.bytes_in) / nullif(sum(t.covered_seconds) filter (where t.bytes_in is not null), 0) as bytes_in_per_second,
    sum(t.bytes_out) / nullif(sum(t.covered_seconds) filter (where t.bytes_out is not null), 0) as bytes_out_per_second,
    sum(t.bytes_out) / nullif(sum(t.bytes_in), 0) as fan_out_ratio,
    (array_agg(t.log_bytes order by t.hour desc))[1] as newest_log_bytes,
    count(t.bytes_in) as hours
  from newest as n
  inner join metrics.topic_hourly as t on n.hour - :hours < t.hour and n.hour >= t.hour
  where :cluster is null or t.cluster = :cluster
  group by t.cluster, t.topic
)

select
  t.cluster,
  t.topic,
  r.owner,
  t.bytes_in_per_second,
  t.bytes_out_per_second,
  t.fan_out_ratio,
  t.newest_log_bytes,
  t.hours
from traffic as t
left join public.resource as r on public.resource_key('topic', t.cluster, t.topic) = r.key
order by
  coalesce(t.bytes_in_per_second, 0) + coalesce(t.bytes_out_per_second, 0) desc, t.cluster asc, t.topic asc
