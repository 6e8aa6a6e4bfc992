-- What was measured: samples (partitioned by day) and hourly facts.
create schema metrics;
comment on schema metrics is 'What was measured: samples, partitioned by day, and hourly facts.';
create schema staging;
comment on schema staging is 'Where Spark tasks put rows before the hour is replaced in one transaction. Empty between runs.';

-- CloudWatch AWS/EBS, one row per volume and period. A metric that CloudWatch doesn't have is null, never 0.
create table metrics.volume_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Length of the period
  read_ops double precision,  -- VolumeReadOps: operations in the period
  write_ops double precision,  -- VolumeWriteOps: operations in the period
  read_bytes double precision,  -- VolumeReadBytes: bytes in the period
  write_bytes double precision,  -- VolumeWriteBytes: bytes in the period
  read_seconds double precision,  -- VolumeTotalReadTime: seconds spent by all reads
  write_seconds double precision,  -- VolumeTotalWriteTime: seconds spent by all writes
  idle_seconds double precision,  -- VolumeIdleTime: seconds without any operation
  queue_length double precision,  -- VolumeQueueLength: operations waiting, average
  burst_balance_percent double precision,  -- BurstBalance, average; null: no bucket, or not attached
  iops_exceeded double precision,  -- VolumeIOPSExceededCheck: 1 when the volume's IOPS were exceeded
  throughput_exceeded double precision,  -- VolumeThroughputExceededCheck: 1 when its throughput was exceeded
  stalled double precision,  -- VolumeStalledIOCheck: 1 when I/O stalled
  primary key (account, region, volume_id, at)
) partition by range (at);

-- An hour of a volume: its load, its limits and its bucket. Made from volume_sample and the inventory.
create table metrics.volume_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  known_until timestamptz not null,  -- End of what CloudWatch had settled when it was read
  minutes_expected integer not null,  -- Minutes of the hour that could be known when it was read
  minutes_present integer,  -- Minutes for which operations are known; null: CloudWatch didn't answer
  minutes_balance integer,  -- Minutes for which BurstBalance is known; null: CloudWatch didn't answer
  iops_mean double precision,  -- Operations per second, mean
  iops_p95 double precision,  -- 95th percentile of the minutes
  iops_p99 double precision,  -- 99th percentile of the minutes
  iops_max double precision,  -- Largest minute
  iops_now double precision,  -- Mean of the last 15 minutes known
  busy_iops_p95 double precision,  -- 95th percentile of ops / (period - idle time): what micro-bursts really ask
  bytes_per_second_mean double precision,  -- Bytes per second, mean
  bytes_per_second_p95 double precision,  -- 95th percentile of the minutes
  bytes_per_second_p99 double precision,  -- 99th percentile of the minutes
  bytes_per_second_max double precision,  -- Largest minute
  bytes_per_second_now double precision,  -- Mean of the last 15 minutes known
  read_bytes double precision,  -- Bytes read in the hour
  write_bytes double precision,  -- Bytes written in the hour
  queue_length_mean double precision,  -- Operations waiting, mean
  queue_length_max double precision,  -- Operations waiting, largest minute
  read_latency_ms double precision,  -- Mean time of a read
  write_latency_ms double precision,  -- Mean time of a write
  baseline_iops double precision,  -- IOPS the volume sustains for ever
  burst_iops double precision,  -- IOPS it reaches with credits (the maximum where there is no bucket)
  baseline_bytes_per_second double precision,  -- Bytes per second it sustains for ever
  burst_bytes_per_second double precision,  -- Bytes per second it reaches with credits
  bucket_credits double precision,  -- Credits of a full bucket: operations for gp2, bytes for st1 and sc1; null: no bucket
  burst_balance_min_percent double precision,  -- Lowest BurstBalance of the hour
  burst_balance_last_percent double precision,  -- Last BurstBalance of the hour
  modelled_balance_last_percent double precision,  -- The same by our own model of the bucket, from operations alone
  credits_per_hour double precision,  -- Credits won per hour at the load of the last 15 minutes (negative: the bucket empties)
  hours_to_exhaustion double precision,  -- Hours until the bucket is empty at that load, 0 when it is; null: it doesn't empty
  hours_to_exhaustion_low double precision,  -- The same at the 90th percentile of the hour's minutes
  hours_to_exhaustion_high double precision,  -- The same at their 10th percentile, where that empties the bucket too
  minutes_empty integer,  -- Minutes with a bucket of at most 1 %
  minutes_at_iops_limit integer,  -- Minutes in which the volume's IOPS bound
  minutes_at_throughput_limit integer,  -- Minutes in which the volume's throughput bound
  minutes_at_instance_limit integer,  -- Minutes in which the instance's EBS limits bound
  minutes_stalled integer,  -- Minutes with stalled I/O
  minutes_throttled integer,  -- Minutes in which any of these limits bound
  throttled_since timestamptz,  -- Since when it has been throttled without a pause of 10 minutes; null: it isn't
  demand_iops_p95 double precision,  -- 95th percentile of what it did; of volumes held back over the last day as well
  demand_iops_p99 double precision,  -- 99th percentile of the same
  demand_bytes_per_second_p95 double precision,  -- 95th percentile of bytes per second, likewise
  demand_bytes_per_second_p99 double precision,  -- 99th percentile of the same
  demand_hours double precision,  -- Hours behind these four figures
  read_baseline_bytes_per_second double precision,  -- Usual read rate at this hour of the week (median); brokers' volumes
  read_baseline_mad_bytes_per_second double precision,  -- Median absolute deviation of the same
  read_baseline_hours integer,  -- Hours of history behind the baseline
  read_baseline_kind text,  -- hour_of_week, or all_hours while there is too little history
  primary key (hour, account, region, volume_id)
);

-- What an hour's reading of CloudWatch cost.
create table metrics.cloudwatch_cost_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  calls integer not null,  -- GetMetricData requests, with those that were repeated
  metrics_asked integer not null,  -- Metrics asked, which AWS bills
  primary key (hour, account, region)
);

-- CloudWatch AWS/EC2 and CWAgent, one row per instance and period.
create table metrics.instance_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Length of the period
  cpu_percent double precision,  -- CPUUtilization
  memory_used_percent double precision,  -- CWAgent mem_used_percent
  disk_used_percent double precision,  -- CWAgent disk_used_percent, fullest file system
  ebs_io_balance_percent double precision,  -- EBSIOBalance%: the instance's own I/O credits
  ebs_byte_balance_percent double precision,  -- EBSByteBalance%: the instance's own throughput credits
  ebs_iops_exceeded double precision,  -- InstanceEBSIOPSExceededCheck: 1 when the instance's IOPS bound
  ebs_throughput_exceeded double precision,  -- InstanceEBSThroughputExceededCheck: 1 when its throughput bound
  primary key (account, region, instance_id, at)
) partition by range (at);

-- An hour of an instance.
create table metrics.instance_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  minutes_expected integer not null,  -- Minutes of the hour that could be known when it was read
  minutes_present integer,  -- Minutes for which CPU is known; null: CloudWatch didn't answer
  cpu_mean_percent double precision,  -- CPU, mean
  cpu_max_percent double precision,  -- CPU, largest minute
  memory_used_mean_percent double precision,  -- System memory in use, mean
  memory_used_max_percent double precision,  -- System memory in use, largest minute
  disk_used_max_percent double precision,  -- Fullest file system
  ebs_io_balance_min_percent double precision,  -- Lowest EBSIOBalance%
  ebs_byte_balance_min_percent double precision,  -- Lowest EBSByteBalance%
  minutes_ebs_limited integer,  -- Minutes in which the instance's EBS limits bound
  primary key (hour, account, region, instance_id)
);

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

-- JMX readings of applications by our metric names (spark_apps/sources/jmx_catalog.py). Counters are kept as they are read.
create table metrics.jvm_app_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster it works on
  app text not null,  -- Application
  endpoint text not null,  -- Address of the JVM's agent, without credentials
  metric text not null,  -- Our name of the metric, with its unit
  labels text not null,  -- What it is of: JSON object with sorted keys, {} for the whole JVM
  at timestamptz not null,  -- When it was read (UTC)
  kind text not null,  -- counter, gauge or percentile
  value double precision,  -- Reading; null: the JVM said NaN or null
  process_started_at timestamptz,  -- Start of the JVM: a counter began at 0 then
  primary key (hour, cluster, endpoint, metric, labels, at)
) partition by range (hour);

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
  primary key (hour, cluster, endpoint)
);

-- An hour of a topic, summed over the brokers: what JMX counted.
create table metrics.topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  brokers integer not null,  -- Brokers that reported it
  covered_seconds double precision,  -- Seconds of the hour that the counts cover (the least of its brokers)
  counted_from timestamptz,  -- Start of the time the counts cover
  counted_to timestamptz,  -- End of that time
  bytes_in double precision,  -- Bytes produced in that time
  bytes_out double precision,  -- Bytes fetched by consumers in that time
  messages_in double precision,  -- Messages produced in that time
  log_bytes double precision,  -- Size of its logs, all replicas
  primary key (hour, cluster, topic)
);

-- An hour of a partition's log.
create table metrics.partition_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  leader integer,  -- Leader's broker id; null: leaderless
  replicas integer,  -- Replicas
  isr integer,  -- In-sync replicas
  log_start_offset bigint,  -- Log-start offset when it was asked
  log_end_offset bigint,  -- Log-end offset when it was asked
  log_end_offset_first bigint,  -- Log-end offset at the start of the hour
  log_end_offset_last bigint,  -- Log-end offset at the end of the hour (when it was asked, where that is earlier)
  last_stable_offset bigint,  -- Last stable offset when it was asked: below it no transaction is open
  offsets_at timestamptz,  -- When the offsets were asked; null: they weren't answered
  primary key (hour, cluster, topic, partition)
);

-- An hour of a group on a partition: its commits and its lag. No row: the group never committed there.
create table metrics.consumer_partition_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  committed_offset bigint,  -- Committed offset (the newest known at the end of the hour)
  committed_at timestamptz,  -- When it was committed; null: before what __consumer_offsets still tells
  log_end_offset bigint,  -- Log-end offset at the same time, asked after the commit; null: unknown, or the topic is gone
  lag_records bigint,  -- Log-end less committed, floor 0
  lag_seconds double precision,  -- Age of the first uncommitted record; 0 without lag; null: unknown
  commits integer,  -- Commits in the hour; null: history couldn't be read
  records_consumed bigint,  -- Progress of the committed offset in the hour (rewinds don't count back)
  consumed_seconds double precision,  -- Seconds between the first and the last commit behind records_consumed
  moved_at timestamptz,  -- When the committed offset last moved; null: not since 15 minutes before the hour
  rewinds integer,  -- Commits below their predecessor
  status text,  -- ok, warn, stop, stall or rewind (field.md §3); null: can't be said
  lag_slope_per_second double precision,  -- Least-squares slope of the lag over the hour's commits
  client_id text,  -- client.id of the member that owns the partition
  host text,  -- Host of that member
  primary key (hour, cluster, group_id, topic, partition)
);

-- An hour of a consumer group.
create table metrics.consumer_group_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  state text,  -- State when it was asked
  members integer,  -- Members when it was asked
  topics integer not null,  -- Topics with commits
  partitions integer not null,  -- Partitions with commits
  lag_records bigint,  -- Sum over the partitions whose lag is known
  lag_records_max bigint,  -- Worst partition
  lag_seconds_max double precision,  -- Worst partition
  lag_unknown_partitions integer not null,  -- Partitions whose lag isn't known
  commits integer,  -- Commits in the hour; null: history couldn't be read
  records_consumed bigint,  -- Progress of the committed offsets in the hour
  rebalances integer,  -- Generation steps in the hour; null: history couldn't be read
  status text,  -- Worst status of its partitions
  worst_topic text,  -- Topic of the worst partition
  worst_partition integer,  -- The worst partition
  primary key (hour, cluster, group_id)
);

-- An hour of a JVM application's process: its memory.
create table metrics.jvm_app_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster it works on
  app text not null,  -- Application
  endpoint text not null,  -- Address of its JMX agent
  instance_id text,  -- EC2 instance it runs on
  application_id text,  -- Streams application id; null: not a Streams application
  process_started_at timestamptz,  -- Start of the JVM
  samples integer,  -- Times it answered in this run; null: never
  memory_limit_bytes double precision,  -- Container limit as configured, else what the JVM sees as physical memory
  heap_max_bytes double precision,  -- Heap limit (-Xmx)
  heap_used_bytes double precision,  -- Heap in use, mean of the samples
  heap_used_after_gc_bytes double precision,  -- Heap in use after the last collection (old generation where it has one)
  non_heap_used_bytes double precision,  -- Metaspace, code cache and the like
  direct_bytes double precision,  -- Direct buffers (mapped files are page cache)
  threads double precision,  -- Threads, largest sample
  thread_stack_bytes double precision,  -- Threads times the default stack size, 1 MiB
  gc_seconds double precision,  -- Time in garbage collection
  covered_seconds double precision,  -- Seconds that gc_seconds covers
  cpu_ratio double precision,  -- CPU of the process as a share of the machine, mean
  open_file_descriptors double precision,  -- Open files
  max_file_descriptors double precision,  -- Limit of open files
  stream_threads_alive double precision,  -- Living stream threads
  stream_threads_failed double precision,  -- Failed stream threads
  store_instances integer,  -- State-store instances (stores × assigned partitions)
  rocksdb_measured_bytes double precision,  -- Memtables + block caches + table readers as RocksDB reports them
  rocksdb_expected_bytes double precision,  -- What they may grow to by configuration; shared caches once
  rocksdb_shared_cache boolean,  -- Whether stores share a block cache; null: no stores, or too empty to tell
  primary key (hour, cluster, app, endpoint)
);

-- An hour of one state store in one process: RocksDB's own figures.
create table metrics.state_store_memory_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  app text not null,  -- Application
  endpoint text not null,  -- Address of its JMX agent
  store text not null,  -- State store
  kind text not null,  -- key_value, window or session
  tasks integer not null,  -- Tasks (assigned partitions) that hold it
  segments integer not null,  -- RocksDB instances per task (3 for windowed stores)
  memtable_bytes double precision,  -- size-all-mem-tables, all tasks
  block_cache_usage_bytes double precision,  -- block-cache-usage; a shared cache once
  block_cache_capacity_bytes double precision,  -- block-cache-capacity of one RocksDB instance
  table_readers_bytes double precision,  -- estimate-table-readers-mem, all tasks
  sst_bytes double precision,  -- total-sst-files-size, all tasks
  keys double precision,  -- estimate-num-keys, all tasks
  expected_bytes double precision,  -- What it may grow to by configuration (own caches only)
  primary key (hour, cluster, app, endpoint, store)
);

-- An hour of a changelog: what its values are. Read anew from the log each hour: what compaction took is gone here too.
create table metrics.state_store_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  application_id text not null,  -- Streams application id
  store text not null,  -- State store
  format text,  -- json, framed (Schema Registry), string, long, binary: of the newest values; null: no values
  windowed boolean,  -- Whether its keys carry a window; null: no keys were read
  records bigint,  -- Offsets of the hour, all partitions; null: the log couldn't be read
  tombstones bigint,  -- Records without value among those read
  unreadable_values bigint,  -- Values that aren't what `format` says
  values_profiled bigint,  -- Values that were looked at (an even sample where there are many)
  values_total bigint,  -- Offsets of the whole log up to the end of the hour; compaction leaves fewer values
  versions integer,  -- Schema versions that the log holds
  bytes bigint,  -- Bytes of the values looked at
  first_at timestamptz,  -- Oldest record read (UTC)
  last_at timestamptz,  -- Newest record read (UTC)
  primary key (hour, cluster, topic)
);

-- The schema versions of a changelog's values, per JSON path and type, as far as the log still holds them.
create table metrics.state_store_path_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  version integer not null,  -- Version of the schema within the log, oldest first
  path text not null,  -- JSON path: $.a.b, [] for elements, * for the keys of a map
  type text not null,  -- integer, number, string, boolean, object, array, null, mixed (within one array); framed, long, binary at the root
  count bigint not null,  -- Values with this type here
  parents bigint not null,  -- Values whose parent object is there: count / parents is the presence
  enum_values jsonb,  -- The set of strings, while it is small and the config allows values to be shown
  first_at timestamptz,  -- First seen (UTC)
  last_at timestamptz,  -- Last seen (UTC)
  first_offset text,  -- First seen, partition:offset
  last_offset text,  -- Last seen, partition:offset
  example text,  -- An example, masked unless the config allows it
  primary key (hour, cluster, topic, version, path, type)
);

-- Changes between schema versions of a changelog whose old values are still in the log, per path: facts, not yet judged.
create table metrics.state_store_change_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  path text not null,  -- JSON path
  change text not null,  -- type_changed, type_widened, type_narrowed, type_rolled_back, [optional_]field_removed, [optional_]field_added, field_made_optional, field_made_required, nullability_gained, nullability_lost
  old_version integer not null,  -- Last version that holds the old kind of value
  new_version integer not null,  -- Newest version
  old_type text,  -- Type before; null: the field wasn't there
  new_type text,  -- Type after; null: the field isn't there
  old_presence double precision,  -- Share of values that had the field before
  new_presence double precision,  -- Share of values that have it after
  old_count bigint,  -- Values of the old kind among those looked at
  new_count bigint,  -- Values of the new kind among those looked at
  breaks_backward boolean not null,  -- New code can't restore the old state
  breaks_forward boolean not null,  -- Old code can't read the new state
  strict_only boolean not null,  -- Breaks only readers that refuse unknown fields, missing optional ones or fractions for integers
  old_last_offset text,  -- Last value of the old kind, partition:offset
  old_last_at timestamptz,  -- When it was written (UTC)
  new_first_offset text,  -- First value of the new kind, partition:offset
  new_first_at timestamptz,  -- When it was written (UTC)
  old_example text,  -- An old value, masked unless the config allows it
  new_example text,  -- A new value, masked unless the config allows it
  primary key (hour, cluster, topic, path, change, old_version, new_version)
);
