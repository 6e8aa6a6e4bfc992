/*
title: Which log directories are fullest
subject: hosts
description: >
  Log directories of brokers by used share in the newest hour, with growth over the look-back.
params:
  days: {type: days, description: Look-back that ends with the newest gathered hour, default: 7}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  broker_id: Broker
  log_dir: Log directory
  total_bytes: Size of the file system
  usable_bytes: Free bytes in the newest hour
  used_ratio: Used share
  grown_bytes_per_day: Growth of the used bytes per day; null if less than a day is known
  days_until_full: Days until it is full at this rate; null if it does not grow
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
),

-- Both ends of the look-back.
ends as (
  select
    d.cluster,
    d.broker_id,
    d.log_dir,
    (array_agg(d.total_bytes order by d.hour desc))[1] as total_bytes,
    (array_agg(d.usable_bytes order by d.hour desc))[1] as usable_bytes,
    (array_agg(d.usable_bytes order by d.hour asc))[1] as usable_bytes_before,
    extract(epoch from max(d.hour) - min(d.hour)) / 86400 as known_days
  from newest as n
  inner join metrics.log_dir_hourly as d on n.hour - :days < d.hour and n.hour >= d.hour
  where d.usable_bytes is not null and (:cluster is null or d.cluster = :cluster)
  group by d.cluster, d.broker_id, d.log_dir
),

-- The growth of the used bytes.
grown as (
  select
    *,
    case when known_days >= 1 then (usable_bytes_before - usable_bytes) / known_days end as grown_bytes_per_day
  from ends
)

select
  cluster,
  broker_id,
  log_dir,
  total_bytes,
  usable_bytes,
  1 - usable_bytes::double precision / nullif(total_bytes, 0) as used_ratio,
  grown_bytes_per_day,
  case when grown_bytes_per_day > 0 then usable_bytes / grown_bytes_per_day end as days_until_full
from grown
order by used_ratio desc nulls last, cluster asc, broker_id asc, log_dir asc
