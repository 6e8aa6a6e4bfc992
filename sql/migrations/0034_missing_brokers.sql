-- Whose replicas a partition lacks.
alter table metrics.partition_hourly
  add column missing_brokers jsonb;  -- Brokers with a replica of it that isn't in sync, a JSON list of ids; null: none, or isr is null
