-- Brokers in the newest gathered hour: load, latencies and the leading indicators of trouble.
create or replace view public.brokers as
select
  cluster,  -- Kafka cluster
  broker_id,  -- Broker id; null: it never answered
  endpoint,  -- Address of its JMX agent
  samples,  -- Times it answered; null: never
  under_replicated_partitions,  -- Under-replicated partitions that lasted
  offline_partitions,  -- Offline partitions; controllers only
  log_flush_p95_ms,  -- Log flush time, 95th percentile
  produce_p99_ms,  -- Produce, 99th percentile
  fetch_consumer_p99_ms,  -- Fetch by consumers, 99th percentile
  bytes_in_per_second,  -- Bytes produced per second
  bytes_out_per_second,  -- Bytes fetched by consumers per second
  request_handler_idle_min_ratio,  -- Idle share of the request handlers, least sample
  partitions,  -- Partitions it holds
  leaders,  -- Partitions it leads
  log_bytes,  -- Size of its logs
  hour  -- The hour (UTC)
from metrics.broker_hourly
where hour = (select max(hour) from metrics.broker_hourly)
order by cluster, broker_id;
