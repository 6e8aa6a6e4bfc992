-- What a Kafka Streams client says of itself: also where it doesn't tell its threads.
alter table metrics.jvm_app_hourly
  add column streams_state text;  -- State of its Kafka Streams client when it told it last, of several the worst: CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR or ERROR; null: not told
