-- Metrics of brokers, topics, partitions, and replicas.

-- A broker in an hour. Rates come from counters (exact across restarts), gauges from several samples.
create table metrics.broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer,  -- Broker id; null: it never responded and the config has none
  endpoint text not null,  -- Address of its JMX endpoint
  instance_id text,  -- EC2 instance that it runs on
  process_started_at timestamptz,  -- Start of its JVM (UTC)
  samples integer,  -- Successful scrapes in this run; null: none
  covered_seconds double precision,  -- Time span of the counters behind the rates below, in seconds
  bytes_in_per_second double precision,  -- Bytes produced per second
  bytes_out_per_second double precision,  -- Bytes fetched by consumers per second
  messages_in_per_second double precision,  -- Messages produced per second
  replication_bytes_in_per_second double precision,  -- Bytes replicated in per second
  replication_bytes_out_per_second double precision,  -- Bytes replicated out per second
  log_flushes_per_second double precision,  -- Log flushes per second
  log_flush_mean_ms double precision,  -- Log flush time, mean
  log_flush_p95_ms double precision,  -- Log flush time, 95th percentile, maximum of the samples
  log_flush_p999_ms double precision,  -- Log flush time, 99.9th percentile, maximum of the samples
  produce_mean_ms double precision,  -- Produce total time, mean
  produce_median_ms double precision,  -- Produce total time, median
  produce_p99_ms double precision,  -- Produce total time, 99th percentile
  fetch_consumer_mean_ms double precision,  -- FetchConsumer total time, mean
  fetch_consumer_median_ms double precision,  -- FetchConsumer total time, median
  fetch_consumer_p99_ms double precision,  -- FetchConsumer total time, 99th percentile
  fetch_follower_mean_ms double precision,  -- FetchFollower total time, mean
  fetch_follower_median_ms double precision,  -- FetchFollower total time, median
  fetch_follower_p99_ms double precision,  -- FetchFollower total time, 99th percentile
  request_queue_max double precision,  -- Request queue size, maximum of the samples
  request_handler_idle_min_ratio double precision,  -- Idle ratio of the request handler threads, minimum of the samples
  active_controllers double precision,  -- ActiveControllerCount, maximum of the samples; null: it runs no controller
  under_replicated_partitions double precision,  -- UnderReplicatedPartitions, minimum of the samples: under-replicated for the whole hour
  under_replicated_partitions_max double precision,  -- UnderReplicatedPartitions, maximum of the samples
  under_min_isr_partitions double precision,  -- UnderMinIsrPartitionCount, maximum of the samples
  offline_partitions double precision,  -- OfflinePartitionsCount, maximum of the samples; controllers only
  partitions double precision,  -- PartitionCount: replicas that it holds
  leaders double precision,  -- LeaderCount: partitions that it leads
  log_bytes double precision,  -- Size of its logs, in bytes
  open_file_descriptors double precision,  -- Open file descriptors, maximum of the samples
  max_file_descriptors double precision,  -- Limit of open file descriptors
  cpu_ratio double precision,  -- CPU of the process as a share of the host's CPU, mean
  heap_used_bytes double precision,  -- Heap in use, maximum of the samples
  heap_max_bytes double precision,  -- Heap limit
  produce_requests_per_second double precision,  -- Produce requests per second
  fetch_consumer_requests_per_second double precision,  -- FetchConsumer requests per second
  fetch_follower_requests_per_second double precision,  -- FetchFollower requests per second
  failed_produces double precision,  -- Partitions of produce requests that failed in covered_seconds, without the errors that are expected during leader elections
  produce_errors jsonb,  -- Produce responses with an error in covered_seconds, by error: {error: responses}; null: not reported
  dead_cleaner_threads double precision,  -- Dead threads of the log cleaner, maximum of the samples
  uncleanable_partitions double precision,  -- Partitions that the log cleaner marked as uncleanable, all log directories, maximum of the samples
  uncleanable_bytes double precision,  -- Cleanable bytes of these partitions, maximum of the samples
  cleaner_last_run_seconds double precision,  -- Time since the last run of the log cleaner, maximum of the samples
  reassigning_partitions double precision,  -- Partitions with a reassignment in progress that it leads, maximum of the samples
  reassignment_bytes_in_per_second double precision,  -- Bytes that it copies for reassignments, per second
  reassignment_bytes_out_per_second double precision,  -- Bytes that other brokers copy from it for reassignments, per second
  unclean_elections double precision,  -- Unclean leader elections that it counted in covered_seconds. In KRaft each controller counts all of them, with ZooKeeper only the active one; null: not a controller, or not reported (KRaft before Kafka 3.9)
  segments double precision,  -- Log segments of all replicas; each has two memory maps (offset index and time index)
  client_connections double precision,  -- Connections of clients and brokers; null: not reported by client software (before Kafka 2.4)
  remote_fetch_bytes_per_second double precision,  -- Bytes per second that it read from tiered storage, a part of bytes out; null: not exposed, or no tiered storage
  primary key (hour, cluster, endpoint)
) partition by range (hour);

-- JMX readings of brokers under Streamwarden's metric names (spark_apps/sources/jmx_metrics.py). Counters are stored as read.
create table metrics.broker_sample (
  hour timestamptz not null,  -- Hour that it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  endpoint text not null,  -- Address of the JMX endpoint, without credentials
  metric text not null,  -- Streamwarden's name of the metric, with its unit
  labels text not null,  -- Labels of the metric: JSON object with sorted keys, {} for the whole JVM
  at timestamptz not null,  -- When it was read (UTC)
  kind text not null,  -- counter, gauge or percentile
  value double precision,  -- Reading; null: the JVM returned NaN or null
  process_started_at timestamptz,  -- Start of the JVM (UTC): counters began at 0 then
  primary key (hour, cluster, endpoint, metric, labels, at)
) partition by range (hour);

-- A topic on a broker in an hour: increases of the broker's counters, and their last readings, from which the next hour continues.
create table metrics.broker_topic_sample (
  hour timestamptz not null,  -- Hour that it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  endpoint text not null,  -- Address of the broker's JMX endpoint, without credentials
  topic text not null,  -- Topic
  at timestamptz not null,  -- When it was last read (UTC)
  bytes_in double precision,  -- Bytes produced in broker_hourly.covered_seconds; null: not known
  bytes_out double precision,  -- Bytes fetched by consumers in broker_hourly.covered_seconds
  messages_in double precision,  -- Messages produced in broker_hourly.covered_seconds
  bytes_in_total double precision,  -- Counter of bytes produced, as last read
  bytes_out_total double precision,  -- Counter of bytes fetched by consumers, as last read
  messages_in_total double precision,  -- Counter of messages produced, as last read
  log_bytes double precision,  -- Size of its logs on that broker, in bytes
  failed_produces double precision,  -- Partitions of produce requests that failed in broker_hourly.covered_seconds
  bytes_rejected double precision,  -- Bytes of batches rejected as too large in that time
  failed_produces_total double precision,  -- Counter of failed produce requests, as last read
  bytes_rejected_total double precision,  -- Counter of rejected bytes, as last read
  fetch_requests double precision,  -- Fetches of the topic's partitions by consumers and followers in broker_hourly.covered_seconds
  produce_requests double precision,  -- Produces to the topic's partitions in that time; a request for several partitions counts once for each
  fetch_requests_total double precision,  -- Counter of partition fetches, as last read
  produce_requests_total double precision,  -- Counter of partition produces, as last read
  segments double precision,  -- Segments of its logs on that broker
  remote_fetch_bytes double precision,  -- Bytes read from tiered storage in broker_hourly.covered_seconds; null: not exposed, or no tiered storage
  remote_fetch_bytes_total double precision,  -- Counter of bytes read from tiered storage, as last read
  primary key (hour, cluster, endpoint, topic)
) partition by range (hour);

-- Log directories of brokers, by DescribeLogDirs.
create table metrics.log_dir_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker id
  log_dir text not null,  -- Path of the log directory
  total_bytes bigint,  -- Size of its volume; null: the directory is offline, or the broker is older than Kafka 3.3
  usable_bytes bigint,  -- Usable bytes of its volume
  replicas integer,  -- Replicas in it; null: the directory is offline
  log_bytes bigint,  -- Size of these replicas, in bytes
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, cluster, broker_id, log_dir)
) partition by range (hour);

-- What CloudWatch exposes of a broker of Amazon MSK in addition to what other tables have.
create table metrics.msk_broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker id
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- Id of its instance
  monitoring_level text,  -- Enhanced monitoring level
  kind text,  -- standard or express
  minutes_present integer,  -- Minutes with any metric; null: none
  heap_after_gc_mean_percent double precision,  -- HeapMemoryAfterGC, mean: heap in use after a collection
  heap_after_gc_max_percent double precision,  -- The same, largest minute
  heap_after_gc_min_percent double precision,  -- The same, least minute
  memory_used_mean_bytes double precision,  -- MemoryUsed, mean; without buffers and page cache
  memory_cached_mean_bytes double precision,  -- MemoryCached, mean: page cache
  memory_free_min_bytes double precision,  -- MemoryFree, least minute
  swap_used_max_bytes double precision,  -- SwapUsed, largest minute
  swap_used_last_bytes double precision,  -- SwapUsed, last minute
  io_wait_mean_percent double precision,  -- CpuIoWait, mean
  data_disk_used_percent double precision,  -- KafkaDataLogsDiskUsed, last minute
  app_log_disk_used_max_percent double precision,  -- KafkaAppLogsDiskUsed, largest minute
  root_disk_used_max_percent double precision,  -- RootDiskUsed, largest minute
  traffic_shaping_packets double precision,  -- TrafficShaping: packets queued or dropped beyond the network allowances
  minutes_shaped integer,  -- Minutes with such packets
  bandwidth_in_exceeded_packets double precision,  -- BwInAllowanceExceeded; null: needs PER_BROKER
  bandwidth_out_exceeded_packets double precision,  -- BwOutAllowanceExceeded
  packet_rate_exceeded_packets double precision,  -- PpsAllowanceExceeded
  connections_exceeded_packets double precision,  -- ConnTrackAllowanceExceeded
  produce_throttle_max_ms double precision,  -- ProduceThrottleTime, largest minute
  fetch_throttle_max_ms double precision,  -- FetchThrottleTime, largest minute
  primary key (hour, cluster, broker_id)
) partition by range (hour);

-- A partition's log in an hour.
create table metrics.partition_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  leader integer,  -- Broker id of the leader; null: two metadata requests returned none
  replicas integer,  -- Replicas
  isr integer,  -- In-sync replicas
  log_start_offset bigint,  -- Log-start offset when it was queried
  log_end_offset bigint,  -- Log-end offset when it was queried
  log_end_offset_first bigint,  -- Log-end offset at the start of the hour
  log_end_offset_last bigint,  -- Log-end offset at the end of the hour, or when it was queried if that was earlier
  last_stable_offset bigint,  -- Last stable offset when it was queried: no transaction is open below it
  offsets_at timestamptz,  -- When the offsets were queried (UTC); null: no response
  missing_brokers jsonb,  -- Brokers whose replica is not in sync, a JSON list of ids; null: none, or isr is null
  leader_error text,  -- Kafka's error code where the metadata has no leader; LISTENER_NOT_FOUND: the leader does not have the listener that was used; null: there is a leader
  primary key (hour, cluster, topic, partition)
) partition by range (hour);

-- Replicas of a topic in a log directory: their number and sizes. The view replicas has one row per replica.
create table metrics.replica_sample (
  hour timestamptz not null,  -- Hour that it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  broker_id integer not null,  -- Broker id
  log_dir text not null,  -- Log directory on that broker
  is_future boolean not null,  -- Future replicas: they are being moved here from another log directory of the broker
  size_bytes bigint not null,  -- Size of their logs, in bytes
  replicas integer not null,  -- Replicas of the topic in that directory
  partition_bytes jsonb not null,  -- Size of each replica's log: {partition: bytes}
  partition_lags jsonb not null,  -- Lag of each replica behind the high watermark (future replicas: behind the current one), where there is any: {partition: records}
  primary key (hour, cluster, topic, broker_id, log_dir, is_future)
) partition by range (hour);

-- A topic in an hour, summed over the brokers, from JMX counters.
create table metrics.topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  brokers integer not null,  -- Number of brokers that reported it; 0: from Confluent Cloud's Metrics API
  covered_seconds double precision,  -- Time span of the counters, in seconds: the longest of its brokers
  counted_from timestamptz,  -- Start of the counted time span (UTC)
  counted_to timestamptz,  -- End of the counted time span (UTC)
  bytes_in double precision,  -- Bytes produced in covered_seconds; a broker that counted for a shorter time is extrapolated at its rate
  bytes_out double precision,  -- Bytes fetched by consumers in covered_seconds, likewise
  messages_in double precision,  -- Messages produced in covered_seconds, likewise
  log_bytes double precision,  -- Size of its logs, all replicas, in bytes
  failed_produces double precision,  -- Partitions of produce requests that failed, likewise
  bytes_rejected double precision,  -- Bytes of batches rejected as too large, likewise
  fetch_requests double precision,  -- Fetches of its partitions by consumers and followers, likewise: a fetch request counts once for each partition of its session
  produce_requests double precision,  -- Produces to its partitions, likewise: a request for several partitions counts once for each
  remote_fetch_bytes double precision,  -- Bytes of bytes_out that were read from tiered storage rather than from a disk, likewise; null: not exposed, or no tiered storage
  primary key (hour, cluster, topic)
) partition by range (hour);
