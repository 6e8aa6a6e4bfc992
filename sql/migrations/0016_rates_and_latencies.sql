-- What stream threads do in an hour, the memory that a process really has, and how many requests a broker answers.
alter table metrics.jvm_app_hourly
  add column resident_bytes double precision,  -- Resident memory (RSS), largest sample; only exporters of Prometheus' client library tell it
  add column poll_latency_max_ms double precision,  -- Longest poll of a stream thread, largest sample
  add column process_latency_mean_ms double precision,  -- Time to process a record, mean of the slowest stream thread, largest sample
  add column process_latency_max_ms double precision,  -- Time to process a record, longest, largest sample
  add column records_processed double precision,  -- Records processed in covered_seconds, all stream threads
  add column records_dropped double precision,  -- Records dropped in covered_seconds (late, null key, or not readable), all tasks
  add column records_to_restore double precision;  -- Records that its tasks have yet to restore, largest sample

alter table metrics.broker_hourly
  add column produce_requests_per_second double precision,  -- Produce requests per second
  add column fetch_consumer_requests_per_second double precision,  -- FetchConsumer requests per second
  add column fetch_follower_requests_per_second double precision;  -- FetchFollower requests per second
