-- Brokers in the newest gathered hour: load, latencies, and leading indicators.
create or replace view public.brokers as
select
  cluster,  -- Kafka cluster
  broker_id,  -- Broker id; null: it never responded
  endpoint,  -- Address of its JMX endpoint
  samples,  -- Successful scrapes; null: none
  under_replicated_partitions,  -- Partitions that were under-replicated for the whole hour
  offline_partitions,  -- Offline partitions; controllers only
  log_flush_p95_ms,  -- Log flush time, 95th percentile
  produce_p99_ms,  -- Produce latency, 99th percentile
  fetch_consumer_p99_ms,  -- FetchConsumer latency, 99th percentile
  bytes_in_per_second,  -- Bytes produced per second
  bytes_out_per_second,  -- Bytes fetched by consumers per second
  request_handler_idle_min_ratio,  -- Idle ratio of the request handler threads, minimum of the samples
  partitions,  -- Replicas that it holds
  leaders,  -- Partitions that it leads
  log_bytes,  -- Size of its logs, in bytes
  hour  -- Start of the hour (UTC)
from metrics.broker_hourly
where hour = (select max(hour) from metrics.broker_hourly)
order by cluster, broker_id;
