/*
title: Throttle settings and replicas being added
unit: count
kind: lines
why: "Throttle settings that stay when no replicas are being added are leftover."
*/
with broker as (
  select
    hour,
    count(*) filter (where throttles <> '{}') as rated_brokers,
    sum(adding_replicas) as adding_replicas
  from inventory.broker_hourly
  where hour > :hour - interval '72 hours' and hour <= :hour and cluster = :cluster
  group by hour
),

topic as (
  select
    hour,
    count(*) filter (
      where leader_throttled_replicas is not null or follower_throttled_replicas is not null
    ) as throttled_topics
  from inventory.topic_hourly
  where hour > :hour - interval '72 hours' and hour <= :hour and cluster = :cluster
  group by hour
)

select
  b.hour as at,
  part.series,
  part.value
from broker as b
left join topic as t on b.hour = t.hour
cross join lateral (
  values
  ('replicas being added', b.adding_replicas),
  ('brokers with a rate', b.rated_brokers),
  ('topics with throttled replicas', t.throttled_topics)
) as part (series, value)
where part.value is not null
order by at, series
