-- Metrics of stream-processing applications: JVMs, state stores, schemas of their values.

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
  heap_survived_bytes double precision,  -- What the last collection of each heap pool left; of the old generation that may be long ago
  application_stores integer,  -- Stores × tasks of its application over all processes, standbys not counted twice
  rocksdb_expected_max_bytes double precision,  -- As rocksdb_expected_bytes, with caches that can't be told (too empty) taken for own ones
  rocksdb_shared_bytes double precision,  -- Of these, caches that stores share: they don't grow with more stores
  resident_bytes double precision,  -- Resident memory (RSS), largest sample; only exporters of Prometheus' client library tell it
  poll_latency_max_ms double precision,  -- Longest poll of a stream thread, largest sample
  process_latency_mean_ms double precision,  -- Time to process a record, mean of the slowest stream thread, largest sample
  process_latency_max_ms double precision,  -- Time to process a record, longest, largest sample
  records_processed double precision,  -- Records processed in covered_seconds, all stream threads
  records_dropped double precision,  -- Records dropped in covered_seconds (late, null key, or not readable), all tasks
  records_to_restore double precision,  -- Records that its tasks have yet to restore, largest sample
  record_latency_ms double precision,  -- Time to process a record, mean of its stream threads and samples
  poll_ratio double precision,  -- Share of their time that its stream threads spend in poll: waiting, and fetching; mean of threads and samples
  restored_records_per_second double precision,  -- How fast records_to_restore fell from the first sample to the last; null: it didn't, or fell to nothing
  cpu_seconds double precision,  -- CPU time of the whole process in covered_seconds
  producer_wait_seconds double precision,  -- Time in covered_seconds for which threads waited until a producer's buffer had room or brokers had told it of a topic; null: no producer, or one too old to tell
  system_cpu_ratio double precision,  -- Share of all processors' time that was in use, as the JVM sees it: of its machine, or of its container's limit; mean of the samples
  throttled_ratio double precision,  -- Share of its container's CPU periods in which it was stopped for having used up its CPU; null: no limit, or not known (cAdvisor)
  pool_connections double precision,  -- Connections of its pools to databases, largest sample; null: no pool that tells (HikariCP)
  pool_connections_in_use double precision,  -- The same: those in use, mean of the samples
  pool_threads_waiting double precision,  -- Threads that wait for such a connection, mean of the samples
  streams_state text,  -- State of its Kafka Streams client when it told it last, of several the worst: CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR or ERROR; null: not told
  primary key (hour, cluster, app, endpoint)
) partition by range (hour);
create index jvm_app_hourly_restoring on metrics.jvm_app_hourly (hour) where restored_records_per_second is not null;

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

-- Changes between schema versions of a changelog whose old values are still in the log, per path: facts, not yet judged.
create table metrics.state_store_change_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  path text not null,  -- JSON path
  change text not null,  -- type_changed, type_widened, type_narrowed, type_rolled_back, [optional_]field_removed, [optional_]field_added, field_made_optional, field_made_required, field_rolled_back, nullability_gained, nullability_lost, nullability_rolled_back, fractions_rolled_back, constant_added, constant_removed
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
  strict_only boolean not null,  -- Breaks only readers that refuse unknown fields, missing optional ones, fractions for integers, or what an open content model might have held
  old_last_offset text,  -- Last value of the old kind, partition:offset
  old_last_at timestamptz,  -- When it was written (UTC)
  new_first_offset text,  -- First value of the new kind, partition:offset
  new_first_at timestamptz,  -- When it was written (UTC)
  old_example text,  -- An old value, masked unless the config allows it
  new_example text,  -- A new value, masked unless the config allows it
  old_schema_id integer,  -- Registered schema of the old values; null: inferred from the values
  new_schema_id integer,  -- Registered schema that is written now; null: inferred from the values
  primary key (hour, cluster, topic, path, change, old_version, new_version)
) partition by range (hour);

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
  uncompared text,  -- Which registered schemas couldn't be compared, and why; null: none, or its values aren't framed
  schemas jsonb,  -- Schemas that frame its values, oldest first: [{schema_id, registered_as, format, values, first_offset, last_offset}, …]
  primary key (hour, cluster, topic)
) partition by range (hour);

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
) partition by range (hour);

-- The schema versions of a changelog's values, per JSON path and type, as far as the log still holds them.
create table metrics.state_store_path_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Changelog topic
  version integer not null,  -- Version of the schema within the log, oldest first
  path text not null,  -- JSON path: $.a.b, [] for elements, * for the keys of a map
  type text not null,  -- integer, number, string, boolean, object, array, null, mixed (within one array); framed, long, binary at the root; of registered schemas the type as their format writes it
  count bigint not null,  -- Values with this type here
  parents bigint not null,  -- Values whose parent object is there: count / parents is the presence
  enum_values jsonb,  -- The set of strings, while it is small and the config allows values to be shown
  first_at timestamptz,  -- First seen (UTC)
  last_at timestamptz,  -- Last seen (UTC)
  first_offset text,  -- First seen, partition:offset
  last_offset text,  -- Last seen, partition:offset
  example text,  -- An example, masked unless the config allows it
  primary key (hour, cluster, topic, version, path, type)
) partition by range (hour);

-- How long records take to the ends of a Kafka Streams application, and what each application is meant to need.
create table metrics.stream_node_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster it works on
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX agent
  subtopology text not null,  -- Sub-topology of the node: its tasks' ids begin so
  node text not null,  -- Node of the topology that takes records in, or at which they end
  topics jsonb,  -- Topics that it reads; null: records end there, or the client (before Kafka 3.3) doesn't tell
  holds_back boolean not null,  -- Whether its sub-topology aggregates windows or suppresses updates: what it emits may wait until a window ends
  readings integer not null,  -- Readings of one task each that tell of records in the minute before
  age_min_ms double precision not null,  -- Time from the record's timestamp until it came to the node: least; negative: a clock is ahead
  age_mean_ms double precision not null,  -- The same: mean of the readings' means
  age_max_ms double precision not null,  -- The same: longest
  ages_ms jsonb not null,  -- The same: mean of each reading, sorted
  primary key (hour, cluster, endpoint, node)
) partition by range (hour);
