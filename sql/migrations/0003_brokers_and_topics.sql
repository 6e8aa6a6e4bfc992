-- Metrics of brokers, topics, partitions, and replicas.

-- An hour of a broker. Rates come from counters (exact through restarts), gauges from several samples.
create table metrics.broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer,  -- Broker id; null: it never answered and the config doesn't say
  endpoint text not null,  -- Address of its JMX agent
  instance_id text,  -- EC2 instance it runs on
  process_started_at timestamptz,  -- Start of its JVM
  samples integer,  -- Times it answered in this run; null: never
  covered_seconds double precision,  -- Seconds that the counts behind the rates below cover
  bytes_in_per_second double precision,  -- Bytes produced per second
  bytes_out_per_second double precision,  -- Bytes fetched by consumers per second
  messages_in_per_second double precision,  -- Messages produced per second
  replication_bytes_in_per_second double precision,  -- Bytes replicated in per second
  replication_bytes_out_per_second double precision,  -- Bytes replicated out per second
  log_flushes_per_second double precision,  -- Log flushes per second
  log_flush_mean_ms double precision,  -- Log flush time, mean
  log_flush_p95_ms double precision,  -- Log flush time, 95th percentile (largest sample)
  log_flush_p999_ms double precision,  -- Log flush time, 99.9th percentile (largest sample)
  produce_mean_ms double precision,  -- Produce total time, mean
  produce_median_ms double precision,  -- Produce total time, median
  produce_p99_ms double precision,  -- Produce total time, 99th percentile
  fetch_consumer_mean_ms double precision,  -- FetchConsumer total time, mean
  fetch_consumer_median_ms double precision,  -- FetchConsumer total time, median
  fetch_consumer_p99_ms double precision,  -- FetchConsumer total time, 99th percentile
  fetch_follower_mean_ms double precision,  -- FetchFollower total time, mean
  fetch_follower_median_ms double precision,  -- FetchFollower total time, median
  fetch_follower_p99_ms double precision,  -- FetchFollower total time, 99th percentile
  request_queue_max double precision,  -- Requests waiting, largest sample
  request_handler_idle_min_ratio double precision,  -- Idle share of the request handlers, least sample
  active_controllers double precision,  -- ActiveControllerCount, largest sample; null where it runs no controller
  under_replicated_partitions double precision,  -- UnderReplicatedPartitions, least sample: what lasted
  under_replicated_partitions_max double precision,  -- The same, largest sample
  under_min_isr_partitions double precision,  -- UnderMinIsrPartitionCount, largest sample
  offline_partitions double precision,  -- OfflinePartitionsCount, largest sample; controllers only
  partitions double precision,  -- Partitions it holds
  leaders double precision,  -- Partitions it leads
  log_bytes double precision,  -- Size of its logs
  open_file_descriptors double precision,  -- Open files, largest sample
  max_file_descriptors double precision,  -- Limit of open files
  cpu_ratio double precision,  -- CPU of the process as a share of the machine, mean
  heap_used_bytes double precision,  -- Heap in use, largest sample
  heap_max_bytes double precision,  -- Heap limit
  produce_requests_per_second double precision,  -- Produce requests per second
  fetch_consumer_requests_per_second double precision,  -- FetchConsumer requests per second
  fetch_follower_requests_per_second double precision,  -- FetchFollower requests per second
  failed_produces double precision,  -- Partitions of produce requests that failed in covered_seconds for no reason that is usual in an election
  produce_errors jsonb,  -- Produce responses in covered_seconds by their error, those without left out: {error: responses}; null: it doesn't tell
  dead_cleaner_threads double precision,  -- Threads of the log cleaner that are dead, largest sample
  uncleanable_partitions double precision,  -- Partitions that the log cleaner gave up, all directories, largest sample
  uncleanable_bytes double precision,  -- Bytes of their logs that are to be compacted, largest sample
  cleaner_last_run_seconds double precision,  -- Since the log cleaner looked for work last, largest sample
  reassigning_partitions double precision,  -- Partitions that it leads and that are being reassigned, maximum of the samples
  reassignment_bytes_in_per_second double precision,  -- Bytes that it copies for reassignments
  reassignment_bytes_out_per_second double precision,  -- Bytes that others copy from it for reassignments
  unclean_elections double precision,  -- Unclean elections of leaders that it counted in covered_seconds: each controller of KRaft counts all, of ZooKeeper's the active one; null: it is none, or doesn't tell (KRaft before Kafka 3.9)
  segments double precision,  -- Log segments, all replicas; each has two memory maps (offset and time index)
  client_connections double precision,  -- Connections of clients and brokers; null: it tells none by software (before Kafka 2.4)
  primary key (hour, cluster, endpoint)
) partition by range (hour);

-- JMX readings of brokers by our metric names (spark_apps/sources/jmx_catalog.py). Counters are kept as they are read.
create table metrics.broker_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  endpoint text not null,  -- Address of the JVM's agent, without credentials
  metric text not null,  -- Our name of the metric, with its unit
  labels text not null,  -- What it is of: JSON object with sorted keys, {} for the whole JVM
  at timestamptz not null,  -- When it was read (UTC)
  kind text not null,  -- counter, gauge or percentile
  value double precision,  -- Reading; null: the JVM said NaN or null
  process_started_at timestamptz,  -- Start of the JVM: a counter began at 0 then
  primary key (hour, cluster, endpoint, metric, labels, at)
) partition by range (hour);

-- A topic on a broker in an hour: what the broker counted of it, and its last reading, from which the next hour counts on.
create table metrics.broker_topic_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  endpoint text not null,  -- Address of the broker's agent, without credentials
  topic text not null,  -- Topic
  at timestamptz not null,  -- When it was last read (UTC)
  bytes_in double precision,  -- Bytes produced in the time that broker_hourly.covered_seconds says; null: can't be said
  bytes_out double precision,  -- Bytes fetched by consumers in that time
  messages_in double precision,  -- Messages produced in that time
  bytes_in_total double precision,  -- Counter of bytes produced, as last read
  bytes_out_total double precision,  -- Counter of bytes fetched by consumers, as last read
  messages_in_total double precision,  -- Counter of messages produced, as last read
  log_bytes double precision,  -- Size of its logs there
  failed_produces double precision,  -- The same of the topic, in the time that broker_hourly.covered_seconds says
  bytes_rejected double precision,  -- Bytes of batches that were refused as too large, in that time
  failed_produces_total double precision,  -- Counter of produces that failed, as last read
  bytes_rejected_total double precision,  -- Counter of bytes refused, as last read
  fetch_requests double precision,  -- Reads of the topic's partitions, by consumers and followers, in the time that broker_hourly.covered_seconds says
  produce_requests double precision,  -- Writes to the topic's partitions in that time; a request for several counts for each
  fetch_requests_total double precision,  -- Counter of reads of partitions, as last read
  produce_requests_total double precision,  -- Counter of writes to partitions, as last read
  segments double precision,  -- Segments of its logs there
  primary key (hour, cluster, endpoint, topic)
) partition by range (hour);

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
) partition by range (hour);

-- What CloudWatch exposes of a broker of Amazon MSK beside what other tables have.
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

-- An hour of a partition's log.
create table metrics.partition_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  leader integer,  -- Leader's broker id; null: at two looks the metadata named none
  replicas integer,  -- Replicas
  isr integer,  -- In-sync replicas
  log_start_offset bigint,  -- Log-start offset when it was asked
  log_end_offset bigint,  -- Log-end offset when it was asked
  log_end_offset_first bigint,  -- Log-end offset at the start of the hour
  log_end_offset_last bigint,  -- Log-end offset at the end of the hour (when it was asked, where that is earlier)
  last_stable_offset bigint,  -- Last stable offset when it was asked: below it no transaction is open
  offsets_at timestamptz,  -- When the offsets were asked; null: they weren't answered
  missing_brokers jsonb,  -- Brokers with a replica of it that isn't in sync, a JSON list of ids; null: none, or isr is null
  leader_error text,  -- Why the metadata name no leader, by Kafka's name for it; LISTENER_NOT_FOUND: there is one, without the listener that was asked; null: a leader is named
  primary key (hour, cluster, topic, partition)
) partition by range (hour);

-- Replicas of a topic in a directory of a broker: how many, and how large they are. One by one in the view replicas.
create table metrics.replica_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  broker_id integer not null,  -- Broker that holds it
  log_dir text not null,  -- Directory on that broker
  is_future boolean not null,  -- They move here from another directory of the broker and aren't whole yet
  size_bytes bigint not null,  -- Size of their logs
  replicas integer not null,  -- Replicas of the topic there
  partition_bytes jsonb not null,  -- Size of each one's log: {partition: bytes}
  partition_lags jsonb not null,  -- Records that they lack of the high watermark (future ones: of the present one), where any: {partition: records}
  primary key (hour, cluster, topic, broker_id, log_dir, is_future)
) partition by range (hour);

-- An hour of a topic, summed over the brokers: what JMX counted.
create table metrics.topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  brokers integer not null,  -- Brokers that reported it
  covered_seconds double precision,  -- Seconds that the counts cover: the longest that one of its brokers counted
  counted_from timestamptz,  -- Start of the time the counts cover
  counted_to timestamptz,  -- End of that time
  bytes_in double precision,  -- Bytes produced in that time; what a broker counted for less is taken to have gone on at its rate
  bytes_out double precision,  -- Bytes fetched by consumers in that time, likewise
  messages_in double precision,  -- Messages produced in that time, likewise
  log_bytes double precision,  -- Size of its logs, all replicas
  failed_produces double precision,  -- Partitions of produce requests that failed, likewise
  bytes_rejected double precision,  -- Bytes of batches that were refused as too large, likewise
  fetch_requests double precision,  -- Reads of its partitions, by consumers and followers, likewise: a fetch reads each partition of its session
  produce_requests double precision,  -- Writes to its partitions, likewise: a request for several counts for each
  primary key (hour, cluster, topic)
) partition by range (hour);
