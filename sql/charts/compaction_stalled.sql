/*
title: Log size by topic
unit: bytes
kind: lines
why: "Compacted and overdue topics of this broker, by hour. Compaction shows as a sawtooth; a steady ramp is a log that is not cleaned."
*/
with overdue as (
  select distinct topic
  from public.partitions_overdue(:hour, 24)
  where cluster = :cluster and broker_id::text = :broker_id
),

largest as (
  select
    s.topic,
    row_number() over (order by o.topic is null, s.log_bytes desc, s.topic asc) as place
  from metrics.broker_topic_sample as s
  inner join metrics.broker_hourly as b on s.hour = b.hour and s.cluster = b.cluster and s.endpoint = b.endpoint
  inner join inventory.topic_hourly as t on s.hour = t.hour and s.cluster = t.cluster and s.topic = t.topic
  left join overdue as o on s.topic = o.topic
  where s.hour = :hour and s.cluster = :cluster
  and coalesce(b.broker_id::text, b.endpoint) = :broker_id
  and (t.cleanup_policy like '%compact%' or o.topic is not null)
)

select
  s.hour as at,
  s.topic as series,
  s.log_bytes as value
from metrics.broker_topic_sample as s
inner join metrics.broker_hourly as b on s.hour = b.hour and s.cluster = b.cluster and s.endpoint = b.endpoint
inner join largest as l on s.topic = l.topic and l.place <= 5
where s.cluster = :cluster and coalesce(b.broker_id::text, b.endpoint) = :broker_id and s.log_bytes is not null
and s.hour > :hour - interval '3 days' and s.hour <= :hour
order by at, series
