/*
title: Which brokers and applications restarted
subject: streams
description: >
  Starts of JVM processes in the look-back, by their reported start time.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  started_at: Start of the process (UTC)
  kind: broker or application
  cluster: Kafka cluster
  name: Broker id, or application
  endpoint: JMX endpoint
  first_seen_hour: First hour with this process (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Processes of brokers and applications, with their start.
process as (
  select
    'broker' as kind,
    b.cluster,
    b.broker_id::text as name,
    b.endpoint,
    b.process_started_at as started_at,
    b.hour
  from newest as n
  inner join metrics.broker_hourly as b on n.hour - :days < b.hour and n.hour >= b.hour
  union all
  select
    'application',
    a.cluster,
    coalesce(a.application_id, a.app),
    a.endpoint,
    a.process_started_at,
    a.hour
  from newest as n
  inner join metrics.jvm_app_hourly as a on n.hour - :days < a.hour and n.hour >= a.hour
)

-- The reported start varies by milliseconds.
select
  date_trunc('second', min(started_at)) as started_at,
  kind,
  cluster,
  name,
  endpoint,
  min(hour) as first_seen_hour
from process
where started_at > (select hour from newest) - :days and (:cluster is null or cluster = :cluster)
group by kind, cluster, name, endpoint, date_trunc('minute', started_at)
order by started_at desc, cluster asc, name asc, endpoint asc
