-- Directories in which a broker keeps its logs, by DescribeLogDirs.
create table metrics.log_dir_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker's id
  log_dir text not null,  -- The directory
  total_bytes bigint,  -- Size of its volume; null: it is offline, or its broker is older than Kafka 3.3
  usable_bytes bigint,  -- Bytes that are free on it
  replicas integer,  -- Replicas that lie in it; null: it is offline
  log_bytes bigint,  -- Their size
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, cluster, broker_id, log_dir)
);

-- Replicas of partitions: where they lie and how large they are.
create table metrics.replica_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  broker_id integer not null,  -- Broker that holds it
  log_dir text not null,  -- Directory on that broker
  is_future boolean not null,  -- It moves here from another directory of the broker and isn't whole yet
  size_bytes bigint not null,  -- Size of its log
  offset_lag bigint not null,  -- Records that it lacks of the high watermark; of a future replica, of the present one
  primary key (hour, cluster, topic, partition, broker_id, log_dir)
) partition by range (hour);
