-- Segments of logs: each takes files, and two memory maps of its broker.
alter table metrics.broker_topic_sample
  add column segments double precision;  -- Segments of its logs there

alter table metrics.broker_hourly
  add column segments double precision,  -- Log segments, all replicas; each has two memory maps (offset and time index)
  add column client_connections double precision;  -- Connections of clients and brokers; null: it tells none by software (before Kafka 2.4)
