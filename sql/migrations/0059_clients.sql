-- What applications' Kafka clients say of themselves.
create table metrics.client_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster of its application
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX agent
  kind text not null,  -- producer or consumer
  client_id text not null,  -- Client id
  covered_seconds double precision,  -- Time that the counts are of; null: read once only
  records double precision,  -- Records that it sent or read in covered_seconds
  bytes double precision,  -- Bytes of these: a producer's as they are sent, a consumer's uncompressed
  record_errors double precision,  -- Of a producer: records that it gave up in covered_seconds
  buffer_exhausted double precision,  -- Of a producer: records that it didn't take, as its buffer had no room within max.block.ms; null for a producer that doesn't count them
  requests double precision,  -- Of a producer: requests of every kind in covered_seconds
  batch_mean_bytes double precision,  -- Of a producer: size of a batch as it is sent, mean; null: it sent none lately
  queue_mean_ms double precision,  -- Of a producer: time that a batch waited until it was sent, mean
  queue_max_ms double precision,  -- The same, longest
  compression_ratio double precision,  -- Of a producer: what compression leaves of a batch, mean; 1: not compressed
  throttle_mean_ms double precision,  -- Time by which brokers' quotas delayed a request, mean
  fetches double precision,  -- Of a consumer: fetch requests in covered_seconds
  network_in_bytes double precision,  -- Of a consumer: bytes of all answers in covered_seconds, as they are on the wire
  poll_gap_max_ms double precision,  -- Of a consumer: longest time between two polls
  primary key (hour, cluster, endpoint, kind, client_id)
) partition by range (hour);
comment on table metrics.client_hourly is
'An hour of a Kafka client in an application''s JVM, by its own metrics: producers, and consumers with those that restore state.';

create table metrics.client_topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster of its application
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX agent
  kind text not null,  -- producer or consumer
  client_id text not null,  -- Client id
  topic text not null,  -- Topic; consumers before Kafka 4.1 write _ for each of its dots
  covered_seconds double precision not null,  -- Time that the counts are of
  records double precision not null,  -- Records that it sent or read in covered_seconds
  bytes double precision,  -- Bytes of these: a producer's as they are sent, a consumer's uncompressed
  record_errors double precision,  -- Of a producer: records of the topic that it gave up
  primary key (hour, cluster, endpoint, kind, client_id, topic)
) partition by range (hour);
comment on table metrics.client_topic_hourly is
'An hour of a Kafka client on one topic, by its own metrics: the 100 topics of a client with most bytes, of those on which records went, or were given up.';
