-- Metrics of stream-processing applications: JVMs, state stores, and schemas of their values.

-- A process of a JVM application in an hour: memory, threads, and Kafka Streams metrics.
create table metrics.jvm_app_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that it uses
  app text not null,  -- Application
  endpoint text not null,  -- Address of its JMX endpoint
  instance_id text,  -- EC2 instance that it runs on
  application_id text,  -- Kafka Streams application id; null: not a Kafka Streams application
  process_started_at timestamptz,  -- Start of the JVM (UTC)
  samples integer,  -- Successful scrapes in this run; null: none
  memory_limit_bytes double precision,  -- Configured container limit, otherwise physical memory as the JVM reports it
  heap_max_bytes double precision,  -- Heap limit (-Xmx)
  heap_used_bytes double precision,  -- Heap in use, mean of the samples
  heap_used_after_gc_bytes double precision,  -- Heap in use after the last collection (of the old generation, if the collector has one)
  non_heap_used_bytes double precision,  -- Non-heap memory in use: metaspace, code cache, and others
  direct_bytes double precision,  -- Direct buffers (mapped files count as page cache)
  threads double precision,  -- Threads, maximum of the samples
  thread_stack_bytes double precision,  -- Threads times the default stack size of 1 MiB
  gc_seconds double precision,  -- Time in garbage collection in covered_seconds
  covered_seconds double precision,  -- Time span of the counters, in seconds
  cpu_ratio double precision,  -- CPU of the process as a share of the host's CPU, mean
  open_file_descriptors double precision,  -- Open file descriptors
  max_file_descriptors double precision,  -- Limit of open file descriptors
  stream_threads_alive double precision,  -- Live stream threads
  stream_threads_failed double precision,  -- Failed stream threads
  store_instances integer,  -- State store instances (stores × assigned partitions)
  rocksdb_measured_bytes double precision,  -- Memtables + block caches + table readers, as RocksDB reports them
  rocksdb_expected_bytes double precision,  -- Maximum of these by configuration; shared caches count once
  rocksdb_shared_cache boolean,  -- Whether stores share a block cache; null: no stores, or caches too empty to determine it
  heap_survived_bytes double precision,  -- Heap in use after the last collection of each pool; the last collection of the old generation may be long ago
  application_stores integer,  -- Stores × tasks of the application over all processes; standby tasks are not counted twice
  rocksdb_expected_max_bytes double precision,  -- As rocksdb_expected_bytes, but caches that are too empty to determine sharing count as unshared
  rocksdb_shared_bytes double precision,  -- Part of it that is shared caches: they do not grow with more stores
  resident_bytes double precision,  -- Resident set size (RSS), maximum of the samples; only exporters built on Prometheus' client libraries report it
  poll_latency_max_ms double precision,  -- poll-latency-max of stream threads, maximum of the samples
  process_latency_mean_ms double precision,  -- process-latency-avg of the slowest stream thread, maximum of the samples
  process_latency_max_ms double precision,  -- process-latency-max of stream threads, maximum of the samples
  records_processed double precision,  -- Records processed in covered_seconds, all stream threads
  records_dropped double precision,  -- Records dropped in covered_seconds (late, null key, or deserialization error), all tasks
  records_to_restore double precision,  -- Records that its tasks have yet to restore, maximum of the samples
  record_latency_ms double precision,  -- Time to process a record, mean of stream threads and samples
  poll_ratio double precision,  -- poll-ratio: share of time that stream threads spend in poll, mean of threads and samples
  restored_records_per_second double precision,  -- Restore rate: how fast records_to_restore decreased from the first sample to the last; null: no decrease, or the restore finished
  cpu_seconds double precision,  -- CPU time of the whole process in covered_seconds
  producer_wait_seconds double precision,  -- Time that threads waited in covered_seconds for producer buffer space or topic metadata; null: no producer, or not reported by its version
  system_cpu_ratio double precision,  -- CPU utilization of the host or container, as the JVM reports it, mean of the samples
  throttled_ratio double precision,  -- Share of CPU periods in which its container was throttled; null: no limit, or not reported (cAdvisor)
  pool_connections double precision,  -- Connections of its database connection pools, maximum of the samples; null: no pool with metrics (HikariCP)
  pool_connections_in_use double precision,  -- Active connections of these pools, mean of the samples
  pool_threads_waiting double precision,  -- Threads that wait for a connection of these pools, mean of the samples
  streams_state text,  -- Latest reported state of its Kafka Streams clients, the worst if it has several: CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR or ERROR; null: not reported
  primary key (hour, cluster, app, endpoint)
) partition by range (hour);
create index jvm_app_hourly_restoring on metrics.jvm_app_hourly (hour) where restored_records_per_second is not null;

-- JMX readings of applications under Streamwarden's metric names (spark_apps/sources/jmx_metrics.py). Counters are stored as read.
create table metrics.jvm_app_sample (
  hour timestamptz not null,  -- Hour that it was read for (UTC)
  cluster text not null,  -- Kafka cluster that it uses
  app text not null,  -- Application
  endpoint text not null,  -- Address of the JMX endpoint, without credentials
  metric text not null,  -- Streamwarden's name of the metric, with its unit
  labels text not null,  -- Labels of the metric: JSON object with sorted keys, {} for the whole JVM
  at timestamptz not null,  -- When it was read (UTC)
  kind text not null,  -- counter, gauge or percentile
  value double precision,  -- Reading; null: the JVM returned NaN or null
  process_started_at timestamptz,  -- Start of the JVM (UTC): counters began at 0 then
  primary key (hour, cluster, endpoint, metric, labels, at)
) partition by range (hour);

-- Changes between schema versions of a changelog, per path, for as long as the log holds values of the old version. Detectors decide which of them break.
create table metrics.state_store_change_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  path text not null,  -- JSON path
  change text not null,  -- type_changed, type_widened, type_narrowed, type_rolled_back, [optional_]field_removed, [optional_]field_added, field_made_optional, field_made_required, field_rolled_back, nullability_gained, nullability_lost, nullability_rolled_back, fractions_rolled_back, constant_added, constant_removed
  old_version integer not null,  -- Last version with the old kind of value
  new_version integer not null,  -- Newest version
  old_type text,  -- Type before; null: the field did not exist
  new_type text,  -- Type after; null: the field does not exist
  old_presence double precision,  -- Share of values that had the field before
  new_presence double precision,  -- Share of values that have it after
  old_count bigint,  -- Sampled values of the old kind
  new_count bigint,  -- Sampled values of the new kind
  breaks_backward boolean not null,  -- New code cannot restore the old state
  breaks_forward boolean not null,  -- Old code cannot read the new state
  strict_only boolean not null,  -- Breaks only strict readers: those that reject unknown fields, missing optional fields, or fractions for integers, or that rely on a closed content model
  old_last_offset text,  -- Last value of the old kind, partition:offset
  old_last_at timestamptz,  -- When it was written (UTC)
  new_first_offset text,  -- First value of the new kind, partition:offset
  new_first_at timestamptz,  -- When it was written (UTC)
  old_example text,  -- A value of the old kind, masked unless the config allows it
  new_example text,  -- A value of the new kind, masked unless the config allows it
  old_schema_id integer,  -- Id of the registered schema of the old values; null: schema inferred from the values
  new_schema_id integer,  -- Id of the registered schema of the new values; null: schema inferred from the values
  primary key (hour, cluster, topic, path, change, old_version, new_version)
) partition by range (hour);

-- A changelog in an hour: format and size of its values. Each hour reads the log again, so values that compaction removed are not included.
create table metrics.state_store_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  application_id text not null,  -- Kafka Streams application id
  store text not null,  -- State store
  format text,  -- Format of the newest values: json, framed (Schema Registry), string, long, or binary; null: no values
  windowed boolean,  -- Whether its keys have a window; null: no keys were read
  records bigint,  -- Offsets appended in the hour, all partitions; null: the log could not be read
  tombstones bigint,  -- Tombstones among the records read
  unreadable_values bigint,  -- Values that cannot be parsed in that format
  values_profiled bigint,  -- Values sampled, evenly over the log
  values_total bigint,  -- Offsets of the whole log up to the end of the hour; after compaction there are fewer values
  versions integer,  -- Schema versions in the log
  bytes bigint,  -- Bytes of the sampled values
  first_at timestamptz,  -- Oldest record read (UTC)
  last_at timestamptz,  -- Newest record read (UTC)
  uncompared text,  -- Registered schemas that could not be compared, and why; null: none, or values are not framed
  schemas jsonb,  -- Registered schemas of its values, oldest first: [{schema_id, registered_as, format, values, first_offset, last_offset}, …]
  primary key (hour, cluster, topic)
) partition by range (hour);

-- A state store in one process in an hour, by RocksDB's metrics.
create table metrics.state_store_memory_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX endpoint
  store text not null,  -- State store
  kind text not null,  -- key_value, window or session
  tasks integer not null,  -- Tasks with this store
  segments integer not null,  -- RocksDB instances per task (3 for windowed stores)
  memtable_bytes double precision,  -- size-all-mem-tables, all tasks
  block_cache_usage_bytes double precision,  -- block-cache-usage; a shared cache counts once
  block_cache_capacity_bytes double precision,  -- block-cache-capacity of one RocksDB instance
  table_readers_bytes double precision,  -- estimate-table-readers-mem, all tasks
  sst_bytes double precision,  -- total-sst-files-size, all tasks
  keys double precision,  -- estimate-num-keys, all tasks
  expected_bytes double precision,  -- Maximum memory by configuration (unshared caches only)
  primary key (hour, cluster, app, endpoint, store)
) partition by range (hour);

-- Schema versions of a changelog's values, per JSON path and type, as far as the log still holds them.
create table metrics.state_store_path_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  version integer not null,  -- Schema version within the log, oldest first
  path text not null,  -- JSON path: $.a.b, [] for elements, * for the keys of a map
  type text not null,  -- integer, number, string, boolean, object, array, null, mixed (within one array); framed, long, binary at the root; for registered schemas the type as written in their format
  count bigint not null,  -- Values with this type at this path
  parents bigint not null,  -- Values with the parent object; count / parents is the presence
  enum_values jsonb,  -- The set of strings, if it is small and the config allows values to be shown
  first_at timestamptz,  -- First record with it (UTC)
  last_at timestamptz,  -- Last record with it (UTC)
  first_offset text,  -- First record with it, partition:offset
  last_offset text,  -- Last record with it, partition:offset
  example text,  -- An example value, masked unless the config allows it
  primary key (hour, cluster, topic, version, path, type)
) partition by range (hour);

-- End-to-end latency of records at the source and terminal nodes of Kafka Streams applications.
create table metrics.stream_node_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that it uses
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX endpoint
  subtopology text not null,  -- Subtopology of the node: the first part of its task ids
  node text not null,  -- Processor node: a source node, or a terminal node
  topics jsonb,  -- Topics that it reads; null: a terminal node, or not reported (clients before Kafka 3.3)
  holds_back boolean not null,  -- Whether its subtopology aggregates windows or suppresses updates, so that results may wait until a window ends
  readings integer not null,  -- Readings, one per task and sample, with records in the minute before
  age_min_ms double precision not null,  -- record-e2e-latency: time from the record's timestamp to the node, minimum; negative: clock skew
  age_mean_ms double precision not null,  -- The same, mean of the readings' means
  age_max_ms double precision not null,  -- The same, maximum
  ages_ms jsonb not null,  -- The same, mean of each reading, sorted
  primary key (hour, cluster, endpoint, node)
) partition by range (hour);
